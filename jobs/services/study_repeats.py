"""A study that asks for it gets repeats until every time is known within 2 %, or until fifteen show: too noisy here."""

import logging

from django.db import transaction

from jobs.contract.errors import InvalidSpec
from jobs.contract.plan import MOST_REPEATS, Configuration
from jobs.contract.states import OPEN_STATES
from jobs.models import Job, Study
from jobs.selectors.studies import StudyRow, StudyView, view_study
from jobs.services.errors import SpecRefused
from jobs.services.studies import submit_runs, tags_of

logger = logging.getLogger(__name__)

ROUND = 2  # repeats that are added at once: A B, then B A

# The workers, or the options that there are, have changed since it began. The worker that asks must outlive that.
_GIVES_UP = (SpecRefused, InvalidSpec)


def add_repeats() -> int:
    """Look at every study that is not sure yet and of which nothing is open; returns how many runs were queued.

    Any host may call it at any time: a study is locked while it is looked at, and looked at again under the lock.
    """
    unsure = Study.objects.filter(adds_repeats=True, paused_at=None).exclude(jobs__state__in=OPEN_STATES)
    return sum(_add_round(pk) for pk in unsure.values_list("pk", flat=True))


def _add_round(pk: int) -> int:
    try:
        with transaction.atomic():
            study = Study.objects.select_for_update(of=("self",), no_key=True).get(pk=pk)
            if not study.adds_repeats or Job.objects.filter(study=study, state__in=OPEN_STATES).exists():
                return 0
            view = view_study(study)
            if view.unread:
                raise InvalidSpec(view.unread)
            runs = next_runs(view)
            submit_runs(study, runs, tags_of(study))
            if not runs:
                Study.objects.filter(pk=pk).update(adds_repeats=False)
            return len(runs)
    except _GIVES_UP as error:
        logger.warning("study %s gets no more repeats: %s", pk, error)
        Study.objects.filter(pk=pk).update(adds_repeats=False)
        return 0


def next_runs(view: StudyView) -> list[tuple[Configuration, int]]:
    """The next round: the baseline and what is not sure yet, there and back; empty where it is all sure or hopeless."""
    baseline = next((row for row in view.rows if row.is_baseline), None)
    if baseline is None or baseline.step_time_ms is None:
        return []
    unsure = sorted((row for row in view.rows if _is_unsure(row)), key=lambda row: row.configuration.place)
    seeds = [job.spec["seed"] for row in view.rows for job in row.jobs]
    begin = max(seeds) - baseline.configuration.spec.seed + 1
    turns = [baseline, *unsure] if unsure else []
    return [
        (row.configuration, repeat)
        for repeat in range(begin, min(begin + ROUND, MOST_REPEATS))
        for row in (turns if repeat % 2 == 0 else reversed(turns))
    ]


def _is_unsure(row: StudyRow) -> bool:
    """Whether more repeats may tell more: one that never ended well is left as it is."""
    if row.is_baseline or row.step_time_ms is None:
        return False
    return row.time is None or not row.time.is_sure
