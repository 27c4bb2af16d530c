"""Repeats are added to a study until its times are sure, fifteen at the most; and what a study would take is told."""

import json

import pytest
from django.test import Client

from jobs.contract.plan import Axis, Extension, StudyPlan
from jobs.contract.states import Outcome
from jobs.models import Job, Queue, Study, User
from jobs.selectors.studies import view_study
from jobs.selectors.study_estimates import estimate_extension, estimate_study
from jobs.selectors.study_words import row_words
from jobs.services.estimates import store_answer, want_estimate
from jobs.services.finish import finish_attempt
from jobs.services.studies import cancel_study, create_study, extend_study, pause_study
from jobs.services.study_repeats import add_repeats
from tests.jobs.factories import make_ended_job, make_spec, make_summary, make_worker, start
from tests.jobs.test_estimates import ANSWER

pytestmark = pytest.mark.django_db

BASE = make_spec(model="gpt-tiny", dataset="stdlib-text").model_dump(mode="json")


def plan(*values: int, num_repeats: int = 2, until_sure: bool = True) -> StudyPlan:
    axes = [Axis(field="num_threads", values=list(values))]
    return StudyPlan(base=BASE, axes=axes, num_repeats=num_repeats, until_sure=until_sure)


def submit(alice: User, queue: Queue, asked: StudyPlan) -> Study:
    return create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=asked, tags=["night"])


def end_all(study: Study, noise: dict[int, float], outcome: Outcome = Outcome.SUCCEEDED) -> None:
    """End what waits; a configuration's times go up and down by its noise from one seed to the next."""
    worker = make_worker()
    for job in Job.objects.filter(study=study, state="queued"):
        factor = 1 + noise.get(job.study_place or 0, 0.0) * (job.spec["seed"] % 2)
        finish_attempt(start(job, worker), outcome, make_summary(steady_step_time_ms=10.0 * factor))


def num_runs(study: Study) -> list[int]:
    places = list(Job.objects.filter(study=study).values_list("study_place", flat=True))
    return [places.count(place) for place in sorted(set(places))]


def test_only_what_is_unsure_is_repeated_with_its_baseline(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(1, 2))
    assert add_repeats() == 0
    end_all(study, {2: 0.05})
    assert add_repeats() == 4
    assert num_runs(study) == [4, 2, 4]
    waiting = Job.objects.filter(study=study, state="queued").order_by("order_key", "id")
    assert [(job.study_place, job.spec["seed"] - BASE["seed"]) for job in waiting] == [(0, 2), (2, 2), (2, 3), (0, 3)]
    assert {tag.name for job in waiting for tag in job.tags.all()} == {"night"}


def test_after_fifteen_it_is_too_noisy_here(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(1, num_repeats=13))
    end_all(study, {1: 0.5})
    assert add_repeats() == 4
    end_all(study, {1: 0.5})
    assert add_repeats() == 0
    study.refresh_from_db()
    assert (num_runs(study), study.adds_repeats) == ([15, 15], False)


def test_what_differs_by_less_than_its_noise_is_called_so(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(1, num_repeats=3, until_sure=False))
    end_all(study, {1: 0.05})
    assert "Too noisy here" in row_words(next(row for row in view_study(study).rows if not row.is_baseline))


@pytest.mark.parametrize("until_sure", [True, False])
def test_a_study_that_is_sure_or_never_asked_stays_as_it_is(alice: User, queue: Queue, until_sure: bool) -> None:
    study = submit(alice, queue, plan(1, until_sure=until_sure))
    end_all(study, {} if until_sure else {1: 0.5})
    assert add_repeats() == 0
    assert num_runs(study) == [2, 2]
    study.refresh_from_db()
    assert not study.adds_repeats


def test_nothing_is_added_to_what_is_paused_cancelled_or_never_succeeds(alice: User, queue: Queue) -> None:
    paused, cancelled, failing = (submit(alice, queue, plan(1)) for _study in range(3))
    end_all(paused, {1: 0.5})
    pause_study(paused, alice)
    cancel_study(cancelled, alice)
    end_all(failing, {}, Outcome.DIVERGED)
    assert add_repeats() == 0


def test_a_plan_that_this_version_cannot_read_gets_no_more_repeats(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(1))
    end_all(study, {1: 0.5})
    Study.objects.update(plan=study.plan | {"base": BASE | {"an_option_of_before": 1}})
    assert add_repeats() == 0
    study.refresh_from_db()
    assert not study.adds_repeats


def test_an_estimate_says_what_is_known_and_of_how_many_it_is_not(alice: User, queue: Queue) -> None:
    make_worker()
    team = alice.teams.get()
    asked = StudyPlan(base=BASE, axes=[Axis(field="precision", values=["fp8", "bf16-mixed"])], num_repeats=4)
    nothing = estimate_study(asked, queue, team)
    assert (nothing.num_configurations, nothing.num_runs) == (2, 8)
    assert (nothing.device_minutes, nothing.num_untimed, nothing.peak_bytes, nothing.num_unweighed) == (
        None,
        2,
        None,
        2,
    )
    assert [one.changes for one, _findings in nothing.left_out] == [{"precision": "fp8"}]
    store_answer(want_estimate(make_spec(**BASE), queue), ANSWER)
    assert (estimate_study(asked, queue, team).peak_bytes, estimate_study(asked, queue, team).num_unweighed) == (180, 1)
    make_ended_job(alice, spec=make_spec(**BASE | {"num_steps": 7}), summary={"peak_rss_bytes": 200})
    told = estimate_study(asked, queue, team)
    assert (told.peak_bytes, told.num_unweighed, told.num_untimed) == (200, 1, 0)
    assert told.device_minutes is not None


def test_an_extension_is_estimated_by_what_it_would_queue(alice: User, api: Client, queue: Queue) -> None:
    make_worker()
    asked = StudyPlan(base=BASE, axes=[Axis(field="precision", values=["bf16-mixed"])], num_repeats=2)
    study = submit(alice, queue, asked)
    more = Extension(num_repeats=3, axes=[Axis(field="precision", values=["fp8", "fp16-mixed"])])
    told = estimate_extension(study, more)
    assert (told.num_configurations, told.num_runs, told.num_repeats) == (3, 1 + 1 + 3, None)
    assert [one.changes for one, _findings in told.left_out] == [{"precision": "fp8"}]
    path = f"/api/v1/studies/{study.pk}/extend/estimate"
    answer = api.post(path, more.model_dump_json(exclude_unset=True), content_type="application/json")
    assert answer.json()["num_runs"] == told.num_runs
    assert extend_study(study, alice, more) == told.num_runs
    assert estimate_extension(study, more).num_runs == 0


def test_the_api_estimates_and_the_form_previews(api: Client, alice: User, queue: Queue) -> None:
    asked = plan(1).model_dump(mode="json")
    told = api.post("/api/v1/studies/estimate", json.dumps(asked), content_type="application/json").json()
    assert (told["num_runs"], told["device_minutes"], told["left_out"]) == (4, None, [])
    assert not Job.objects.exists()
