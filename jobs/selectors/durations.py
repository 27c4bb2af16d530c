"""How long jobs take: expected from what jobs like them measured, and for one that runs from its own steps."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Max

from jobs.contract.states import Outcome
from jobs.curves import unpack
from jobs.models import Attempt, CurveChunk

_RUNS_READ = 400

# Runs that agree in all of these take the same time per step; those that agree in fewer, about the same.
_LIKE = ("task", "model", "dataset", "device")
_CLOSE = (*_LIKE, "num_nodes", "num_devices", "micro_batch_size")
_SAME = (*_CLOSE, "grad_accum_steps", "precision", "parallelism", "compile_mode", "image_size", "sequence_length")
_CLOSENESS = (_SAME, _CLOSE, _LIKE)

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """One run that ended well: seconds in all, and of those per step."""

    total_s: float
    step_s: float
    num_steps: int

    @property
    def overhead_s(self) -> float:
        """What it took besides its steps: imports, build, first step, evaluation."""
        return max(0.0, self.total_s - self.num_steps * self.step_s)


@dataclass
class Durations:
    """Measured runs by what they had in common."""

    runs: dict[tuple[Any, ...], list[Run]] = field(default_factory=lambda: defaultdict(list))

    def add(self, spec: Spec, run: Run) -> None:
        """Remember a run."""
        for names in _CLOSENESS:
            self.runs[_key(spec, names)].append(run)

    def expected_s(self, spec: Spec, kind: str) -> float | None:
        """Seconds that a job will hold its devices, None where nothing like it has been measured."""
        asked = {**spec, "device": kind}
        for names in _CLOSENESS:
            if runs := self.runs.get(_key(asked, names)):
                return _within_limit(asked, _expected(asked, runs))
        return None


def _key(spec: Spec, names: tuple[str, ...]) -> tuple[Any, ...]:
    return (len(names), *(spec.get(name) for name in names))


def _expected(spec: Spec, runs: list[Run]) -> float:
    num_steps = spec.get("num_steps")
    if num_steps is None:  # its length is in epochs; it takes what such runs took
        return median(run.total_s for run in runs)
    return median(run.overhead_s for run in runs) + int(num_steps) * median(run.step_s for run in runs)


def _within_limit(spec: Spec, expected_s: float) -> float:
    limit_s: float | None = spec.get("time_limit_s")
    return expected_s if limit_s is None else min(expected_s, limit_s)


def measured_durations() -> Durations:
    """From the newest runs that succeeded in one piece."""
    attempts = Attempt.objects.filter(outcome=Outcome.SUCCEEDED, resumed_at_step=None, steady_step_time_ms__gt=0)
    attempts = attempts.exclude(resolved_spec=None).exclude(running_at=None).order_by("-pk")
    durations = Durations()
    columns = ("resolved_spec", "claimed_at", "ended_at", "steady_step_time_ms", "last_step")
    for attempt in attempts.only(*columns)[:_RUNS_READ]:
        if attempt.resolved_spec and attempt.ended_at and attempt.steady_step_time_ms:
            total_s = (attempt.ended_at - attempt.claimed_at).total_seconds()
            durations.add(attempt.resolved_spec, Run(total_s, attempt.steady_step_time_ms / 1000, attempt.last_step))
    return durations


def remaining_s(attempts: Iterable[Attempt], durations: Durations, now: datetime) -> dict[int, float | None]:
    """Seconds until running attempts end, by their ids; None where neither their steps nor other runs tell.

    An attempt's own steps tell best: those of its newest points. Its job must come with it.
    """
    attempts = list(attempts)
    paces = _paces_s({attempt.pk for attempt in attempts})
    return {attempt.pk: _remaining_s(attempt, paces.get(attempt.pk), durations, now) for attempt in attempts}


def _remaining_s(attempt: Attempt, pace_s: float | None, durations: Durations, now: datetime) -> float | None:
    spec: Spec = attempt.resolved_spec or attempt.job.spec
    elapsed_s = (now - attempt.claimed_at).total_seconds()
    num_steps = spec.get("num_steps")
    if pace_s is not None and num_steps:
        left_s = max(0.0, (int(num_steps) - attempt.last_step) * pace_s)
    else:
        expected_s = durations.expected_s(spec, spec.get("device", ""))
        if expected_s is None:
            return None
        left_s = max(0.0, expected_s - elapsed_s)
    limit_s: float | None = spec.get("time_limit_s")
    return left_s if limit_s is None else min(left_s, max(0.0, limit_s - elapsed_s))


_NEWEST_POINTS = 500  # of a chunk that holds many flushes


def _paces_s(attempt_ids: set[int]) -> dict[int, float]:
    """Seconds per step in the newest points of each attempt; one query."""
    chunks = CurveChunk.objects.filter(attempt__in=attempt_ids).order_by()
    newest = chunks.values("attempt").annotate(newest=Max("pk")).values("newest")
    paces = {}
    for attempt_id, payload in CurveChunk.objects.filter(pk__in=newest).values_list("attempt_id", "payload"):
        for frame in unpack(payload):
            steps, wall_s = frame.steps[-_NEWEST_POINTS:], frame.wall_s[-_NEWEST_POINTS:]
            num_steps = int(steps[-1] - steps[0])
            if num_steps > 0:
                paces[attempt_id] = float(wall_s[-1] - wall_s[0]) / num_steps
    return paces
