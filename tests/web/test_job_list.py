"""The list: what it shows, how it is narrowed down, how it goes on."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.forms.run_list import possible_columns
from jobs.models import Attempt, Job, JobTag, Queue, Team, TeamTag, User
from jobs.services.finish import finish_attempt
from jobs.views.job_list import PAGE_SIZE
from tests.jobs.factories import make_job, make_spec, points, record, start
from tests.web.conftest import browser_of


def ids_of(client: Client, query: str = "") -> list[int]:
    return [row.job.pk for row in client.get(f"/{query}").context["page"].rows]


def test_an_empty_list_invites(web: Client) -> None:
    assert "Submit the first job" in web.get("/").content.decode()


def test_a_filter_that_matches_nothing_offers_a_reset(web: Client, job: Job) -> None:
    page = web.get("/?q=nothing-like-this").content.decode()
    assert "Nothing matches" in page
    assert "Show all jobs" in page


def test_other_teams_jobs_are_not_listed(web: Client, job: Job, stranger: User) -> None:
    make_job(stranger)
    assert ids_of(web) == [job.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=Baseline", ["first"]),
        ("?q=conv", ["second"]),
        ("?q=model:convnet", ["second"]),
        ("?q=owner:me", ["first"]),
        ("?q=state:queued", ["second", "first"]),
        ("?q=state:ended", []),
        ("?sort=nonsense&columns=nonsense&after=nonsense&view=nonsense", ["second", "first"]),
        ("?q=%00", ["second", "first"]),
        ("?q=state:nonsense", []),
    ],
)
def test_filters_narrow_the_list(web: Client, alice: User, bob: User, query: str, expected: list[str]) -> None:
    jobs = {
        "first": make_job(alice, name="baseline"),
        "second": make_job(bob, spec=make_spec(model="convnet", dataset="digits")),
    }
    assert ids_of(web, query) == [jobs[name].pk for name in expected]


def test_a_job_is_found_by_its_number(web: Client, alice: User) -> None:
    job, _other = make_job(alice), make_job(alice)
    assert job.pk in ids_of(web, f"?q=%23{job.pk}")


def test_pages_follow_each_other_without_gap_or_double_and_keep_the_filter(web: Client, alice: User) -> None:
    made = [make_job(alice).pk for _ in range(PAGE_SIZE + 3)]
    first = web.get("/?q=owner:me")
    link = first.context["next_link"]
    assert link.startswith("?q=owner%3Ame&after=")
    assert link.replace("&", "&amp;") in first.content.decode()
    rest = ids_of(web, link)
    assert [row.job.pk for row in first.context["page"].rows] + rest == made[::-1]


def test_a_mistyped_query_is_told_and_lists_nothing(web: Client, job: Job) -> None:
    page = web.get("/?q=modle:mlp").content.decode()
    assert "There is no field “modle”. Did you mean “model”?" in page
    assert "Nothing is listed until it is right." in page


def test_an_empty_result_says_what_to_relax(web: Client, alice: User) -> None:
    make_job(alice, name="slow one")
    context = web.get("/?q=model:gpt-tiny+name~fast").context
    assert [(each.text, each.count) for each in context["relaxations"]] == [("name~fast", 1)]
    assert "q=model%3Agpt-tiny" in context["relaxations"][0].link


def test_any_field_is_added_by_the_small_form(web: Client, job: Job) -> None:
    response = web.get("/?q=model:mlp&field=num_steps&sign=%3E%3D&value=100")
    assert response.url == "/?q=model%3Amlp+num_steps%3E%3D100"


def test_chips_and_menus_lead_to_the_list_without_and_with_a_term(web: Client, alice: User) -> None:
    make_job(alice)
    context = web.get("/?q=state:open+seed:0").context
    assert [(term.text, term.link) for term in context["terms"]] == [
        ("state:open", "?q=seed%3A0"),
        ("seed:0", "?q=state%3Aopen"),
    ]
    assert [menu.name for menu in context["menus"] if menu.is_used] == ["state"]
    states = web.get("/jobs/menu/state/?q=state:open+seed:0").context["choices"]
    assert {choice.text: choice.link for choice in states}["Failed"] == "?q=seed%3A0+state%3Afailed"
    assert {choice.text: choice.link for choice in states if choice.is_chosen} == {"Open": "?q=seed%3A0"}


def test_menus_offer_what_a_person_may_see(web: Client, job: Job, bob: User, stranger: User) -> None:
    JobTag.objects.create(job=job, name="sweep")
    TeamTag.objects.create(team=job.team, name="sweep")
    assert texts_of(web, "tag") == ["sweep"]
    assert texts_of(web, "owner") == ["Me", "alice", bob.username]
    assert texts_of(web, "team") == [job.team.name]
    assert "mlp" in texts_of(web, "model")
    assert texts_of(web, "device") == ["auto", "cpu", "cuda"]
    assert "bf16-mixed" in texts_of(web, "precision")
    assert job.team.name not in texts_of(browser_of(stranger), "team")
    assert b"Nothing to choose from yet" in browser_of(stranger).get("/jobs/menu/tag/").content
    assert web.get("/jobs/menu/nonsense/").status_code == 404


def texts_of(client: Client, menu: str) -> list[str]:
    return [choice.text for choice in client.get(f"/jobs/menu/{menu}/").context["choices"]]


def test_columns_are_chosen_and_ordered(web: Client, alice: User) -> None:
    make_job(alice, spec=make_spec(learning_rate=0.25, seed=7))
    page = web.get("/?columns=learning_rate,job,seed,mfu,outcome,tag").content.decode()
    head = page[page.index("<thead>") : page.index("</thead>")]
    titles = ["Learning rate", "Job", "Seed", "Model FLOPs utilization", "Outcome", "Tags"]
    assert [head.index(title) for title in titles] == sorted(head.index(title) for title in titles)
    assert ">0.25<" in page


def columns_of(client: Client, query: str = "") -> tuple[str, ...]:
    return client.get(f"/{query}").context["column_names"]


def test_chosen_columns_are_remembered_for_whoever_chose_them(web: Client, bob: User) -> None:
    at_first = columns_of(web)
    response = web.post("/jobs/columns/", {"q": "model:mlp", "sort": "-seed", "columns": ["seed", "job", "nonsense"]})
    assert response.url == "/?q=model%3Amlp&sort=-seed&columns=seed%2Cjob"
    assert columns_of(web) == ("seed", "job")
    assert columns_of(web, "?columns=name") == ("name",)
    assert "columns=seed%2Cjob" in web.get("/").context["address"].link()
    assert columns_of(browser_of(bob)) == at_first
    assert web.post("/jobs/columns/", {}).url == "/?"
    assert columns_of(web) == at_first


@pytest.mark.parametrize("name", sorted(possible_columns()))
def test_every_column_is_shown_and_sorted_by(web: Client, alice: User, name: str) -> None:
    make_job(alice)
    response = web.get(f"/?columns={name}&sort={name}")
    assert response.status_code == 200
    assert "job-link" in web.get("/").content.decode()


def test_no_text_that_somebody_gave_becomes_part_of_the_page(web: Client, alice: User) -> None:
    wicked = '<img src=x onerror="alert(1)">\'&'
    spec = make_spec().model_dump(mode="json")
    spec = dict.fromkeys((name for name, value in spec.items() if isinstance(value, str)), wicked)
    job = make_job(alice, name=wicked)
    started = start(job, device_name=wicked)
    Job.objects.filter(pk=job.pk).update(spec=job.spec | spec)
    Attempt.objects.filter(pk=started.pk).update(summary=dict.fromkeys(Summary.model_fields, wicked))
    User.objects.filter(pk=alice.pk).update(username=wicked)
    Queue.objects.filter(pk=job.queue_id).update(name=wicked)
    Team.objects.filter(pk=job.team_id).update(name=wicked)
    JobTag.objects.create(job=job, name=wicked[:40])
    page = web.get(f"/?columns={','.join(possible_columns())}").content.decode()
    assert page.count("&lt;img src=x") > 20
    assert "<img src=x" not in page


def test_only_what_differs_from_the_defaults_stands_in_the_line(web: Client, alice: User) -> None:
    make_job(alice, spec=make_spec(precision="bf16-mixed"))
    assert chips_of(web) == [("Precision", "bf16-mixed"), ("Steps", "100")]


def chips_of(client: Client) -> list[tuple[str, str]]:
    page = client.get("/").content.decode()
    return re.findall(r'<span class="chip"><b>([^<]+)</b>([^<]+)</span>', page)


def test_what_runs_stands_on_track_before_what_has_finished(web: Client, alice: User) -> None:
    done = make_job(alice)
    attempt = start(done)
    record(attempt, points([1, 2], train_loss=[3.0, 2.0]))
    finish_attempt(attempt, Outcome.SUCCEEDED)
    running = make_job(alice)
    start(running)
    make_job(alice)
    assert [card.job.pk for card in web.get("/").context["cards"]] == [running.pk, done.pk]


def test_htmx_gets_the_living_part_only(web: Client, job: Job) -> None:
    page = web.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert f'data-job="{job.pk}"' in page
    assert 'id="on-track" hx-swap-oob' in page


def test_a_long_list_costs_no_more_queries_than_a_short_one(
    web: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(30):
        job = make_job(alice)
        if number % 2:
            JobTag.objects.create(job=job, name=f"tag {number}")
    with django_assert_max_num_queries(18):
        page = web.get("/").content.decode()
    assert page.count('<span class="tag">tag ') == 15
