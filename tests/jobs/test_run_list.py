"""The runs list against brute force: the same runs, in the same order, page by page, on random rows."""

import operator
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from jobs.contract.states import ENDED_STATES, OPEN_STATES, Outcome
from jobs.models import Attempt, Job, JobTag, User
from jobs.models.figures import RANKED_METRICS
from jobs.selectors import run_pages
from jobs.selectors.run_fields import Kind, RunField, run_fields
from jobs.selectors.run_pages import BadCursor, RunList, in_order, parse_order
from jobs.selectors.run_query import parse_query
from tests.jobs.factories import make_queue, make_spec, make_team, make_user

NUM_ROWS = 120
RANDOM = random.Random(5)
EPOCH = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def people(db: None) -> list[User]:
    """Three people; two share a team, one of them is in two."""
    first, second = make_team("first"), make_team("second")
    people = [make_user("ann", team=first), make_user("ben", team=second), make_user("cleo", team=first)]
    second.members.add(people[2])
    return people


@pytest.fixture
def rows(people: list[User]) -> list[Job]:
    """Random runs in many states, with ties and with gaps."""
    queue = make_queue()
    jobs = [_random_job(people, queue) for _ in range(NUM_ROWS)]
    Job.objects.bulk_create(jobs)
    for place, job in enumerate(jobs):
        Job.objects.filter(pk=job.pk).update(created_at=EPOCH + timedelta(hours=place // 3))
    for job in jobs:
        if job.outcome:
            _attempt_of(job)
    JobTag.objects.bulk_create(
        [JobTag(job=job, name=name) for job in jobs for name in ("base", "night run") if RANDOM.random() < 0.3]
    )
    shown = Job.objects.select_related("owner", "team", "queue", "last_attempt").prefetch_related("tags")
    return list(shown.order_by("pk"))


def _random_job(people: list[User], queue: Any) -> Job:
    owner, state = RANDOM.choice(people), RANDOM.choice([*OPEN_STATES, *ENDED_STATES, *["succeeded"] * 8])
    spec = make_spec(
        model=RANDOM.choice(["mlp", "convnet"]),
        dataset="digits",
        precision=RANDOM.choice(["fp32", "bf16-mixed"]),
        learning_rate=RANDOM.choice([0.1, 0.25, 0.003]),
        seed=RANDOM.randrange(3),
        time_limit_s=RANDOM.choice([None, 60, 90.5]),
        drop_last=RANDOM.random() < 0.5,
    ).model_dump(mode="json")
    if RANDOM.random() < 0.1:
        del spec["seed"]  # stored before the option was there
    figures = {name: RANDOM.choice([None, 1.0, 2.5, float(RANDOM.randrange(100))]) for name in RANKED_METRICS}
    outcome = state if state in ENDED_STATES else None
    return Job(
        owner=owner,
        team=RANDOM.choice(list(owner.teams.all())),
        queue=queue,
        name=RANDOM.choice(["", "Baseline", "baseline 2", "a, b"]),
        spec=spec,
        state=state,
        outcome=outcome,
        queued_at=EPOCH,
        ended_at=timezone.now() if outcome else None,
        **(figures if outcome else {}),
    )


def _attempt_of(job: Job) -> None:
    job.last_attempt = Attempt.objects.create(
        job=job,
        number=1,
        fence=1,
        outcome=job.outcome,
        claimed_at=EPOCH,
        heartbeat_at=EPOCH,
        lease_expires_at=EPOCH,
        device_name=RANDOM.choice(["A", "B"]),
        summary={"mfu": RANDOM.choice([None, 0.5, "NaN"]), "is_steady": RANDOM.choice([True, False])},
    )
    job.save(update_fields=["last_attempt"])


def field(name: str) -> Callable[[Job], Any]:
    return run_fields()[name].value


def number(job: Job, name: str) -> float | None:
    value = field(name)(job)
    return None if value is None or isinstance(value, str) else float(value)


def below(name: str, bound: float, compare: Callable[[float, float], bool] = operator.lt) -> Callable[[Job], bool]:
    return lambda job: (value := number(job, name)) is not None and compare(value, bound)


QUERIES: dict[str, Callable[[Job], bool]] = {
    "": lambda job: True,
    "model:mlp": lambda job: job.spec["model"] == "mlp",
    "model:mlp,convnet": lambda job: True,
    "model!=mlp precision:bf16-mixed": lambda job: job.spec["model"] != "mlp" and job.spec["precision"] == "bf16-mixed",
    "outcome:succeeded step_time_ms<5": lambda job: job.outcome == "succeeded" and below("steady_step_time_ms", 5)(job),
    "outcome!=succeeded": lambda job: job.outcome != "succeeded",
    "outcome:none": lambda job: job.outcome is None,
    "state:open": lambda job: job.state in OPEN_STATES,
    "state:ended,queued": lambda job: job.state in (*ENDED_STATES, "queued"),
    "state:trouble": lambda job: job.outcome not in (None, Outcome.SUCCEEDED, Outcome.CANCELLED),
    "state!=trouble": lambda job: job.outcome in (None, Outcome.SUCCEEDED, Outcome.CANCELLED),
    "owner:me": lambda job: job.owner.username == "cleo",
    "owner:ann,me": lambda job: job.owner.username in ("ann", "cleo"),
    "owner~E": lambda job: "e" in job.owner.username,
    "owner!=me": lambda job: job.owner.username != "cleo",
    "team:first": lambda job: job.team.name == "first",
    "team!=first": lambda job: job.team.name != "first",
    "tag:base": lambda job: "base" in field("tag")(job),
    'tag!=base tag:"night run"': lambda job: field("tag")(job) == ["night run"],
    "tag:none": lambda job: field("tag")(job) == [],
    "tag~NIGHT": lambda job: "night run" in field("tag")(job),
    "learning_rate:0.003": lambda job: job.spec["learning_rate"] == 0.003,
    "learning_rate>=0.1 learning_rate<=0.1": lambda job: job.spec["learning_rate"] == 0.1,
    "seed:0": lambda job: job.spec.get("seed", 0) == 0,
    "seed!=0": lambda job: job.spec.get("seed", 0) != 0,
    "time_limit_s:none": lambda job: job.spec["time_limit_s"] is None,
    "time_limit_s!=60": lambda job: job.spec["time_limit_s"] != 60,
    "time_limit_s>60": lambda job: (job.spec["time_limit_s"] or 0) > 60,
    "drop_last:yes": lambda job: job.spec["drop_last"],
    "drop_last:no is_steady:true": lambda job: not job.spec["drop_last"] and bool(field("is_steady")(job)),
    "mfu>0": lambda job: number(job, "mfu") == 0.5,
    "peak_rss_bytes<1KiB peak_rss_bytes>2B": lambda job: (
        below("peak_rss_bytes", 1024)(job) and below("peak_rss_bytes", 2, operator.gt)(job)
    ),
    "name~baseline": lambda job: "baseline" in job.name.lower(),
    'name:"a, b"': lambda job: job.name == "a, b",
    "BASE": lambda job: "base" in job.name.lower(),
    "device_name:A": lambda job: field("device_name")(job) == "A",
    "device_name:none": lambda job: not field("device_name")(job),
    "created:2026-11-01": lambda job: job.created_at < EPOCH + timedelta(days=1),
    "created>2026-11-01": lambda job: job.created_at >= EPOCH + timedelta(days=1),
    "created<=2026-11-01 created>=2026-11-01T05:00": lambda job: (
        EPOCH + timedelta(hours=5) <= job.created_at < EPOCH + timedelta(days=1)
    ),
    "age>1h": lambda job: job.created_at < timezone.now() - timedelta(hours=1),
    "ended:none": lambda job: job.ended_at is None,
    "origin:imported": lambda job: False,
}


def seen(rows: list[Job], person: User) -> list[Job]:
    teams = set(person.teams.all())
    return [job for job in rows if job.team in teams]


@pytest.mark.parametrize("few", [0, 2000], ids=["walked", "sorted"])
def test_a_query_finds_what_brute_force_finds(
    rows: list[Job], people: list[User], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "FEW", few)
    for person in people:
        for text, matches in QUERIES.items():
            if "me" in re.split(r"\W", text) and person.username != "cleo":
                continue
            query = parse_query(text)
            assert query.problems == (), text
            for order in ("-id", "steady_step_time_ms"):
                runs = RunList(query, parse_order(order), person)
                expected = {job.pk for job in seen(rows, person) if matches(job)}
                ids, following = runs.page(NUM_ROWS)
                assert (set(ids), len(ids), following, runs.count) == (expected, len(ids), None, len(expected)), text


def sort_key(of: RunField, job: Job) -> Any:
    value = of.value(job)
    if of.kind in (Kind.NUMBER, Kind.FLAG):
        return number(job, of.name)
    if of.kind is Kind.DATE and of.name == "ended" and value:
        return value.replace(microsecond=0)
    return value if value != "" or not of.can_be_empty else None


ORDERS = [name for name, each in run_fields().items() if each.can_sort]


@pytest.mark.parametrize("few", [0, 2000], ids=["walked", "sorted"])
def test_pages_in_any_order_are_brute_forces_order_whatever_their_size(
    rows: list[Job], people: list[User], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "FEW", few)
    cleo = people[2]
    for name in ORDERS:
        of = run_fields()[name]
        if connection.vendor == "postgresql" and of.kind in (Kind.TEXT, Kind.PERSON):
            continue  # its collation is its own
        for sign in ("", "-"):
            known = [job for job in seen(rows, cleo) if sort_key(of, job) is not None]
            known.sort(key=lambda job: (sort_key(of, job), job.pk), reverse=sign == "-")
            unknown = sorted((job.pk for job in seen(rows, cleo) if sort_key(of, job) is None), reverse=True)
            expected = [job.pk for job in known] + unknown
            assert all_pages(parse_order(sign + name), cleo, RANDOM.choice([7, 40])) == expected, sign + name


def all_pages(order: run_pages.Order, person: User, limit: int) -> list[int]:
    ids: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page, cursor = RunList(parse_query(""), order, person).page(limit, cursor)
        ids += page
        assert len(page) == limit or cursor is None
    return ids


def test_lists_of_teams_are_merged_however_unevenly_runs_are_spread(people: list[User]) -> None:
    """Each team's list is read in pieces: all that is asked for may lie in one of them."""
    cleo = people[2]
    first, second = cleo.teams.order_by("name")
    _fill(people[0], 90)
    for job in Job.objects.filter(pk__in=list(Job.objects.values_list("pk", flat=True)[::9])):
        Job.objects.filter(pk=job.pk).update(team=second, steady_step_time_ms=None)
    runs = RunList(parse_query(""), parse_order("steady_step_time_ms"), cleo)
    runs._streams = [Job.objects.filter(team=team) for team in (first, second)] + [Job.objects.none()] * 8
    valued = Job.objects.filter(steady_step_time_ms__isnull=False).order_by("steady_step_time_ms", "pk")
    expected = [*valued, *Job.objects.filter(steady_step_time_ms=None).order_by("-pk")]
    assert runs.page(89)[0] == [job.pk for job in expected[:89]]


def test_staff_see_every_team(rows: list[Job]) -> None:
    boss = make_user("boss", is_staff=True)
    assert len(RunList(parse_query(""), parse_order("-id"), boss).page(NUM_ROWS)[0]) == NUM_ROWS
    assert RunList(parse_query("team:first"), parse_order("-id"), boss).count < NUM_ROWS


@pytest.mark.parametrize("cursor", ["x", "bnVsbA", "WzEsMl0", "é", "W10"])
@pytest.mark.parametrize("order", ["-id", "name", "created", "mfu"])
def test_a_foreign_cursor_is_refused(people: list[User], cursor: str, order: str) -> None:
    with pytest.raises(BadCursor):
        RunList(parse_query(""), parse_order(order), people[0]).page(5, cursor)


def test_a_run_that_is_gone_meanwhile_is_left_out(rows: list[Job]) -> None:
    ids = [rows[3].pk, 10**9, rows[1].pk]
    assert [job.pk for job in in_order(Job.objects.all(), ids)] == [rows[3].pk, rows[1].pk]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("modle:mlp", "There is no field “modle”. Did you mean “model”?"),
        ("zzzz:1", 'There is no field “zzzz”. To look for it as a word, put it in quotation marks: "zzzz:1"'),
        ("precision:fp7", "“fp7” is no value of “precision”. There are: fp32, tf32,"),
        ("precision<fp32", "“precision” cannot be compared with “<”. Use one of: :  !=."),
        ("num_steps:many", "“num_steps” is compared with a number; “many” is none."),
        ("num_steps<2GiB", "“num_steps” is compared with a number; “2GiB” is none."),
        ("drop_last:maybe", "“maybe” is no value of “drop_last”. There are: yes, no."),
        ("created>yesterday", "“created” is compared with a date such as 2026-11-20; “yesterday” is none."),
        ("age<soon", "“age” is compared with a time span such as 7d, 12h or 30min; “soon” is none."),
        ("age<99999999999999999d", "“age” is compared with a time span"),
        ("age<99999999h", "“age” is compared with a time span"),
        ("model:", "“model:” lacks a value."),
        ("time_limit_s<none", "“time_limit_s” is set or not: ask with time_limit_s:none or time_limit_s!=none."),
        ("num_steps<1,2", "“num_steps<” takes one value."),
        ('name:"open', "A quotation mark is not closed."),
        ("num_steps:none num_steps:1e999x", "“num_steps” is compared with a number"),
    ],
)
def test_what_is_not_understood_is_told_in_a_sentence(text: str, sentence: str) -> None:
    problems = parse_query(text).problems
    assert len(problems) == 1
    assert problems[0].startswith(sentence)


