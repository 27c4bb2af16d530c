"""What people do to jobs, one or many at once: the page comes back and says what came of it."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from jobs.contract.states import State
from jobs.forms import ActForm
from jobs.services.actions import Act, Order, Result, perform_all
from jobs.views.access import person
from jobs.views.doing import Undo, back, say_done

_MOST_SENTENCES = 3


@require_POST
def jobs_act(request: HttpRequest) -> HttpResponse:
    """Cancel, move, copy and so on: each job for itself, so that one that is too late does not hold up the others."""
    form = ActForm(request.POST)
    if not form.is_valid():
        sentences = [
            f"{form.fields[name].label or ''} {' '.join(map(str, texts))}" for name, texts in form.errors.items()
        ]
        messages.error(request, " ".join(sentences).strip())
        return back(request, "job-list")
    results = perform_all(person(request), form.cleaned_data["jobs"], form.order)
    tell(request, form.order, results)
    return back(request, "job-list")


def tell(request: HttpRequest, order: Order, results: Sequence[Result]) -> None:
    """Say how many were done, with a way back where there is one, and why others were not."""
    done = [result.job for result in results if not result.error and result.job]
    if done:
        stopped = [job.pk for job in done if order.act is Act.CANCEL and job.state == State.CANCELLED]
        say_done(request, _done(order, len(done), done[0].pk), _requeue(stopped) if stopped else None)
    if errors := [result.error for result in results if result.error]:
        messages.error(request, _shortened(errors))


def _requeue(job_ids: Sequence[int]) -> Undo:
    return Undo(reverse("jobs-act"), {"act": Act.REQUEUE.value, "jobs": ",".join(map(str, job_ids))})


def _shortened(errors: Sequence[str]) -> str:
    shown = " ".join(errors[:_MOST_SENTENCES])
    rest = len(errors) - _MOST_SENTENCES
    if rest <= 0:
        return shown
    more = ngettext("And %(count)s more was left as it was.", "And %(count)s more were left as they were.", rest)
    return f"{shown} {more % {'count': rest}}"


def _done(order: Order, count: int, job_id: int) -> str:
    """What was done, in words; with one job it is named."""
    places = {
        "count": count,
        "job": job_id,
        "priority": order.priority,
        "queue": order.queue.name if order.queue else "",
    }
    one, many = {
        Act.CANCEL: (gettext("Job #%(job)s is cancelled."), gettext("%(count)s jobs are cancelled.")),
        Act.REQUEUE: (gettext("Job #%(job)s waits again."), gettext("%(count)s jobs wait again.")),
        Act.CLONE: (gettext("Job #%(job)s is the copy."), gettext("%(count)s copies wait.")),
        Act.FIT: (
            gettext("Job #%(job)s does the same work in smaller micro-batches."),
            gettext("%(count)s jobs do the same work in smaller micro-batches."),
        ),
        Act.PRIORITY: (
            gettext("Job #%(job)s has priority %(priority)s."),
            gettext("%(count)s jobs have priority %(priority)s."),
        ),
        Act.MOVE: (
            gettext("Job #%(job)s waits in “%(queue)s” now."),
            gettext("%(count)s jobs wait in “%(queue)s” now."),
        ),
        Act.TIME_LIMIT: (
            gettext("Job #%(job)s has another time limit."),
            gettext("%(count)s jobs have another time limit."),
        ),
        Act.PLACE: (gettext("Job #%(job)s has another place."), gettext("%(count)s jobs have other places.")),
        Act.TAG: (gettext("Job #%(job)s is tagged."), gettext("%(count)s jobs are tagged.")),
        Act.TAGS: (gettext("Job #%(job)s has other tags."), gettext("%(count)s jobs have other tags.")),
        Act.UNTAG: (gettext("Job #%(job)s has a tag less."), gettext("%(count)s jobs have a tag less.")),
        Act.FIRST: (gettext("Job #%(job)s is moved to the front."), gettext("%(count)s jobs are moved to the front.")),
        Act.LAST: (gettext("Job #%(job)s is moved to the end."), gettext("%(count)s jobs are moved to the end.")),
    }[order.act]
    return (one if count == 1 else many) % places
