"""The hub: one reading for all viewers, no gap, no unbounded memory, and an end."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from jobs import live
from jobs.contract.plan import Axis, Extension, StudyPlan
from jobs.contract.states import Outcome
from jobs.live import Hub, JobNow, Reader, Reading, Topics, Viewer, list_version, read_open_jobs
from jobs.models import Job, Queue, Study, User
from jobs.services.cancel import request_cancel
from jobs.services.finish import finish_attempt
from jobs.services.queues import pause_queue
from jobs.services.studies import create_study, extend_study, pause_study, resume_study
from tests.jobs.factories import make_job, make_spec, make_worker, points, record, start
from tests.web.conftest import browser_of


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an asynchronous test in an event loop of its own."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


def waiting(viewer: Viewer) -> list[tuple[str, dict[str, Any]]]:
    """The events that wait for a viewer."""
    events = []
    while not viewer.messages.empty():
        message = viewer.messages.get_nowait()
        assert message is not None
        name, data = message.decode().strip().split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def names(viewer: Viewer) -> list[str]:
    return [name for name, _data in waiting(viewer)]


class Scripted:
    """A reader whose readings the test sets."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.watched: list[Topics] = []

    def read(self, watched: Topics) -> Reading:
        self.watched.append(watched)
        return self.reading


RUNNING = JobNow("running", "training", 10, 5, cancel=False)


@in_a_loop
async def test_a_viewer_is_greeted_and_told_where_its_jobs_stand() -> None:
    reader = Scripted()
    reader.reading = Reading(jobs={1: RUNNING, 2: RUNNING})
    hub = Hub(reader)  # type: ignore[arg-type]
    viewer = hub.join(Topics(jobs=frozenset({1})))
    await asyncio.sleep(0.05)
    events = waiting(viewer)
    assert [name for name, _ in events] == ["hello", "job"]
    assert events[1][1] == {"id": 1, "state": "running", "phase": "training", "step": 10, "attempt": 5, "cancel": False}
    hub.close()


@in_a_loop
async def test_all_viewers_share_one_reading_and_each_gets_only_its_own() -> None:
    reader = Scripted()
    hub = Hub(reader)  # type: ignore[arg-type]
    first, second = hub.join(Topics(jobs=frozenset({1}))), hub.join(Topics(jobs=frozenset({2})))
    await asyncio.sleep(0.05)
    assert len(reader.watched) == 1
    assert reader.watched[0].jobs == {1, 2}
    waiting(first), waiting(second)
    reader.reading = Reading(jobs={2: RUNNING})
    await asyncio.sleep(live.TICK_S + 0.1)
    assert names(first) == []
    assert names(second) == ["job"]
    hub.close()


@in_a_loop
async def test_who_watches_a_job_that_is_deleted_is_told() -> None:
    reader = Scripted()
    reader.reading = Reading(jobs={1: RUNNING, 2: RUNNING})
    hub = Hub(reader)  # type: ignore[arg-type]
    viewer, other = hub.join(Topics(jobs=frozenset({1}))), hub.join(Topics(jobs=frozenset({2})))
    for _ in ("hello", "job"):
        await asyncio.wait_for(viewer.messages.get(), 30)
    reader.reading = Reading(jobs={2: RUNNING})
    assert await asyncio.wait_for(viewer.messages.get(), 30) == live.encode("gone", {"id": 1})
    assert names(other) == ["hello", "job"]
    hub.close()


@in_a_loop
async def test_nothing_is_read_once_the_last_viewer_has_left() -> None:
    reader = Scripted()
    hub = Hub(reader)  # type: ignore[arg-type]
    viewer = hub.join(Topics())
    await asyncio.sleep(0.05)
    hub.leave(viewer)
    await asyncio.sleep(0.05)
    num_readings = len(reader.watched)
    await asyncio.sleep(live.TICK_S * 2)
    assert len(reader.watched) == num_readings


