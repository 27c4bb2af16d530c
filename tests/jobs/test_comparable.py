"""Comparable or not, and what was measured already."""

import pytest

from jobs.contract.spec import TrainSpec
from jobs.models import Job, User
from jobs.selectors.comparable import comparability
from jobs.selectors.measured import already_measured
from tests.jobs.factories import VERSIONS, make_ended_job, make_job, make_spec

pytestmark = pytest.mark.django_db


def words(*jobs: Job) -> tuple[list[str], list[str]]:
    found = comparability(jobs)
    assert found is not None
    return [one.words for one in found.of_work], [one.words for one in found.of_ground]


def test_another_configuration_and_seed_are_comparable(alice: User) -> None:
    found = comparability(
        [make_ended_job(alice), make_ended_job(alice, spec=make_spec(precision="bf16-mixed", seed=3))]
    )
    assert found is not None
    assert found.is_comparable


def test_the_field_that_keeps_two_runs_apart_is_named(alice: User) -> None:
    plain = make_ended_job(alice)
    assert words(plain, make_ended_job(alice, spec=make_spec(learning_rate=0.1))) == (
        ["Learning rate: 0.001 / 0.1"],
        [],
    )
    newer = make_ended_job(alice, started={"versions": VERSIONS | {"torch": "2.14.0"}})
    assert words(plain, newer) == ([], ["PyTorch: 2.13.0 / 2.14.0"])
    bigger = make_ended_job(alice, spec=make_spec(micro_batch_size=64), started={"device_name": "Slow CPU"})
    assert words(plain, bigger) == (["Global batch: 32 / 64"], ["Device: Fast CPU / Slow CPU"])


def test_nothing_is_said_of_runs_that_have_not_started(alice: User) -> None:
    assert comparability([make_ended_job(alice), make_job(alice)]) is None


@pytest.mark.parametrize(
    ("asked", "is_found"),
    [
        ({}, True),
        ({"seed": 99}, True),
        ({"device": "cpu"}, True),
        ({"precision": "bf16-mixed"}, False),
        ({"learning_rate": 0.5}, False),
        ({"num_steps": 7}, False),
        ({"num_steps": None, "num_epochs": 2}, False),  # how many steps that is only an engine tells
    ],
)
def test_what_was_measured_already_is_found(alice: User, asked: dict[str, object], is_found: bool) -> None:
    for seed in (0, 1):
        make_ended_job(alice, spec=make_spec(seed=seed))
    found = already_measured(make_spec(**asked), alice)
    assert (found is not None) == is_found
    if found:
        assert found.num_runs == 2


def test_other_teams_measurements_are_not_told(alice: User, stranger: User) -> None:
    make_ended_job(stranger)
    assert already_measured(TrainSpec(num_steps=100), alice) is None
