from typing import Any

import pytest
from django.test import Client

from jobs.contract.events import ErrorInfo
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.models import AuditEntry, Job, User
from jobs.services.actions import Act, Order, perform
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_summary, make_user, start

pytestmark = pytest.mark.django_db


def make_too_large(owner: User, phase: str = "training", **spec: object) -> Job:
    job = make_job(owner, spec=make_spec(**({"micro_batch_size": 8, "grad_accum_steps": 2} | spec)), name="large")
    error = ErrorInfo(type="OutOfMemory", message="Memory ran out.", phase=phase)
    finish_attempt(start(job), Outcome.OUT_OF_MEMORY, make_summary(), error)
    job.refresh_from_db()
    return job


def fit(api: Client, job_id: int) -> Any:
    return api.post(f"/api/v1/jobs/{job_id}/fit", "{}", content_type="application/json")


def test_the_same_work_is_queued_with_less_memory_and_only_once(alice: User) -> None:
    job = make_too_large(alice, seed=7)
    made = perform(alice, job, Order(Act.FIT, "for Monday"))
    assert perform(alice, job, Order(Act.FIT)) == made
    before, after = job.train_spec, TrainSpec.model_validate(made.spec)
    assert (after.micro_batch_size, after.grad_accum_steps, after.seed) == (4, 4, 7)
    assert after.global_batch_size == before.global_batch_size
    assert (made.state, made.name, made.smaller_of_id, made.queue) == ("queued", "large", job.pk, job.queue)
    [entry] = AuditEntry.objects.all()
    assert (entry.actor, entry.action, entry.job, entry.reason, entry.detail) == (
        alice, "fit", made, "for Monday", {"source": job.pk},
    )  # fmt: skip


def test_a_team_mate_may_queue_it_as_a_job_of_their_own(alice: User) -> None:
    job = make_too_large(alice)
    bob = make_user("bob", team=job.team)
    assert perform(bob, job, Order(Act.FIT)).owner == bob


def test_what_is_still_too_large_is_halved_again(alice: User) -> None:
    made = perform(alice, make_too_large(alice), Order(Act.FIT))
    finish_attempt(start(made), Outcome.OUT_OF_MEMORY, make_summary())
    made.refresh_from_db()
    again = perform(alice, made, Order(Act.FIT))
    assert (again.spec["micro_batch_size"], again.spec["grad_accum_steps"]) == (2, 8)


def test_nothing_is_queued_where_nothing_would_help(alice: User) -> None:
    hopeless = [
        make_ended_job(alice),
        make_too_large(alice, micro_batch_size=1),
        make_too_large(alice, phase="importing"),
    ]
    for job in hopeless:
        with pytest.raises(NotPossible, match=f"instead of job {job.pk}"):
            perform(alice, job, Order(Act.FIT))
    assert Job.objects.count() == len(hopeless)


def test_the_api_tells_one_job_of_the_other(api: Client, alice: User, strangers_job: Job) -> None:
    job = make_too_large(alice)
    first, second = (fit(api, job.pk) for _time in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert first.json()["smaller_of"] == job.pk
    assert api.get(f"/api/v1/jobs/{job.pk}").json()["smaller"] == first.json()["id"]
    assert fit(api, strangers_job.pk).status_code == 404
    assert fit(api, first.json()["id"]).status_code == 409


def test_one_click_on_the_page_queues_it_and_leads_there(alice: User) -> None:
    job = make_too_large(alice)
    web = Client()
    web.force_login(alice)
    assert 'id="fit"' in web.get(f"/jobs/{job.pk}/").content.decode()
    sent = {"act": "fit", "jobs": job.pk, "next": f"/jobs/{job.pk}/"}
    page = web.post("/jobs/act/", sent, follow=True).content.decode()
    made = Job.objects.get(smaller_of=job)
    assert 'id="fit"' not in page
    assert f'id="smaller" href="/jobs/{made.pk}/"' in page
    told = web.get(f"/jobs/{made.pk}/").content.decode()
    assert f'href="/jobs/{job.pk}/">job #{job.pk}</a>' in told
    assert f"queued it in smaller micro-batches than #{job.pk}" in told
