"""Small flushes become larger chunks while a run lives; those who watch it neither miss a point nor see one twice."""

import random
from collections import defaultdict

import pytest

from jobs import live
from jobs.contract.states import Outcome
from jobs.curves import Curve, concatenate, join
from jobs.live import Reader, Topics
from jobs.models import Attempt, User
from jobs.selectors.curves import ChunkView, new_chunks, read_curve, series_names
from jobs.services.chunks import FLUSHES_PER_MERGE, FULL_CHUNK_POINTS
from jobs.services.compaction import compact
from jobs.services.finish import finish_attempt
from jobs.services.record import record_points
from tests.jobs.factories import make_job, make_spec, points, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt(db: None) -> Attempt:
    return start(make_job(spec=make_spec(num_steps=100_000)))


def tell(attempt: Attempt, num_flushes: int, steps_per_flush: int, series: tuple[str, ...] = ("train_loss",)) -> None:
    begin = Attempt.objects.get(pk=attempt.pk).num_flushes
    for sequence in range(begin, begin + num_flushes):
        first = sequence * steps_per_flush + 1
        steps = range(first, first + steps_per_flush)
        record_points(attempt, sequence, [points(steps, **{name: [1 / step for step in steps] for name in series})])


def test_a_slow_run_has_few_chunks_and_every_point(attempt: Attempt) -> None:
    tell(attempt, 200, 1)
    assert attempt.chunks.count() <= FLUSHES_PER_MERGE + 5
    assert read_curve(attempt, "train_loss").x == list(range(1, 201))
    attempt.refresh_from_db()
    assert (attempt.num_points, attempt.num_flushes) == (200, 200)
    assert sum(attempt.chunks.values_list("num_points", flat=True)) == 200


def test_full_chunks_are_left_alone(attempt: Attempt) -> None:
    tell(attempt, 64, 300)
    sizes = list(attempt.chunks.order_by("sequence").values_list("num_points", flat=True))
    full = [size for size in sizes if size >= FULL_CHUNK_POINTS]
    assert len(full) >= 3
    assert max(sizes) < 2 * FULL_CHUNK_POINTS
    before = set(attempt.chunks.filter(num_points__gte=FULL_CHUNK_POINTS).values_list("pk", flat=True))
    tell(attempt, 16, 300)
    assert before <= set(attempt.chunks.values_list("pk", flat=True))
    assert read_curve(attempt, "train_loss").x == list(range(1, 80 * 300 + 1))


def test_a_large_flush_between_small_ones_keeps_its_place(attempt: Attempt) -> None:
    tell(attempt, 5, 1)
    large = range(6, 6 + FULL_CHUNK_POINTS)
    record_points(attempt, 5, [points(large, train_loss=[1.0] * len(large))])
    for sequence in range(6, 24):
        record_points(attempt, sequence, [points([large[-1] + sequence - 5], train_loss=[0.5])])
    curve = read_curve(attempt, "train_loss")
    assert curve.x == list(range(1, large[-1] + 19))


def test_a_live_run_takes_few_bytes_a_point(attempt: Attempt) -> None:
    tell(attempt, 1100, 4)
    num_bytes = sum(len(chunk.payload) + 60 for chunk in attempt.chunks.all())  # with what a row itself takes
    assert num_bytes <= 25 * 4400


@pytest.mark.parametrize("sequence", [0, 5, 7, 15])
def test_a_flush_told_again_changes_nothing_whether_or_not_it_was_merged(attempt: Attempt, sequence: int) -> None:
    tell(attempt, 16, 2)
    before = list(attempt.chunks.values()), Attempt.objects.values().get(pk=attempt.pk)
    record_points(attempt, sequence, [points([1, 2], train_loss=[9, 9])])
    assert (list(attempt.chunks.values()), Attempt.objects.values().get(pk=attempt.pk)) == before


def test_merging_is_undone_with_the_flush_that_does_it(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(attempt, FLUSHES_PER_MERGE - 1, 2)
    before = list(attempt.chunks.values())

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("jobs.models.CurveChunk.save", fail)
        with pytest.raises(OSError, match="full"):
            tell(attempt, 1, 2)
    assert list(attempt.chunks.values()) == before
    tell(attempt, 1, 2)
    assert read_curve(attempt, "train_loss").x == list(range(1, 2 * FLUSHES_PER_MERGE + 1))


def seen_curve(chunks: list[ChunkView], name: str) -> Curve:
    return concatenate([join(chunk.frames, name) for chunk in chunks])


@pytest.mark.parametrize("seed", range(6))
def test_whoever_follows_the_flushes_sees_each_point_once_and_in_order(attempt: Attempt, seed: int) -> None:
    """Viewers come at any time, look as often or as seldom as they like, and all see the whole curve."""
    rng = random.Random(seed)
    names = ("train_loss", "eval_loss", "telemetry.cpu_percent")
    seen: dict[int, list[ChunkView]] = defaultdict(list)
    for sequence in range(150):
        steps = range(100 * sequence, 100 * sequence + rng.randint(1, 60))
        series = {name: [rng.random() for _ in steps] for name in rng.sample(names, rng.randint(1, 2))}
        record_points(attempt, sequence, [points(steps, **series)])
        for viewer in range(5):
            if rng.random() < 1 / (1 + 4 * viewer):
                look(attempt, seen[viewer])
    for viewer in range(5):
        look(attempt, seen[viewer])
        chunks = seen[viewer]
        assert [chunk.first for chunk in chunks] == [0, *(chunk.sequence + 1 for chunk in chunks[:-1])]
        for name in series_names(attempt):
            stored = read_curve(attempt, name)
            curve = seen_curve(chunks, name)
            assert (curve.steps.tolist(), curve.values.tolist()) == (stored.x, stored.y)


def look(attempt: Attempt, seen: list[ChunkView]) -> None:
    seen += new_chunks({attempt.pk: seen[-1].sequence if seen else -1})


@pytest.mark.parametrize("seed", range(3))
def test_the_hub_tells_each_point_once_however_seldom_it_reads(alice: User, seed: int) -> None:
    rng = random.Random(seed)
    job = make_job(alice, spec=make_spec(num_steps=100_000))
    reader, watched = Reader(), Topics(jobs=frozenset({job.pk}))
    reader.read(watched)
    attempt, steps = start(job), []
    for _time in range(60):
        tell(attempt, rng.randint(0, 9), 3)
        reading = reader.read(watched)
        assert reading.missed == frozenset()
        for chunk in reading.chunks:
            steps += live.plain_series(chunk)["train_loss"]["step"]
    assert steps == read_curve(attempt, "train_loss").x


def test_a_hub_that_comes_too_late_says_that_the_points_have_to_be_fetched(alice: User) -> None:
    job = make_job(alice, spec=make_spec(num_steps=100_000))
    reader, watched = Reader(), Topics(jobs=frozenset({job.pk}))
    attempt = start(job)
    tell(attempt, 3, 3000)
    assert reader.read(watched).missed == frozenset()
    tell(attempt, 1, 3000)
    finish_attempt(attempt, Outcome.SUCCEEDED)
    assert compact(Attempt.objects.get(pk=attempt.pk))
    assert reader.read(watched).missed == {job.pk}
    assert reader.read(watched).missed == frozenset()