@in_a_loop
async def test_who_comes_while_the_last_ones_connection_is_closed_is_greeted(monkeypatch: pytest.MonkeyPatch) -> None:
    is_closing, may_close = threading.Event(), threading.Event()

    def close_all() -> None:
        is_closing.set()
        may_close.wait(30)

    monkeypatch.setattr(live.connections, "close_all", close_all)
    hub = Hub(Scripted())  # type: ignore[arg-type]
    first = hub.join(Topics())
    assert await asyncio.wait_for(first.messages.get(), 30) == live.encode("hello", {})
    hub.leave(first)
    assert await asyncio.to_thread(is_closing.wait, 30)
    second = hub.join(Topics())
    may_close.set()
    assert await asyncio.wait_for(second.messages.get(), 30) == live.encode("hello", {})
    hub.close()


@in_a_loop
async def test_a_slow_viewer_gets_a_resync_instead_of_a_growing_queue() -> None:
    viewer = Viewer(Topics())
    for number in range(live.MOST_WAITING_MESSAGES + 1):
        viewer.offer(live.encode("job", {"id": number}))
    assert names(viewer) == ["resync"]


@pytest.mark.django_db(transaction=True)
def test_points_stored_before_a_job_is_watched_are_left_to_the_page_and_later_ones_are_told(alice: User) -> None:
    job = make_job(alice)
    attempt = start(job)
    record(attempt, points([1], train_loss=[3.0]))
    reader, watched = Reader(), Topics(jobs=frozenset({job.pk}))
    assert reader.read(watched).chunks == []
    record(attempt, points([2], train_loss=[2.0]))
    [chunk] = reader.read(watched).chunks
    assert live.plain_series(chunk) == {"train_loss": {"step": [2], "wall": [0.02], "y": [2.0]}}
    assert reader.read(watched).chunks == []


@pytest.mark.django_db(transaction=True)
def test_an_attempt_that_begins_while_it_is_watched_is_read_from_its_first_point(alice: User) -> None:
    job = make_job(alice)
    reader, watched = Reader(), Topics(jobs=frozenset({job.pk}))
    reader.read(watched)
    record(start(job), points([1], train_loss=[3.0]))
    assert [chunk.sequence for chunk in reader.read(watched).chunks] == [0]


@pytest.mark.django_db(transaction=True)
def test_the_lists_version_changes_with_every_change_of_state_and_only_for_its_team(
    alice: User, stranger: User
) -> None:
    mine, theirs = (frozenset(user.teams.values_list("pk", flat=True)) for user in (alice, stranger))

    def versions() -> tuple[str, str]:
        jobs = read_open_jobs()
        return list_version(jobs, mine), list_version(jobs, theirs)

    seen = [versions()]
    job = make_job(alice)
    seen.append(versions())
    attempt = start(job)
    seen.append(versions())
    request_cancel(job, alice)
    seen.append(versions())
    finish_attempt(attempt, Outcome.CANCELLED)
    seen.append(versions())
    own = [own for own, _other in seen]
    assert all(own[place] != own[place + 1] for place in range(4))
    assert len({other for _own, other in seen}) == 1


@pytest.mark.django_db(transaction=True)
def test_the_fleets_version_changes_with_queues_and_workers(alice: User, boss: User) -> None:
    versions = [live.fleet_version([])]
    make_worker("pit-01")
    versions.append(live.fleet_version([]))
    pause_queue(make_job(alice).queue, boss, "why")
    versions.append(live.fleet_version([]))
    assert len(set(versions)) == 3


@pytest.mark.django_db(transaction=True)
def test_a_studys_version_changes_with_what_people_do_to_it_and_with_nothing_else(
    alice: User, boss: User, queue: Queue
) -> None:
    study, other = make_study(alice, queue), make_study(alice, queue)
    reader, watched = Reader(), Topics(studies=frozenset({study.pk}))

    def version() -> str:
        [(pk, told)] = reader.read(watched).studies.items()
        assert pk == study.pk
        return told

    seen = [version()]
    pause_study(study, boss, "why")
    seen.append(version())
    pause_study(other, boss)
    assert version() == seen[-1]
    resume_study(study, boss)
    seen.append(version())
    extend_study(study, boss, Extension(num_repeats=3))
    seen.append(version())
    assert len(set(seen)) == 4


