"""Plans and specs that name an option or a value that exists no more: their pages say so, and results stand."""

from typing import Any

import pytest
from django.test import Client

from jobs.contract.claims import CLAIMS
from jobs.contract.plan import Arrangement, StudyPlan
from jobs.contract.states import Outcome
from jobs.models import Board, Job, Queue, Search, Study, User
from jobs.models.search import SearchStage
from jobs.selectors.claims import preset_name
from jobs.selectors.studies import view_study
from jobs.services.actions import Act, Order, perform_all
from jobs.services.finish import finish_attempt
from jobs.services.studies import create_study
from jobs.services.study_repeats import add_repeats
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_spec, make_summary, make_worker, start

pytestmark = pytest.mark.django_db

# What was stored, and how the page tells it: an option that is gone, a value that is allowed no more.
STORED = [
    pytest.param({"warp_speed": 9}, "warp_speed: There is no such option.", id="option"),
    pytest.param({"precision": "fp12"}, "precision: Must be one of", id="value"),
]


def outdate(job: Job, stored: dict[str, Any]) -> None:
    Job.objects.filter(pk=job.pk).update(spec=job.spec | stored)


@pytest.fixture
def study(alice: User, queue: Queue) -> Study:
    """A baseline and a faster configuration, two seeds each; all have ended."""
    worker = make_worker()
    base = make_spec().model_dump(mode="json")
    plan = StudyPlan(base=base, arrangement=Arrangement.LIST, configurations=[{"optimizer": "sgd"}], num_repeats=2)
    made = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan, name="tyres")
    for job in Job.objects.filter(study=made).order_by("pk"):
        step_time_ms = 10.0 if job.study_place else 20.0
        figures = make_summary(steady_step_time_ms=step_time_ms + 0.01 * job.spec["seed"])
        finish_attempt(start(job, worker), Outcome.SUCCEEDED, figures)
    return made


def outdate_study(study: Study, stored: dict[str, Any]) -> None:
    """As if an earlier version had made it: in the base, in what varies, and in every run."""
    for job in Job.objects.filter(study=study):
        outdate(job, stored)
    plan = study.plan | {"base": study.plan["base"] | stored}
    Study.objects.filter(pk=study.pk).update(plan=plan)
    study.refresh_from_db()


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_a_study_and_its_report_say_it_and_show_their_results(
    web: Client, study: Study, stored: dict[str, Any], sentence: str
) -> None:
    outdate_study(study, stored)
    for address in ("", "report/", "report/file/"):
        answer = web.get(f"/studies/{study.pk}/{address}")
        assert answer.status_code == 200
        page = answer.content.decode()
        assert sentence in page
        assert "times faster" in page
        assert "sgd" in page
    assert sentence in web.get(f"/studies/new/?study={study.pk}").content.decode()
    told = client_of(study.owner).get(f"/api/v1/studies/{study.pk}").json()
    assert [each["field"] for each in told["unread"]] == list(stored)
    assert [row["changes"] for row in told["rows"]] == [{}, {"optimizer": "sgd"}]


