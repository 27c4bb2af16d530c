"""Measuring a configuration again: which runs are queued, and what comes of them."""

import math
import random
from importlib import import_module
from statistics import fmean

import pytest
from django.apps import apps

from jobs.board_runs import BoardRun
from jobs.contract.states import Outcome, State
from jobs.models import Attempt, BoardEntry, Job, Reproduction, User, Workload
from jobs.models.board import Agreement
from jobs.ranking import ratio_to
from jobs.reproduction import is_verified, seeds_wanted
from jobs.selectors.reproductions import newest_reproductions
from jobs.services.cancel import request_cancel
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt, lose_attempt
from jobs.services.reproductions import add_repeats, missing_seeds, reproduce
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_ended_job, make_spec, make_summary, make_worker, start

pytestmark = pytest.mark.django_db

SEEDS = [4, 5, 6, 7, 8]
BEFORE_MS = [10.0, 10.1, 10.05, 9.95, 10.0]
AGAIN_MS = [10.1, 10.0, 10.05, 10.05, 9.95]


@pytest.fixture
def entry(alice: User) -> BoardEntry:
    """Five seeds of one configuration."""
    make_worker()
    for seed, step_time_ms in zip(SEEDS, BEFORE_MS, strict=True):
        measure(alice, seed, step_time_ms)
    return BoardEntry.objects.select_related("board__baseline").get()


def measure(alice: User, seed: int, step_time_ms: float | None) -> None:
    summary = {"steady_step_time_ms": step_time_ms, "final_eval_loss": 2.6}
    make_ended_job(alice, spec=make_spec(seed=seed), summary=summary)


def end(
    job: Job, outcome: Outcome = Outcome.SUCCEEDED, started: dict[str, object] | None = None, **figures: float | None
):
    finish_attempt(start(job, **(started or {})), outcome, make_summary(**figures))


def words_of(entry: BoardEntry) -> str:
    return newest_reproductions([entry.pk])[entry.pk][0].words


def end_all(reproduction: Reproduction, *step_times_ms: float, **figures: float) -> Reproduction:
    for job, step_time_ms in zip(reproduction.jobs.order_by("pk"), step_times_ms, strict=True):
        end(job, steady_step_time_ms=step_time_ms, **figures)
    reproduction.refresh_from_db()
    return reproduction


