"""Saved views of the list: who may open, change and delete which, and that a link shows a colleague the same."""

import pytest
from django.test import Client

from jobs.models import Job, SavedView, Team, User, ViewPage
from jobs.services.saved_views import save_view
from jobs.services.tokens import create_token
from tests.jobs.factories import make_job, make_spec
from tests.web.conftest import browser_of

QUERY = "q=model%3Amlp&sort=-seed&columns=job%2Cseed"


@pytest.fixture
def people(alice: User, bob: User, stranger: User, boss: User) -> dict[str, User]:
    return {"owner": alice, "mate": bob, "stranger": stranger, "staff": boss}


# Of whom, what may be done with a private view and with one that is shared.
MAY = {
    ("owner", False): {"see", "change"},
    ("owner", True): {"see", "change"},
    ("mate", False): set(),
    ("mate", True): {"see"},
    ("stranger", False): set(),
    ("stranger", True): set(),
    ("staff", False): set(),
    ("staff", True): {"see", "change"},
}


@pytest.mark.parametrize(("role", "is_shared"), MAY)
def test_who_may_do_what(people: dict[str, User], team: Team, role: str, is_shared: bool) -> None:
    view = save_view(people["owner"], team, "Fast ones", QUERY, is_shared=is_shared)
    may, browser = MAY[role, is_shared], browser_of(people[role])
    assert (browser.get(f"/views/{view.pk}/").status_code == 302) == ("see" in may)
    assert ("Fast ones" in browser.get("/").content.decode()) == ("see" in may)
    browser.post(f"/views/{view.pk}/change/", {"name": "Renamed"})
    view.refresh_from_db()
    assert (view.name == "Renamed") == ("change" in may)
    browser.post(f"/views/{view.pk}/delete/")
    view.refresh_from_db()
    assert (view.deleted_at is not None) == ("change" in may)


@pytest.mark.parametrize(("role", "is_shared"), MAY)
def test_the_api_holds_to_the_same(people: dict[str, User], team: Team, role: str, is_shared: bool) -> None:
    view = save_view(people["owner"], team, "Fast ones", QUERY, is_shared=is_shared)
    api = Client(headers={"Authorization": f"Bearer {create_token(people[role])[1]}"})
    may, address = MAY[role, is_shared], f"/api/v1/views/{view.pk}"
    refused = 403 if "see" in may else 404
    assert [each["id"] for each in api.get("/api/v1/views").json()] == ([view.pk] if "see" in may else [])
    assert api.get(f"/api/v1/jobs?view={view.pk}").status_code == (200 if "see" in may else 404)
    changed = api.patch(address, {"name": "Renamed"}, content_type="application/json")
    assert changed.status_code == (200 if "change" in may else refused)
    assert api.delete(address).status_code == (204 if "change" in may else refused)


def test_a_link_shows_a_colleague_the_same(web: Client, alice: User, bob: User, team: Team) -> None:
    wanted = [make_job(alice, spec=make_spec(model="mlp", dataset="digits", seed=seed)) for seed in (1, 5, 3)]
    make_job(alice)
    web.post("/views/", {"name": " Seeds  first ", "query": QUERY, "is_shared": "on"})
    view = SavedView.objects.get()
    assert (view.name, view.query, view.team) == ("Seeds first", QUERY, team)
    page = browser_of(bob).get(f"/views/{view.pk}/", follow=True)
    assert [row.job.pk for row in page.context["page"].rows] == [wanted[1].pk, wanted[2].pk, wanted[0].pk]
    assert page.context["column_names"] == ("job", "seed")
    assert "Seeds first" in page.content.decode()


def test_the_api_lists_what_a_view_shows_and_narrows_it_further(web: Client, alice: User, team: Team) -> None:
    seeds = {seed: make_job(alice, spec=make_spec(model="mlp", dataset="digits", seed=seed)).pk for seed in (1, 5)}
    view = save_view(alice, team, "Seeds", QUERY)
    listed = web.get(f"/api/v1/jobs?view={view.pk}").json()["jobs"]
    assert [job["id"] for job in listed] == [seeds[5], seeds[1]]
    assert [job["id"] for job in web.get(f"/api/v1/jobs?view={view.pk}&seed=1").json()["jobs"]] == [seeds[1]]


def test_a_view_is_made_in_the_api(web: Client, alice: User) -> None:
    body = {"name": "Mine", "query": "q=owner%3Ame&colour=red&after=x"}
    made = web.post("/api/v1/views", body, content_type="application/json")
    assert made.status_code == 201
    assert (made.json()["q"], made.json()["order_by"], made.json()["query"]) == ("owner:me", "-id", "q=owner%3Ame")


