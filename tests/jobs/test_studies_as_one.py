"""A study is paused, resumed, extended, cloned and cancelled as one."""

import json

import pytest
from django.test import Client

from jobs.contract.plan import Axis, Extension, StudyPlan
from jobs.models import AuditEntry, Job, Queue, Study, User
from jobs.selectors.starts import estimate_starts
from jobs.selectors.waiting import waiting_for
from jobs.services.claim import claim_next
from jobs.services.errors import NotAllowed
from jobs.services.studies import clone_study, create_study, extend_study, pause_study, resume_study
from tests.jobs.factories import make_job, make_spec, make_user, make_worker

pytestmark = pytest.mark.django_db

BASE = make_spec(model="gpt-tiny", dataset="stdlib-text").model_dump(mode="json")


@pytest.fixture
def study(alice: User, queue: Queue) -> Study:
    plan = StudyPlan(base=BASE, axes=[Axis(field="num_threads", values=[1])], num_repeats=2)
    return create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan, tags=["night"])


def line(study: Study, first: int = 0) -> list[tuple[int | None, int]]:
    jobs = Job.objects.filter(study=study).order_by("-priority", "order_key", "id")[first:]
    return [(job.study_place, job.spec["seed"] - BASE["seed"]) for job in jobs]


def acts(study: Study) -> list[str]:
    return list(AuditEntry.objects.filter(study=study).order_by("pk").values_list("action", flat=True))


def test_runs_of_a_paused_study_are_held_and_say_why(study: Study, alice: User, queue: Queue) -> None:
    worker = make_worker()
    running = claim_next(worker.pk)
    assert running
    pause_study(study, alice, "the room is too warm")
    held = Job.objects.filter(study=study, state="queued").first()
    assert held
    assert waiting_for(held) == f"Its study “{study.name}” was paused by alice: the room is too warm"
    assert not estimate_starts(queue)
    other = make_job(alice, queue=queue)
    assert "ahead" not in waiting_for(other)
    assert Job.objects.get(pk=running.job_id).state == "starting"
    next_one = claim_next(make_worker("other").pk)
    assert next_one
    assert next_one.job_id == other.pk


def test_a_resumed_study_goes_on_in_its_old_place(study: Study, alice: User, queue: Queue) -> None:
    pause_study(study, alice)
    pause_study(study, alice)
    make_job(alice, queue=queue)
    resume_study(study, alice)
    taken = claim_next(make_worker().pk)
    assert taken
    assert taken.job.study_id == study.pk
    assert acts(study) == ["pause", "resume"]


def test_an_extended_study_gets_only_what_it_lacks_in_turns(study: Study, alice: User) -> None:
    extension = Extension(axes=[Axis(field="num_threads", values=[2])], num_repeats=3)
    assert extend_study(study, alice, extension) == 5
    assert line(study, 4) == [(2, 0), (2, 1), (0, 2), (1, 2), (2, 2)]
    assert Job.objects.filter(study=study, tags__name="night").count() == 9
    assert extend_study(study, alice, extension) == 0
    assert acts(study) == ["extend"]


def test_what_the_rules_refuse_of_an_extension_is_left_out(study: Study, alice: User) -> None:
    make_worker()
    assert extend_study(study, alice, Extension(configurations=[{"precision": "fp8"}, {"num_threads": 3}])) == 2
    assert [entry["changes"] for entry in study.left_out] == [{"precision": "fp8"}]
    assert line(study, 4) == [(3, 0), (3, 1)]


def test_a_clone_is_of_whoever_asks(study: Study) -> None:
    bob = make_user("bob", team=study.team)
    copy = clone_study(study, bob)
    assert (copy.owner, copy.plan, line(copy)) == (bob, study.plan, line(study))
    assert acts(copy) == ["clone"]


def test_only_owner_and_staff_change_a_study(study: Study) -> None:
    bob = make_user("bob", team=study.team)
    for act in (
        lambda: pause_study(study, bob),
        lambda: resume_study(study, bob),
        lambda: extend_study(study, bob, Extension(num_repeats=5)),
    ):
        with pytest.raises(NotAllowed):
            act()
    pause_study(study, make_user("boss", is_staff=True))
    assert study.is_paused


def test_the_api_pauses_resumes_extends_and_clones(study: Study, api: Client) -> None:
    address = f"/api/v1/studies/{study.pk}"
    paused = api.post(f"{address}/pause?reason=too+warm").json()
    assert (paused["is_paused"], paused["pause_reason"]) == (True, "too warm")
    assert api.post(f"{address}/resume").json()["is_paused"] is False
    more = json.dumps({"num_repeats": 3})
    assert api.post(f"{address}/extend", more, content_type="application/json").json()["num_runs"] == 6
    fewer = api.post(f"{address}/extend", json.dumps({"num_repeats": 1}), content_type="application/json")
    assert (fewer.status_code, fewer.json()["errors"][0]["field"]) == (422, "num_repeats")
    copy = api.post(f"{address}/clone")
    assert (copy.status_code, copy.json()["num_runs"]) == (201, 6)
    trail = api.get(f"/api/v1/audit?study={study.pk}").json()["entries"]
    assert [entry["text"] for entry in trail] == ["extended it by 2 runs", "resumed it", "paused it"]