def test_the_same_seeds_are_queued_again_and_agree(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    assert [job.spec["seed"] for job in reproduction.jobs.order_by("pk")] == SEEDS
    assert end_all(reproduction, *AGAIN_MS).agreement == Agreement.AGREED
    assert reproduction.finding["n"] == 5
    assert words_of(entry) == "1× the step time (99 % interval 0.983 to 1.02, n = 5): all of it within 5 %"
    entry.refresh_from_db()
    assert len(entry.runs) == 10


def test_what_is_slower_beyond_noise_is_not_reproduced(alice: User, entry: BoardEntry) -> None:
    assert end_all(reproduce(entry, alice), *(2 * time_ms for time_ms in AGAIN_MS)).agreement == Agreement.DIFFERED


def test_a_small_difference_is_within_what_is_verified_though_it_be_shown(alice: User, entry: BoardEntry) -> None:
    found = end_all(reproduce(entry, alice), *(1.01 * time_ms for time_ms in BEFORE_MS))
    assert found.finding["low"] > 1
    assert found.agreement == Agreement.AGREED


def test_an_interval_that_would_agree_with_nearly_everything_verifies_nothing(alice: User, entry: BoardEntry) -> None:
    found = end_all(reproduce(entry, alice), 10.0, 13.0, 8.0, 11.0, 9.0)
    assert found.finding["low"] < 1 < found.finding["high"]
    assert found.agreement == Agreement.UNSURE
    assert words_of(entry).endswith(": not all of it within 5 %, more repeats are needed")


def test_a_margin_that_a_bad_first_run_fixed_lets_no_worse_loss_through(alice: User, entry: BoardEntry) -> None:
    Workload.objects.update(loss_margin=1.0)
    found = end_all(reproduce(entry, alice), *AGAIN_MS, final_eval_loss=3.0)
    assert found.agreement == Agreement.DIFFERED


def test_a_loss_that_is_not_shown_to_be_what_it_was_verifies_nothing(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    jobs = list(reproduction.jobs.order_by("pk"))
    for job, step_time_ms, off in zip(jobs, AGAIN_MS, (-0.2, 0.2, 0.1, -0.1, 0.0), strict=True):
        end(job, steady_step_time_ms=step_time_ms, final_eval_loss=2.6 + off)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.UNSURE
    assert words_of(entry).endswith(": its loss is not shown to be what it was")


def test_runs_without_a_steady_time_are_no_difference(alice: User) -> None:
    for seed in SEEDS:
        measure(alice, seed, None)
    reproduction = reproduce(BoardEntry.objects.get(), alice)
    for job in reproduction.jobs.all():
        end(job, steady_step_time_ms=None)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.UNSURE


def test_what_ends_at_a_worse_loss_is_not_reproduced(alice: User, entry: BoardEntry) -> None:
    found = end_all(reproduce(entry, alice), *AGAIN_MS, final_eval_loss=3.0)
    assert found.agreement == Agreement.DIFFERED


def test_a_run_that_fails_reproduces_nothing(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    *others, last = reproduction.jobs.order_by("pk")
    for job in others:
        end(job)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.OPEN
    end(last, Outcome.FAILED)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.DIFFERED


def test_a_last_run_that_is_cancelled_while_queued_closes_it(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    first, *others = reproduction.jobs.order_by("pk")
    end(first, steady_step_time_ms=10.1)
    for job in others:
        request_cancel(job, alice)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.STOPPED
    for job, step_time_ms in zip(others, AGAIN_MS[1:], strict=True):
        requeue_job(job, alice)
        end(Job.objects.get(pk=job.pk), steady_step_time_ms=step_time_ms)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.AGREED, "queued again it still tells"


def test_a_last_run_that_is_lost_leaves_the_judgement_to_the_others(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    *others, last = reproduction.jobs.order_by("pk")
    for job in others:
        end(job, steady_step_time_ms=20.0 + 0.01 * job.spec["seed"])
    Job.objects.filter(pk=last.pk).update(max_attempts=1)
    assert lose_attempt(start(last), "gone", release_devices=True) is State.LOST
    reproduction.refresh_from_db()
    assert (reproduction.agreement, reproduction.finding["n"]) == (Agreement.DIFFERED, 4)


def test_runs_on_other_ground_say_nothing(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    for job in reproduction.jobs.order_by("pk"):
        end(job, started={"device_name": "Other CPU"})
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.MOVED


def test_it_is_reproduced_once_at_a_time(alice: User, entry: BoardEntry) -> None:
    reproduce(entry, alice)
    with pytest.raises(NotPossible, match="being reproduced already"):
        reproduce(entry, alice)


def test_a_run_in_two_parts_has_no_time_to_agree_with(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    first, *others = reproduction.jobs.order_by("pk")
    end(first, steady_step_time_ms=10.1)
    for job in others:
        attempt = start(job)
        Attempt.objects.filter(pk=attempt.pk).update(resumed_at_step=50)
        finish_attempt(attempt, Outcome.SUCCEEDED, make_summary(steady_step_time_ms=10.2))
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.STOPPED
    assert "n" not in reproduction.finding


def test_too_few_seeds_to_verify_are_not_run_again_but_added_to(alice: User) -> None:
    make_worker()
    for seed in (0, 1):
        make_ended_job(alice, spec=make_spec(seed=seed))
    entry = BoardEntry.objects.select_related("board__baseline").get()
    with pytest.raises(NotPossible, match="2 of the 5 seeds that it takes to verify it are there: add repeats first"):
        reproduce(entry, alice)
    assert len(add_repeats(entry, alice)) == 3


def test_what_is_noisier_takes_more_seeds(alice: User) -> None:
    make_worker()
    for seed, step_time_ms in enumerate([10.0, 10.5, 9.7, 10.2, 9.8]):
        measure(alice, seed, step_time_ms)
    entry = BoardEntry.objects.select_related("board__baseline").get()
    with pytest.raises(NotPossible, match=r"5 of the 1\d seeds"):
        reproduce(entry, alice)
    num_wanted = 5 + len(add_repeats(entry, alice))
    assert 10 <= num_wanted <= 15


def noisy_runs(rng: random.Random, num: int, noise: float, factor: float = 1.0) -> list[BoardRun]:
    times_ms = [10 * factor * math.exp(rng.gauss(0, noise)) for _seed in range(num)]
    return [BoardRun(seed, seed, "", f"{seed:02}", steady_step_time_ms=ms) for seed, ms in enumerate(times_ms)]


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.02])
def test_what_did_not_change_is_mostly_verified_and_what_did_hardly_ever(noise: float) -> None:
    rng = random.Random(7)
    found = {factor: [is_one_verified(rng, noise, factor) for _time in range(1000)] for factor in (1.0, 1.05, 0.95)}
    assert fmean(found[1.0]) > 0.7
    assert fmean(found[1.05]) < 0.01
    assert fmean(found[0.95]) < 0.01


def is_one_verified(rng: random.Random, noise: float, factor: float) -> bool:
    """As many seeds as the noise of a dozen runs asks for, measured again where steps take so much longer."""
    num = seeds_wanted(noisy_runs(rng, 12, noise))
    before, again = noisy_runs(rng, num, noise), noisy_runs(rng, num, noise, factor)
    times = ratio_to(*([(run.seed, run.steady_step_time_ms or 0.0) for run in runs] for runs in (again, before)))
    return times is not None and is_verified(times)


def test_what_two_pairs_had_verified_is_not_told_as_verified_any_more(alice: User, entry: BoardEntry) -> None:
    about = {"entry": entry, "by": alice, "originals": [], "agreement": "agreed"}
    findings = [{"ratio": 1, "low": 1 / high, "high": high, "n": 2} for high in (1.06, 1.04)]
    wide, narrow = (Reproduction.objects.create(**about, finding=finding) for finding in findings)
    import_module("jobs.migrations.0027_reproduction_unsure").judge_again(apps, None)
    found = dict(Reproduction.objects.values_list("pk", "agreement"))
    assert found == {wide.pk: Agreement.UNSURE, narrow.pk: Agreement.AGREED}


def test_another_teams_runs_cannot_be_queued_again(stranger: User, entry: BoardEntry) -> None:
    with pytest.raises(NotPossible):
        reproduce(entry, stranger)


def test_repeats_are_queued_with_the_seeds_that_are_missing(alice: User, entry: BoardEntry) -> None:
    make_ended_job(alice, spec=make_spec(seed=4, precision="bf16-mixed"))
    other = BoardEntry.objects.exclude(pk=entry.pk).select_related("board__baseline").get()
    assert [job.spec["seed"] for job in add_repeats(other, alice)] == [5, 6, 7, 8]
    assert {job.spec["precision"] for job in Job.objects.filter(outcome=None)} == {"bf16-mixed"}
    with pytest.raises(NotPossible, match="queued already"):
        add_repeats(other, alice)
    with pytest.raises(NotPossible, match="has its repeats already"):
        add_repeats(entry, alice)


@pytest.mark.parametrize(
    ("known", "of_baseline", "seeds"),
    [
        ({0}, [0, 1, 2, 3, 4], [1, 2, 3, 4]),
        ({0, 1}, [0, 1], [2, 3, 4]),
        (set(), [], [0, 1, 2, 3, 4]),
        ({9}, [0, 1], [0, 1, 10, 11]),
        ({0, 1, 2, 3, 4}, [7], []),
    ],
)
def test_seeds_of_the_baseline_come_first(known: set[int], of_baseline: list[int], seeds: list[int]) -> None:
    assert missing_seeds(known, of_baseline, 5) == seeds
