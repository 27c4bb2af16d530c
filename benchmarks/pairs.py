"""The engine against others on the same work: repeats of races until the ratios' intervals are narrow enough."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.intervals import Stopping, ratio_interval
from benchmarks.turns import Course, Progress, race
from benchmarks.work import NUM_THREADS, commands_of

Repeat = dict[str, Progress]  # by name


def compare(
    workload: str,
    rivals: Sequence[str],
    stopping: Stopping,
    course: Course,
    *,
    subject: str = "engine",
    **engine_options: Any,
) -> dict[str, Any]:
    """Fresh processes in each repeat; per rival the ratio of speeds, above 1 where the subject is faster."""
    names, repeats = [subject, *rivals], list[Repeat]()
    while not all(stopping.is_enough(_ratios(repeats, subject, rival)) for rival in rivals):
        with commands_of(workload, names, **engine_options) as commands:
            repeats.append(race(commands, NUM_THREADS, course, backwards=len(repeats) % 2 == 1))
    return {
        "engine_options": engine_options,
        "num_repeats": len(repeats),
        "raw_step_times_ms": {name: [repeat[name].step_time_ms for repeat in repeats] for name in names},
        "raw_step_cpu_times_ms": {name: [repeat[name].step_cpu_time_ms for repeat in repeats] for name in names},
        "raw_num_steps": {name: [repeat[name].num_steps for repeat in repeats] for name in names},
        "step_time_ms": {name: median(repeat[name].step_time_ms for repeat in repeats) for name in names},
        "ratios": {rival: _describe(_ratios(repeats, subject, rival)) for rival in rivals},
        "cpu_time_ratios": {rival: _describe(_cpu_time_ratios(repeats, subject, rival)) for rival in rivals},
        "loss_difference": {rival: _largest_difference(repeats, subject, rival) for rival in rivals},
    }


def _ratios(repeats: Sequence[Repeat], subject: str, rival: str) -> list[float]:
    return [repeat[rival].step_time_ms / repeat[subject].step_time_ms for repeat in repeats]


def _cpu_time_ratios(repeats: Sequence[Repeat], subject: str, rival: str) -> list[float]:
    return [repeat[rival].step_cpu_time_ms / repeat[subject].step_cpu_time_ms for repeat in repeats]


def _describe(ratios: Sequence[float]) -> dict[str, Any]:
    interval = ratio_interval(ratios)
    return {"ratio": interval.ratio, "low": interval.low, "high": interval.high, "raw": list(ratios)}


def _largest_difference(repeats: Sequence[Repeat], subject: str, rival: str) -> float:
    return max(loss_difference(repeat[subject].losses, repeat[rival].losses) for repeat in repeats)


def loss_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest difference between the losses of one step, over the steps that both took, relative to the loss."""
    return max(abs(mine - others) / abs(others) for mine, others in zip(one, other, strict=False))


def say_losses(difference: float) -> str:
    """In words: to the bit, or by how much."""
    return "equal to the bit" if difference == 0 else f"within {difference:.0e}"
