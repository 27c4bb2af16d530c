import pytest
from django.core.exceptions import ValidationError
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.contract.states import State
from jobs.models import Job, Queue, User
from jobs.services.errors import SpecRefused
from jobs.services.submit import submit_job
from tests.jobs.factories import make_spec, make_worker


def test_a_job_is_queued_with_its_whole_spec(alice: User, queue: Queue) -> None:
    spec = make_spec(learning_rate=0.5)
    job = submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=spec, name="  first ")
    job.refresh_from_db()
    assert (job.state, job.outcome, job.name) == (State.QUEUED, None, "first")
    assert job.train_spec == spec
    assert job.spec["learning_rate"] == 0.5


def test_it_takes_the_queues_priority(alice: User, queue: Queue) -> None:
    queue.default_priority = 7
    queue.save()
    assert submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec()).priority == 7


def test_a_refused_spec_queues_nothing(alice: User, queue: Queue) -> None:
    with pytest.raises(SpecRefused) as refused:
        submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec(num_steps=None))
    assert [finding.field for finding in refused.value.findings] == ["num_steps"]
    assert not Job.objects.exists()


def test_what_no_online_worker_can_run_is_refused(alice: User, queue: Queue) -> None:
    make_worker()
    with pytest.raises(SpecRefused):
        submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec(device="cuda"))


def test_what_one_online_worker_can_run_is_queued(alice: User, queue: Queue) -> None:
    make_worker()
    make_worker("gpu", num_gpus=1)
    assert submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec(device="cuda")).pk


def test_too_long_a_name_is_refused_by_field(alice: User, queue: Queue) -> None:
    with pytest.raises(ValidationError) as refused:
        submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec(), name="x" * 201)
    assert list(refused.value.message_dict) == ["name"]


def test_the_wake_up_is_sent_only_on_commit(
    alice: User,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    woken: list[str] = []
    monkeypatch.setattr("jobs.services.wake.wake", woken.append)
    with django_capture_on_commit_callbacks(execute=True):
        submit_job(owner=alice, team=alice.teams.get(), queue=queue, spec=make_spec())
        assert woken == []
    assert woken == ["default"]