@pytest.mark.django_db(transaction=True)
@in_a_loop
async def test_an_open_study_page_is_told_that_somebody_paused_it(alice: User, boss: User, queue: Queue) -> None:
    study = await sync_to_async(make_study)(alice, queue)
    client = AsyncClient()
    await client.aforce_login(alice)
    page = (await client.get(f"/studies/{study.pk}/")).content.decode()
    response = await client.get(f"/live/?topics=study:{study.pk}")
    stream = response.streaming_content.__aiter__()
    shown = re.search(r'data-study-version="(\w+)"', page)
    assert shown
    assert shown[1].encode() in await read_until(stream, b"event: study"), "it is not fetched anew for nothing"
    await sync_to_async(pause_study)(study, boss)
    assert shown[1].encode() not in await read_until(stream, b"event: study")


def make_study(owner: User, queue: Queue) -> Study:
    plan = StudyPlan(
        base=make_spec().model_dump(mode="json"), axes=[Axis(field="num_threads", values=[1])], num_repeats=2
    )
    return create_study(owner=owner, team=owner.teams.get(), queue=queue, plan=plan)


async def read_until(stream: AsyncIterator[bytes], word: bytes) -> bytes:
    read = b""
    async with asyncio.timeout(60):
        async for part in stream:
            read += part
            if word in read:
                break
    return read


@pytest.mark.django_db(transaction=True)
@in_a_loop
async def test_the_stream_tells_of_points_as_they_are_stored(alice: User) -> None:
    job = await sync_to_async(make_job)(alice)
    attempt = await sync_to_async(start)(job)
    client = AsyncClient()
    await client.aforce_login(alice)
    response = await client.get(f"/live/?topics=job:{job.pk},jobs")
    assert response.headers["Content-Type"] == "text/event-stream"
    stream = response.streaming_content.__aiter__()
    assert b"event: hello" in await read_until(stream, b"event: jobs")
    await sync_to_async(record)(attempt, points([1], train_loss=[2.5]))
    assert b'"y":[2.5]' in await read_until(stream, b"event: points")


@in_a_loop
async def test_a_viewer_that_leaves_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(Scripted())  # type: ignore[arg-type]
    monkeypatch.setattr(live, "running_hub", lambda: hub)
    stream = live.stream(Topics())
    assert b"connected" in await anext(stream)
    assert len(hub._viewers) == 1
    await stream.aclose()
    assert not hub._viewers


@pytest.mark.django_db(transaction=True)
@in_a_loop
async def test_the_stream_ends_when_the_hub_closes(alice: User) -> None:
    client = AsyncClient()
    await client.aforce_login(alice)
    response = await client.get("/live/?topics=jobs")
    stream = response.streaming_content.__aiter__()
    await read_until(stream, b"event: jobs")
    live.running_hub().close()
    async with asyncio.timeout(2):
        assert [part async for part in stream] == []


@pytest.mark.django_db(transaction=True)
@in_a_loop
async def test_a_job_that_is_not_there_to_be_seen_is_told_to_be_gone_and_nothing_of_it(
    job: Job, stranger: User
) -> None:
    attempt = await sync_to_async(start)(job)
    own = await sync_to_async(make_job)(stranger)
    client = AsyncClient()
    await client.aforce_login(stranger)
    response = await client.get(f"/live/?topics=job:{job.pk},job:{own.pk},job:987654")
    stream = response.streaming_content.__aiter__()
    greeting = await read_until(stream, f'"id":{own.pk},"state"'.encode())
    assert all(f'event: gone\ndata: {{"id":{pk}}}'.encode() in greeting for pk in (job.pk, 987654))
    await sync_to_async(record)(attempt, points([1], train_loss=[2.5]))
    await sync_to_async(request_cancel)(own, stranger, "enough")
    told = await read_until(stream, b'"state":"cancelled"')
    assert b"event: points" not in greeting + told


def test_nobody_watches_a_study_of_another_team_or_the_fleet(stranger: User, alice: User, queue: Queue) -> None:
    other: Client = browser_of(stranger)
    study = make_study(alice, queue)
    assert other.get(f"/live/?topics=study:{study.pk}").status_code == 404
    assert other.get("/live/?topics=fleet").status_code == 403
    assert other.get("/live/?topics=job:1%27").status_code == 404
