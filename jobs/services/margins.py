"""The margin within which losses count as equal is fixed before there is a candidate that it could be fitted to."""

import math

from jobs.contract.metrics import Summary
from jobs.equal_loss import MARGIN_SHARE
from jobs.models import Attempt, Workload


def fix_margin(attempt: Attempt, summary: Summary | None) -> None:
    """The first run of a work that ends with a loss fixes the margin of equality for all that come."""
    loss = summary.final_eval_loss if summary else None
    key = Attempt.objects.values_list("workload_key", flat=True).get(pk=attempt.pk)
    if key and loss and math.isfinite(loss):
        margin = MARGIN_SHARE * abs(loss)
        Workload.objects.bulk_create([Workload(key=key, loss_margin=margin)], ignore_conflicts=True)
