"""Measuring a configuration again: which runs are queued, and what comes of them."""

import pytest

from jobs.contract.states import Outcome, State
from jobs.models import Attempt, BoardEntry, Job, Reproduction, User
from jobs.models.board import Agreement
from jobs.services.cancel import request_cancel
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt, lose_attempt
from jobs.services.reproductions import add_repeats, missing_seeds, reproduce
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_ended_job, make_spec, make_summary, make_worker, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry(alice: User) -> BoardEntry:
    """Two seeds of one configuration."""
    make_worker()
    for seed, step_time_ms in ((4, 10.0), (5, 10.2)):
        make_ended_job(
            alice, spec=make_spec(seed=seed), summary={"steady_step_time_ms": step_time_ms, "final_eval_loss": 2.6}
        )
    return BoardEntry.objects.select_related("board__baseline").get()


def end(job: Job, outcome: Outcome = Outcome.SUCCEEDED, started: dict[str, object] | None = None, **figures: float):
    finish_attempt(start(job, **(started or {})), outcome, make_summary(**figures))


def end_all(reproduction: Reproduction, *step_times_ms: float, **figures: float) -> Reproduction:
    for job, step_time_ms in zip(reproduction.jobs.order_by("pk"), step_times_ms, strict=True):
        end(job, steady_step_time_ms=step_time_ms, **figures)
    reproduction.refresh_from_db()
    return reproduction


def test_the_same_seeds_are_queued_again_and_agree(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    assert [job.spec["seed"] for job in reproduction.jobs.order_by("pk")] == [4, 5]
    assert end_all(reproduction, 10.1, 10.2).agreement == Agreement.AGREED
    assert reproduction.finding["n"] == 2
    entry.refresh_from_db()
    assert len(entry.runs) == 4


def test_what_is_slower_beyond_noise_is_not_reproduced(alice: User, entry: BoardEntry) -> None:
    assert end_all(reproduce(entry, alice), 20.0, 20.4).agreement == Agreement.DIFFERED


def test_what_ends_at_a_worse_loss_is_not_reproduced(alice: User, entry: BoardEntry) -> None:
    assert end_all(reproduce(entry, alice), 10.0, 10.2, final_eval_loss=3.0).agreement == Agreement.DIFFERED


def test_a_run_that_fails_reproduces_nothing(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    first, second = reproduction.jobs.order_by("pk")
    end(first)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.OPEN
    end(second, Outcome.FAILED)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.DIFFERED


def test_a_last_run_that_is_cancelled_while_queued_closes_it(alice: User, entry: BoardEntry) -> None:
    reproduction = reproduce(entry, alice)
    first, second = reproduction.jobs.order_by("pk")
    end(first, steady_step_time_ms=10.1)
    request_cancel(second, alice)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.STOPPED
    requeue_job(second, alice)
    end(Job.objects.get(pk=second.pk), steady_step_time_ms=10.2)
    reproduction.refresh_from_db()
    assert reproduction.agreement == Agreement.AGREED, "queued again it still tells"


def test_a_last_run_that_is_lost_leaves_the_judgement_to_the_others(alice: User, entry: BoardEntry) -> None:
    make_ended_job(alice, spec=make_spec(seed=6), summary={"steady_step_time_ms": 10.1, "final_eval_loss": 2.6})
    entry.refresh_from_db()
    reproduction = reproduce(entry, alice)
    *others, last = reproduction.jobs.order_by("pk")
    for job in others:
        end(job, steady_step_time_ms=20.0 + 0.01 * job.spec["seed"])
    Job.objects.filter(pk=last.pk).update(max_attempts=1)
    assert lose_attempt(start(last), "gone", release_devices=True) is State.LOST
    reproduction.refresh_from_db()
    assert (reproduction.agreement, reproduction.finding["n"]) == (Agreement.DIFFERED, 2)


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
    first, second = reproduction.jobs.order_by("pk")
    end(first, steady_step_time_ms=10.1)
    attempt = start(second)
    Attempt.objects.filter(pk=attempt.pk).update(resumed_at_step=50)
    finish_attempt(attempt, Outcome.SUCCEEDED, make_summary(steady_step_time_ms=10.2))
    reproduction.refresh_from_db()
    assert (reproduction.agreement, reproduction.finding) == (Agreement.STOPPED, {})


def test_one_seed_cannot_be_verified(alice: User) -> None:
    make_ended_job(alice)
    with pytest.raises(NotPossible, match="add repeats first"):
        reproduce(BoardEntry.objects.get(), alice)


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
    assert [job.spec["seed"] for job in add_repeats(entry, alice)] == [6, 7, 8], "another configuration has its own"


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
