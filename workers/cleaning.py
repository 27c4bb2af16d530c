"""What died on this host is taken back without waiting for its lease, and devices are freed once they are clean."""

import logging
import time

import psutil

from jobs.models import Attempt
from jobs.services import finish
from jobs.services.wake import wake
from jobs.timings import timings
from workers.identity import ATTEMPT_VARIABLE, attempt_mark
from workers.processes import in_words, is_running, kill, processes_with_variable

logger = logging.getLogger(__name__)

_SUPERVISOR = "workers.supervisor"


def supervisor_is_running(attempt: Attempt) -> bool:
    """Whether the attempt's supervisor lives on this host; it may be stopped and silent all the same."""
    return is_running(attempt.supervisor_pid, _SUPERVISOR, str(attempt.pk))


class Cleaner:
    """Remembers how long it has been trying to end what an attempt left behind."""

    def __init__(self) -> None:
        self._give_up_at: dict[int, float] = {}  # by attempt, by `time.monotonic`

    def clean(self, worker_id: int) -> None:
        """One round over the attempts of this host."""
        live = Attempt.objects.filter(worker=worker_id, outcome=None).exclude(supervisor_pid=None)
        for attempt in live:
            if not supervisor_is_running(attempt):
                finish.lose_attempt(attempt, "The supervisor of this attempt died.", release_devices=False)
        over = Attempt.objects.filter(devices__worker=worker_id, outcome__isnull=False).distinct()
        for attempt in over:
            self._free_when_clean(attempt)

    def _free_when_clean(self, attempt: Attempt) -> None:
        """Free the devices of an ended attempt once nothing of it is left; a living supervisor cleans up itself."""
        if supervisor_is_running(attempt):
            return
        left = processes_with_variable(ATTEMPT_VARIABLE, attempt_mark(attempt.pk))
        give_up_at = self._give_up_at.setdefault(attempt.pk, time.monotonic() + timings().give_up_s)
        if left and time.monotonic() < give_up_at:
            kill(left)
            return
        finish.free_devices(attempt, _sentence(attempt, left) if left else "")
        wake(attempt.job.queue.name)
        del self._give_up_at[attempt.pk]


def _sentence(attempt: Attempt, left: list[psutil.Process]) -> str:
    return f"Left by job {attempt.job_id} and not to be ended: {in_words(left)}"
