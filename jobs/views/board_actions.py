"""What people do from a board: measure a configuration again, add repeats, hold the board against another baseline."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from jobs.messages import translate
from jobs.models import BoardEntry
from jobs.selectors.leaderboard import visible_boards
from jobs.services.boards import change_baseline
from jobs.services.errors import NotPossible, SpecRefused
from jobs.services.reproductions import add_repeats, reproduce
from jobs.views.access import person
from jobs.views.doing import back


@require_POST
def entry_reproduce(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue its repeats once more; the board says whether they agree."""
    entry = _entry(request, pk)

    def done() -> str:
        count = reproduce(entry, person(request)).jobs.count()
        words = ngettext("%(n)s run is queued again.", "%(n)s runs are queued again.", count) % {"n": count}
        return f"{words} {gettext('The board says whether they agree once all have ended.')}"

    return _do(request, done)


@require_POST
def entry_repeat(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue the seeds that it lacks."""
    entry = _entry(request, pk)

    def done() -> str:
        count = len(add_repeats(entry, person(request)))
        return ngettext("%(n)s repeat is queued.", "%(n)s repeats are queued.", count) % {"n": count}

    return _do(request, done)


@require_POST
def board_baseline(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold the board against another configuration, for everybody in the team."""
    board = get_object_or_404(visible_boards(person(request)), pk=pk)
    wanted = request.POST.get("entry", "")
    entry = get_object_or_404(board.entries, pk=int(wanted) if wanted.isdecimal() and len(wanted) < 19 else 0)

    def done() -> str:
        change_baseline(board, entry, person(request))
        return gettext("The board is held against this configuration from now on.")

    return _do(request, done)


def _entry(request: HttpRequest, pk: int) -> BoardEntry:
    entries = BoardEntry.objects.select_related("board__baseline").filter(board__in=visible_boards(person(request)))
    return get_object_or_404(entries, pk=pk)


def _do(request: HttpRequest, action: Callable[[], str]) -> HttpResponse:
    try:
        messages.success(request, action())
    except NotPossible as error:
        messages.error(request, str(error))
    except SpecRefused as error:
        messages.error(request, translate(error.findings[0]))
    return back(request, "leaderboard")