def test_what_varied_and_exists_no_more_stays_a_configuration_of_its_own(web: Client, study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(plan=study.plan | {"configurations": [{"warp_speed": 9}]})
    for job in Job.objects.filter(study=study, study_place=1):
        outdate(job, {"optimizer": study.plan["base"]["optimizer"], "warp_speed": 9})
    study.refresh_from_db()
    assert [row.configuration.changes for row in view_study(study).rows] == [{}, {"warp_speed": 9}]
    page = web.get(f"/studies/{study.pk}/").content.decode()
    assert "<b>warp_speed</b>9" in page
    assert web.get(f"/studies/new/?study={study.pk}").status_code == 200


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_nothing_is_added_to_a_study_that_cannot_be_read(
    web: Client, study: Study, stored: dict[str, Any], sentence: str
) -> None:
    outdate_study(study, stored)
    Study.objects.filter(pk=study.pk).update(adds_repeats=True)
    assert add_repeats() == 0
    assert not Study.objects.get().adds_repeats
    for answer in (
        web.get(f"/studies/{study.pk}/extend/", follow=True),
        web.post(f"/studies/{study.pk}/extend/", {"num_repeats": 5}, follow=True),
    ):
        page = answer.content.decode()
        assert "nothing can be added to it" in page
        assert sentence in page
    assert client_of(study.owner).post(f"/api/v1/studies/{study.pk}/clone").status_code == 422
    assert Job.objects.count() == 4


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_a_claim_keeps_its_evidence(web: Client, study: Study, stored: dict[str, Any], sentence: str) -> None:
    claim = CLAIMS[0]
    outdate_study(study, stored)
    Study.objects.filter(pk=study.pk).update(preset=preset_name(claim, claim.presets[0]))
    page = web.get("/claims/").content.decode()
    assert sentence in page
    assert f'href="/studies/{study.pk}/"' in page


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_a_search_says_it_and_shows_what_it_tried(
    web: Client, study: Study, stored: dict[str, Any], sentence: str
) -> None:
    outdate_study(study, stored)
    search = Search.objects.create(
        team=study.team, owner=study.owner, queue=study.queue, name="fastest", base=study.plan["base"] | stored,
        axes={"optimizer": [{}, {"optimizer": "sgd"} | stored]}, short_steps=20, num_repeats=2, screening=study,
        finals=None, stage=SearchStage.DONE, points=[[0], [1]],
    )  # fmt: skip
    page = web.get(f"/searches/{search.pk}/").content.decode()
    assert sentence in page
    assert "sgd" in page
    Search.objects.filter(pk=search.pk).update(screening=None, finals=study)
    assert sentence in web.get(f"/searches/{search.pk}/").content.decode()


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_a_job_says_it_on_its_page_in_the_forms_made_from_it_and_while_it_waits(
    web: Client, alice: User, stored: dict[str, Any], sentence: str
) -> None:
    ended, waits = make_ended_job(alice), make_job(alice)
    outdate(ended, stored)
    ended.last_attempt.resolved_spec |= stored
    ended.last_attempt.save()
    outdate(waits, stored)
    addresses = [f"/jobs/{ended.pk}/", f"/jobs/new/?from={ended.pk}", f"/studies/new/?from={ended.pk}"]
    for address in [*addresses, f"/jobs/{waits.pk}/"]:
        answer = web.get(address)
        assert answer.status_code == 200
        assert sentence in answer.content.decode(), address
    assert "No worker can read what it asks for" in web.get(f"/jobs/{waits.pk}/").content.decode()
    assert web.get("/").status_code == 200


@pytest.mark.parametrize("action", ["ablation/", "search/"])
def test_a_value_that_is_gone_is_told_where_a_job_is_asked_for_again(web: Client, alice: User, action: str) -> None:
    job = make_ended_job(alice)
    outdate(job, {"precision": "fp12"})
    ask = web.get if action == "search/" else web.post
    page = ask(f"/jobs/{job.pk}/{action}", follow=True).content.decode()
    assert f"What job {job.pk} asked for cannot run any more: precision: Must be one of" in page
    assert Job.objects.count() == 1


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_a_board_shows_its_runs_and_passes_by_what_waits_and_cannot_be_read(
    web: Client, alice: User, stored: dict[str, Any], sentence: str
) -> None:
    ended, waits = make_ended_job(alice), make_job(alice)
    outdate(ended, stored)
    outdate(waits, stored)
    ended.last_attempt.resolved_spec |= stored
    ended.last_attempt.save()
    entry = Board.objects.get().baseline
    entry.configuration |= stored
    entry.save()
    page = web.get("/leaderboard/").content.decode()
    assert "The baseline is first" in page
    assert "of this work waits" not in page
    assert web.get(f"/leaderboard/{entry.board_id}/history/").status_code == 200
    assert web.get(f"/compare/?jobs={ended.pk},{waits.pk}").status_code == 200
    again = web.post(f"/leaderboard/entries/{entry.pk}/repeat/", follow=True)
    assert again.status_code == 200
    if "precision" in stored:
        assert sentence in again.content.decode()


@pytest.mark.parametrize(("stored", "sentence"), STORED)
def test_what_waits_and_cannot_be_read_is_not_changed(alice: User, stored: dict[str, Any], sentence: str) -> None:
    job = make_job(alice)
    outdate(job, stored)
    for order in (Order(Act.TIME_LIMIT, time_limit_s=60.0), Order(Act.MOVE, queue=make_queue("night"))):
        (result,) = perform_all(alice, [job.pk], order)
        assert sentence in result.error
    assert Job.objects.get().queue.name == "default"
