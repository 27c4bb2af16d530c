"""What a search found, or where it stands, in a sentence."""

from django.utils.translation import gettext as _

from jobs.models.search import SearchStage
from jobs.selectors.searches import SearchView
from jobs.selectors.study_words import in_short, row_words


def search_words(view: SearchView) -> str:
    """The answer as far as it is known."""
    stage = view.search.stage
    if stage == SearchStage.SCREENING:
        numbers = {"tried": len(view.screened), "all": view.search.space.num_points}
        return _("Screening: %(tried)s of %(all)s configurations have been tried in short runs.") % numbers
    if stage == SearchStage.FINALS:
        return _("The finalists run at full length beside the base.")
    if stage == SearchStage.STOPPED:
        return _("Stopped. %(why)s") % {"why": view.search.note}
    if view.best is None:
        return _("No configuration that fits is shown to be faster than the base at equal loss. %(why)s") % {
            "why": view.search.note
        }
    return _("%(changes)s: %(words)s") % {"changes": in_short(view.best.row), "words": row_words(view.best.row)}