def test_a_query_is_written_back_as_it_is_read(db: None) -> None:
    text = 'model:mlp,convnet name:"a, b" step_time_ms<5 "two words" #12'
    again = str(parse_query(text))
    assert again == 'model:mlp,convnet name:"a, b" steady_step_time_ms<5 "two words" #12'
    assert str(parse_query(again)) == again


def test_the_many_problems_of_one_query_are_all_told() -> None:
    assert len(parse_query("a1:1 b2:2 a1:1").problems) == 2


@pytest.mark.parametrize("narrowed", ["", "model:mlp", "device:auto", "outcome:succeeded", "age<9999d"])
@pytest.mark.parametrize("order", ["steady_step_time_ms", "-final_eval_loss"])
def test_a_sorted_page_is_read_from_an_index(
    people: list[User], narrowed: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among a few thousand runs the database must not sort, nor read them all."""
    monkeypatch.setattr(run_pages, "FEW", 0)
    _fill(people[0], 3000)
    plans: list[str] = []
    places = run_pages.Order.places
    monkeypatch.setattr(
        run_pages.Order,
        "places",
        lambda self, jobs, after, limit: plans.append(_plan(self, jobs, limit)) or places(self, jobs, after, limit),
    )
    ids, _following = RunList(parse_query(narrowed), parse_order(order), people[0]).page(100)
    assert len(ids) == 100
    names = {"model:mlp": ["tm"], "device:auto": ["td"], "outcome:succeeded": ["t", "to"]}.get(narrowed, ["t"])
    assert any(f"job_{name}_{order.removeprefix('-')}" in plans[0] for name in names), plans[0]
    assert "B-TREE" not in plans[0]
    assert "Sort" not in plans[0]


def _plan(order: run_pages.Order, jobs: Any, limit: int) -> str:
    sign = "-" if order.descending else ""
    ranked = jobs.order_by().annotate(place=order.by.expression).filter(place__isnull=False)
    return str(ranked.order_by(f"{sign}place", f"{sign}pk").values_list("place", "pk")[:limit].explain())


def _fill(owner: User, count: int) -> None:
    spec = make_spec(model="mlp").model_dump(mode="json")
    team, queue = owner.teams.get(), make_queue()
    jobs = [
        Job(
            owner=owner,
            team=team,
            queue=queue,
            spec=spec if place % 2 else spec | {"model": "convnet", "device": "cpu"},
            state="succeeded",
            outcome="succeeded",
            queued_at=EPOCH,
            ended_at=EPOCH,
            steady_step_time_ms=RANDOM.random(),
            final_eval_loss=RANDOM.random(),
        )
        for place in range(count)
    ]
    Job.objects.bulk_create(jobs, batch_size=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
