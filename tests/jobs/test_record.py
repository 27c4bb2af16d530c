import math

import pytest

from jobs.contract.findings import Finding, Severity
from jobs.contract.keys import environment_key, workload_key
from jobs.contract.states import State
from jobs.curves import unpack
from jobs.models import Attempt
from jobs.services.claim import claim_next
from jobs.services.errors import StaleFence
from jobs.services.finish import lose_attempt
from jobs.services.record import (
    heartbeat,
    record_finding,
    record_phase,
    record_points,
    record_started,
    record_supervisor,
)
from tests.jobs.factories import VERSIONS, make_job, make_worker, points, start, started_event

pytestmark = pytest.mark.django_db

WARNING = Finding(code="warn_seed", field="seed", severity=Severity.WARN, message="Odd.")


def test_a_start_makes_the_job_run_and_its_keys_known() -> None:
    job = make_job()
    attempt = claim_next(make_worker().pk)
    assert attempt is not None
    event = started_event(job)
    record_started(attempt, event)
    job.refresh_from_db()
    attempt.refresh_from_db()
    assert job.state == State.RUNNING
    assert attempt.resolved_spec["device"] == "cpu"
    assert attempt.workload_key == workload_key(event.spec, "r1")
    assert attempt.environment_key == environment_key("Fast CPU", VERSIONS)


def test_a_flush_is_one_chunk_with_its_range_and_counts() -> None:
    attempt = start(make_job())
    record_points(attempt, 0, [points([1, 2], train_loss=[3, math.nan]), points([2], eval_loss=[2.5])])
    chunk = attempt.chunks.get()
    attempt.refresh_from_db()
    assert (chunk.first_step, chunk.last_step, chunk.num_points) == (1, 2, 3)
    assert (attempt.num_points, attempt.last_step) == (3, 2)
    frames = unpack(chunk.payload)
    assert [list(frame.series) for frame in frames] == [["train_loss"], ["eval_loss"]]
    assert math.isnan(frames[0].series["train_loss"][1])


def test_the_same_flush_told_again_is_not_stored_twice() -> None:
    """The first answer may be lost on its way when the database goes away."""
    attempt = start(make_job())
    for _time in range(2):
        record_points(attempt, 0, [points([1], train_loss=[3])])
    attempt.refresh_from_db()
    assert (attempt.num_points, attempt.chunks.count()) == (1, 1)


def test_findings_add_up() -> None:
    attempt = start(make_job())
    for _time in range(2):
        record_finding(attempt, WARNING)
    record_finding(attempt, WARNING.model_copy(update={"field": "device"}))
    attempt.refresh_from_db()
    assert [finding["field"] for finding in attempt.findings] == ["seed", "device"]


def test_a_heartbeat_renews_the_lease() -> None:
    attempt = start(make_job())
    Attempt.objects.update(lease_expires_at=attempt.claimed_at)
    heartbeat(attempt)
    expires = attempt.lease_expires_at
    attempt.refresh_from_db()
    assert attempt.lease_expires_at >= expires


@pytest.mark.parametrize(
    "write",
    [
        heartbeat,
        lambda attempt: record_supervisor(attempt, 99, "a-tag"),
        lambda attempt: record_phase(attempt, "training"),
        lambda attempt: record_finding(attempt, WARNING),
        lambda attempt: record_points(attempt, 0, [points([1], train_loss=[1])]),
        lambda attempt: record_started(attempt, started_event(attempt.job)),
    ],
)
def test_no_write_of_a_stale_owner_lands(write: object) -> None:
    attempt = start(make_job())
    lose_attempt(attempt, "silent", release_devices=True)
    before = Attempt.objects.values().get(pk=attempt.pk)
    with pytest.raises(StaleFence):
        write(attempt)  # type: ignore[operator]
    assert Attempt.objects.values().get(pk=attempt.pk) == before
    assert not attempt.chunks.exists()
