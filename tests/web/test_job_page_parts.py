"""A job's page: operators, attempts side by side, tags, and what makes the same run elsewhere."""

import json

import pytest
from django.test import Client

from jobs.attempt_files import AttemptFiles
from jobs.contract.spec import parse_spec
from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.selectors.operators import read_operators
from jobs.services.finish import finish_attempt
from jobs.services.requeue import requeue_job
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_summary, start
from tests.web.conftest import browser_of


def page_of(client: Client, job: Job) -> str:
    return client.get(f"/jobs/{job.pk}/").content.decode()


def leave_operators(job: Job, content: str) -> None:
    attempt = job.last_attempt
    folder = AttemptFiles(attempt.pk).artifacts / "profile"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "operators.json").write_text(content)
    attempt.artifacts = [
        {"name": "operators.json", "kind": "operators", "file": "profile/operators.json", "size_bytes": 1}
    ]
    attempt.save()


def test_operators_stand_on_the_page_with_their_shares(web: Client, alice: User) -> None:
    job = make_ended_job(alice)
    times = {"count": 4, "self_cpu_us": 6000.0, "self_device_us": 0.0, "cpu_us": 1, "device_us": 0, "is_kernel": False}
    operators = [
        {"name": "aten::mm<x>", "library": "BLAS"} | times,
        {"name": "aten::add", "library": "ATen"} | times | {"self_cpu_us": 2000.0},
    ]
    table = {"num_steps": 2, "sorted_by": "self_cpu_us", "operators": operators, "libraries": []}
    leave_operators(job, json.dumps(table))
    first, second = read_operators(job.last_attempt).rows
    assert (first.ms_per_step, first.calls_per_step, first.percent, first.percent_of_most) == (3.0, 2.0, 75.0, 100.0)
    assert (second.ms_per_step, second.percent) == (1.0, 25.0)
    page = page_of(web, job)
    assert "aten::mm&lt;x&gt;" in page
    assert "data-sortable" in page


@pytest.mark.parametrize("content", ["", "{}", "no json", '{"num_steps": 1, "sorted_by": 1, "operators": 2}'])
def test_a_broken_table_is_left_out_and_the_page_stands(web: Client, alice: User, content: str) -> None:
    job = make_ended_job(alice)
    leave_operators(job, content)
    assert "data-sortable" not in page_of(web, job)


def test_attempts_that_measured_stand_side_by_side(web: Client, alice: User) -> None:
    job = make_ended_job(alice, summary={"steady_step_time_ms": 4.0})
    assert "Attempts side by side" not in page_of(web, job)
    finish_attempt(start(requeue_job(job, alice)), Outcome.SUCCEEDED, make_summary(steady_step_time_ms=3.0))
    response = web.get(f"/jobs/{job.pk}/")
    rows = {row.name: row.values for row in response.context["beside"]}
    assert rows["steady_step_time_ms"] == [3.0, 4.0]
    assert "Attempts side by side" in response.content.decode()


def test_the_commands_hold_the_spec_as_it_ran(web: Client, alice: User) -> None:
    job = make_ended_job(alice, spec=make_spec(profile_steps=3))
    text = web.get(f"/jobs/{job.pk}/").context["reproduction"]
    spec = parse_spec(text.partition("<<'END'\n")[2].partition("\nEND\n")[0])
    assert spec.model_dump(mode="json") == job.last_attempt.resolved_spec
    assert text.endswith("python -m workers.engine run spec.json --artifacts artifacts\n")


def test_tags_are_put_on_and_taken_off_on_the_page(web: Client, bob: User, job: Job) -> None:
    address = f"/jobs/{job.pk}/"
    web.post("/jobs/act/", {"act": "tag", "jobs": str(job.pk), "tags": "night run, base", "next": address})
    page = page_of(web, job)
    assert "Take the tag night run off" in page
    assert "Take the tag" not in page_of(browser_of(bob), job)
    web.post("/jobs/act/", {"act": "untag", "jobs": str(job.pk), "tags": "base", "next": address})
    assert [tag.name for tag in job.tags.all()] == ["night run"]


def test_it_is_run_again_from_the_page(web: Client, alice: User) -> None:
    job = make_job(alice, spec=make_spec(seed=4))
    assert 'id="run-again"' in page_of(web, job)
    web.post("/jobs/act/", {"act": "clone", "jobs": str(job.pk)})
    copy = Job.objects.exclude(pk=job.pk).get()
    assert (copy.spec, copy.owner) == (job.spec, alice)