def test_a_deleted_view_comes_back_by_undo(web: Client, alice: User, team: Team) -> None:
    view = save_view(alice, team, "Mine", QUERY)
    page = web.post(f"/views/{view.pk}/delete/", follow=True).content.decode()
    assert "The view “Mine” is deleted." in page
    assert f'action="/views/{view.pk}/restore/"' in page
    assert web.get(f"/views/{view.pk}/").status_code == 404
    web.post(f"/views/{view.pk}/restore/")
    assert web.get(f"/views/{view.pk}/").status_code == 302


def test_a_view_is_redefined_and_shared_by_its_owner(web: Client, alice: User, team: Team) -> None:
    view = save_view(alice, team, "Mine", QUERY)
    web.post(f"/views/{view.pk}/change/", {"query": "?q=state%3Aopen&nonsense=1", "is_shared": "yes"})
    web.post(f"/views/{view.pk}/change/", {"query": "q=state%3Aopen&nonsense=1"})
    view.refresh_from_db()
    assert (view.query, view.is_shared, view.name) == ("q=state%3Aopen", True, "Mine")


@pytest.mark.parametrize("name", ["", " ", "x" * 101])
def test_a_view_needs_a_name(web: Client, job: Job, name: str) -> None:
    web.post("/views/", {"name": name, "query": QUERY})
    assert not SavedView.objects.exists()


def test_a_view_goes_to_no_team_that_one_is_not_in(web: Client, alice: User, stranger: User) -> None:
    web.post("/views/", {"name": "x", "query": QUERY, "team": stranger.teams.get().pk, "is_shared": "on"})
    assert not SavedView.objects.exists()


def test_a_view_shows_its_own_columns_to_whoever_has_chosen_others(web: Client, alice: User, team: Team) -> None:
    at_first = web.get("/").context["column_names"]
    view = save_view(alice, team, "As at first", "q=model%3Amlp")
    web.post("/jobs/columns/", {"columns": ["seed"]})
    opened = web.get(web.get(f"/views/{view.pk}/").url).context
    assert opened["column_names"] == at_first
    assert opened["is_opened_changed"] is False
    web.post("/jobs/columns/", {"view": view.pk, "columns": ["name"]})
    assert web.get("/").context["column_names"] == ("seed",)


def test_a_comparison_is_kept_and_shows_a_colleague_the_same(web: Client, alice: User, bob: User) -> None:
    ids = ",".join(str(make_job(alice).pk) for _ in range(3))
    query = f"jobs={ids}&x=wall_s&from=1&to=9&smooth=ema&amount=0.9&group=seed&baseline={ids[0]}&y=train_loss:0.5:2"
    answer = web.post("/views/", {"name": "Seeds", "page": "comparison", "query": f"?{query}&q=x", "is_shared": "on"})
    view = SavedView.objects.get()
    assert (view.page, view.query) == (ViewPage.COMPARISON, query)
    assert answer.headers["Location"] == f"/compare/?{query}&view={view.pk}"
    page = browser_of(bob).get(f"/views/{view.pk}/", follow=True)
    assert page.context["query"].stored == query
    assert page.context["opened"] == view
    assert "Seeds" not in browser_of(bob).get("/").content.decode()
    assert f'href="/views/{view.pk}/"' in browser_of(bob).get("/compare/").content.decode()


def test_a_kept_comparison_is_renamed_redefined_deleted_and_brought_back(web: Client, alice: User, team: Team) -> None:
    view = save_view(alice, team, "Two", "jobs=1,2", page=ViewPage.COMPARISON)
    web.post(f"/views/{view.pk}/change/", {"name": "Three", "query": "jobs=1,2,3&sort=-seed"})
    view.refresh_from_db()
    assert (view.name, view.query) == ("Three", "jobs=1,2,3")
    assert web.post(f"/views/{view.pk}/delete/").headers["Location"] == "/compare/"
    assert web.get(f"/views/{view.pk}/").status_code == 404
    assert web.post(f"/views/{view.pk}/restore/").headers["Location"] == f"/compare/?jobs=1,2,3&view={view.pk}"


def test_the_api_keeps_a_comparison_and_lists_no_jobs_by_it(web: Client, alice: User) -> None:
    body = {"name": "Mine", "page": "comparison", "query": "jobs=1,2&group=seed&colour=red"}
    made = web.post("/api/v1/views", body, content_type="application/json").json()
    assert (made["page"], made["query"]) == ("comparison", "jobs=1,2&group=seed")
    assert web.get(f"/api/v1/jobs?view={made['id']}").status_code == 404
    changed = web.patch(f"/api/v1/views/{made['id']}", {"query": "jobs=3&q=x"}, content_type="application/json")
    assert changed.json()["query"] == "jobs=3"


def test_a_view_that_is_too_long_is_refused_in_words(web: Client, alice: User) -> None:
    query = "jobs=" + ",".join(str(1_000_000 + number) for number in range(600))
    page = web.post("/views/", {"name": "Long", "page": "comparison", "query": query}, follow=True)
    assert not SavedView.objects.exists()
    assert "4000" in page.content.decode()
