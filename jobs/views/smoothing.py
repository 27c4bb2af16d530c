"""The controls of smoothing, which a job's page and the comparison share."""

from typing import Any

from django.utils.translation import gettext

from jobs.forms import CompareQuery
from jobs.smoothing import LIMITS, Smoothing


def smoothing_choices(query: CompareQuery) -> dict[str, Any]:
    """What `parts/smoothing.html` shows: the ways, the limits of each one's amount, and what the address asks for."""
    return {
        "query": query,
        "smoothings": [
            (Smoothing.NONE.value, gettext("Not smoothed")),
            (Smoothing.EXPONENTIAL.value, gettext("Exponential mean")),
            (Smoothing.GAUSSIAN.value, gettext("Gaussian")),
            (Smoothing.RUNNING_MEAN.value, gettext("Running mean")),
        ],
        "limits": {how.value: list(limits) for how, limits in LIMITS.items()},
    }
