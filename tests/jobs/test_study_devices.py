"""A study's runs keep to the type of device of the first one, though their queue has others."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.contract.catalog import BUILT_IN
from jobs.contract.plan import Axis, StudyPlan
from jobs.models import Attempt, Job, Queue, Study, User, Worker
from jobs.selectors.starts import estimate_starts
from jobs.selectors.turns import best_hosts
from jobs.selectors.waiting import waiting_for
from jobs.services.claim import claim_next
from jobs.services.studies import create_study
from jobs.services.workers import forget_worker, register_worker, say_goodbye
from tests.jobs.factories import host_facts, make_job, make_spec, make_user, start

pytestmark = pytest.mark.django_db


def make_host(name: str, *gpus: str, cpu: str = "Fast CPU") -> Worker:
    facts = host_facts(name, num_gpus=len(gpus))
    names = [cpu, *gpus]
    devices = [device.model_copy(update={"name": names[place]}) for place, device in enumerate(facts.devices)]
    facts = facts.model_copy(update={"devices": devices})
    return register_worker(uuid.uuid5(uuid.NAMESPACE_DNS, name), 1, ["default"], facts, BUILT_IN)


def make_study(owner: User, queue: Queue, num_repeats: int = 2, **base: object) -> Study:
    spec = make_spec(**{"device": "cuda"} | base).model_dump(mode="json")
    plan = StudyPlan(base=spec, axes=[Axis(field="precision", values=["bf16-mixed"])], num_repeats=num_repeats)
    return create_study(owner=owner, team=owner.teams.get(), queue=queue, plan=plan)


def took(worker: Worker) -> Attempt | None:
    return claim_next(worker.pk)


def test_hosts_with_another_type_pass_its_runs_by_and_take_what_is_behind(alice: User, queue: Queue) -> None:
    old, new = make_host("old", "A100"), make_host("new", "H100", "H100")
    study = make_study(alice, queue)
    behind = make_job(alice, spec=make_spec(device="cuda"), priority=-1)
    first = took(new)
    assert first
    assert first.job.study == study
    study.refresh_from_db()
    assert study.devices == ["H100"]
    other = took(old)
    assert other
    assert other.job == behind
    assert took(old) is None
    again = took(new)
    assert again
    assert again.job.study == study


def test_another_study_may_begin_on_another_type(alice: User, queue: Queue) -> None:
    old, new = make_host("old", "A100"), make_host("new", "H100")
    studies = [make_study(alice, queue, num_repeats=count) for count in (2, 3)]
    attempts = [took(new), took(old)]
    assert [attempt.job.study for attempt in attempts if attempt] == studies


def test_where_the_host_chooses_the_kind_all_runs_keep_to_the_first_ones(alice: User, queue: Queue) -> None:
    plain, with_gpu = make_host("plain"), make_host("with-gpu", "H100")
    on_cpu = make_study(alice, queue, device="auto")
    assert took(plain)
    on_cpu.refresh_from_db()
    assert on_cpu.device_names == {"cpu": "Fast CPU", "auto": "cpu"}
    assert took(with_gpu) is None
    on_gpu = make_study(alice, queue, device="auto", num_repeats=3)
    assert took(with_gpu)
    on_gpu.refresh_from_db()
    assert on_gpu.device_names == {"cuda": "H100", "auto": "cuda"}


def test_a_study_that_varies_the_device_keeps_to_one_type_of_each_kind(alice: User, queue: Queue) -> None:
    spec = make_spec(device="cpu").model_dump(mode="json")
    plan = StudyPlan(base=spec, axes=[Axis(field="device", values=["cuda"])], num_repeats=2)
    host, slow = make_host("host", "H100"), make_host("slow", "A100", cpu="Slow CPU")
    study = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan)
    assert took(host)
    assert took(host)
    study.refresh_from_db()
    assert study.device_names == {"cpu": "Fast CPU", "cuda": "H100"}
    assert took(slow) is None


def test_of_a_host_with_several_types_it_gets_its_own(alice: User, queue: Queue) -> None:
    mixed = make_host("mixed", "A100", "H100", "H100")
    study = make_study(alice, queue)
    Study.objects.update(device_names={"cuda": "H100"})
    attempts = [took(mixed), took(mixed), took(mixed)]
    assert [[device.name for device in each.devices.all()] for each in attempts if each] == [["H100"], ["H100"]]
    assert study.jobs.filter(state="queued").count() == 2


def test_a_type_that_is_away_is_waited_for_until_its_host_is_forgotten(alice: User, queue: Queue) -> None:
    old, new = make_host("old", "A100"), make_host("new", "H100")
    study = make_study(alice, queue)
    start(study.jobs.get(study_place=0, spec__seed=0), new)
    say_goodbye(new.pk)
    study.refresh_from_db()
    waiting = study.jobs.filter(state="queued").first()
    assert waiting
    assert "keeps to H100" in waiting_for(waiting)
    assert set(estimate_starts(queue).values()) == {None}
    assert took(old) is None
    Attempt.objects.update(outcome="lost", ended_at=timezone.now())
    new.heartbeat_at = timezone.now() - timedelta(hours=1)
    new.save()
    forget_worker(new, make_user(is_staff=True))
    assert took(old)
    study.refresh_from_db()
    assert study.devices == ["A100"]


def test_a_host_of_another_type_is_neither_held_for_it_nor_counted_on(alice: User, queue: Queue) -> None:
    make_host("old", "A100", "A100")
    new = make_host("new", "H100", "H100")
    study = make_study(alice, queue, num_devices=2, parallelism="ddp")
    Study.objects.update(device_names={"cuda": "H100"})
    job = Job.objects.filter(study=study).select_related("study").earliest("order_key")
    assert best_hosts(job) == [new]
    start(make_job(alice, spec=make_spec(device="cuda")), new)
    assert set(estimate_starts(queue).values()) == {None}  # for nothing is known of what runs on the only host for it
