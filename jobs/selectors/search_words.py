"""What a search found, or where it stands, in a sentence."""

from django.utils.translation import gettext as _

from jobs.models.search import SearchStage
from jobs.selectors.searches import Finalist, SearchView
from jobs.selectors.study_words import changes_in_short, row_words


def search_words(view: SearchView) -> str:
    """The answer as far as it is known."""
    stage = view.search.stage
    if stage == SearchStage.SCREENING:
        numbers = {"tried": view.num_tried, "all": view.search.space.num_points}
        return _("Screening: %(tried)s of %(all)s configurations have been tried in short runs.") % numbers
    if stage == SearchStage.FINALS:
        return _("The finalists run at full length beside %(reference)s.") % {"reference": _reference(view)}
    if stage == SearchStage.STOPPED:
        return _("Stopped. %(why)s") % {"why": view.search.note}
    answer = _answer(view, view.best) if view.best else _why_none(view)
    return answer if view.has_tried_combinations else f"{answer} {_only_singles()}"


def _answer(view: SearchView, best: Finalist) -> str:
    parts = {"changes": changes_in_short(best.changes), "words": row_words(best.row), "reference": _reference(view)}
    if not view.base_is_out:
        return _("%(changes)s: %(words)s") % parts
    if view.reference is not None and view.reference.is_base:
        return _("%(changes)s is the fastest that fits; the base does not. Beside it: %(words)s") % parts
    found = _("%(changes)s is the fastest that fits; the base does not run to its end here.") % parts
    return found if best is view.reference else f"{found} {_('Beside %(reference)s: %(words)s') % parts}"


def _why_none(view: SearchView) -> str:
    if view.reference is None:
        return view.search.note
    if not view.base_is_out:
        return _("No configuration that fits is shown to be faster than the base at equal loss.")
    if view.reference.is_out and view.reference.row.step_time_ms is None:
        return _("No loss can be held against %(reference)s, which did not run to its end at full length.") % {
            "reference": _reference(view)
        }
    return _("The base does not fit, and nothing that does is shown to be as good: see the losses of the finals.")


def _reference(view: SearchView) -> str:
    return changes_in_short(view.reference.changes if view.reference else {}) or _("the base")


def _only_singles() -> str:
    return _(
        "Each value was tried alone only: starting took so much of a short run that a fifth of the grid's device time "
        "left no room for combinations. Longer full runs leave it."
    )
