"""The two forms in which points are stored: what goes in comes out, in its order and bit for bit."""

import math
import random

import numpy as np
import pytest

from jobs.contract.events import Points
from jobs.curve_blocks import BLOCK_POINTS, LEVELED_POINTS, blocks_of, decode, encode
from jobs.curves import Curve, frames_after, frames_from_points, gather, join, merge, pack, series_in, unpack
from jobs.thinning import pick_extremes

NAMES = ("train_loss", "eval_loss", "learning_rate", "telemetry.cpu_percent")
ODD = (math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3)


def bits(curve: Curve) -> tuple[bytes, bytes, bytes]:
    return curve.steps.tobytes(), curve.wall_s.tobytes(), curve.values.tobytes()


def random_event(rng: random.Random, first: int) -> Points:
    names = rng.sample(NAMES, rng.randint(1, 3))
    count = rng.randint(1, 6)
    stride = rng.choice([0, 1, 1, 1, 7])
    steps = [first + stride * index for index in range(count)]
    values = {name: [rng.choice(ODD) if rng.random() < 0.2 else rng.gauss(0, 1) for _ in steps] for name in names}
    return Points(steps=steps, wall_s=[step / 7 for step in steps], series=values)


@pytest.mark.parametrize("seed", range(20))
def test_flushes_are_merged_and_cut_apart_again_without_a_point_lost_doubled_or_moved(seed: int) -> None:
    rng = random.Random(seed)
    flushes = [[random_event(rng, 10 * number) for _ in range(rng.randint(1, 3))] for number in range(30)]
    payloads = [(number, pack(frames_from_points(events))) for number, events in enumerate(flushes)]
    while len(payloads) > 1:  # neighbours are merged in any order, merged ones too
        begin = rng.randrange(len(payloads) - 1)
        end = min(len(payloads), begin + rng.randint(2, 5))
        payloads[begin:end] = [(payloads[end - 1][0], merge(payloads[begin:end]))]
    [(sequence, payload)] = payloads
    assert sequence == 29
    for after in range(-1, 30):
        told = [frame for events in flushes[after + 1 :] for event in events for frame in frames_from_points([event])]
        left = frames_after(payload, after)
        for name in NAMES:
            assert bits(join(left, name)) == bits(join(told, name)), (after, name)


def test_a_merged_chunk_names_its_series_in_its_first_bytes() -> None:
    events = [Points(steps=[n], wall_s=[n / 10] * 1, series={"train_loss": [1.0]}) for n in range(0, 9000, 2)]
    payload = merge((n, pack(frames_from_points([event]))) for n, event in enumerate(events))
    assert series_in(payload[:200]) == ["train_loss"]
    assert len(payload) < 18 * len(events)


def test_series_that_share_a_name_keep_its_order() -> None:
    one, both = {"a": [1.0]}, {"a": [2.0], "b": [3.0]}
    events = [Points(steps=[n], wall_s=[0.0], series=series) for n, series in enumerate((one, both, one))]
    frames = frames_from_points(events)
    assert join(frames, "a").steps.tolist() == [0, 1, 2]
    assert gather(frames) == frames


def test_chunks_that_were_written_before_flushes_were_merged_are_still_read() -> None:
    steps, wall_s, loss = np.arange(1, 4), np.array([0.1, 0.2, 0.3]), np.array([3.0, math.nan, 1.0])
    arrays = b"".join(array.astype(kind).tobytes() for array, kind in ((steps, "<i8"), (wall_s, "<f8"), (loss, "<f8")))
    old = b'[{"n":3,"series":["train_loss"]}]\n' + arrays
    [frame] = unpack(old)
    assert (frame.steps.tolist(), frame.wall_s.tolist()) == ([1, 2, 3], [0.1, 0.2, 0.3])
    new = pack(frames_from_points([Points(steps=[9], wall_s=[0.9], series={"train_loss": [0.5]})]))
    merged = merge([(4, old), (5, new)])
    assert join(unpack(merged), "train_loss").steps.tolist() == [1, 2, 3, 9]
    assert join(frames_after(merged, 4), "train_loss").steps.tolist() == [9]


CURVES = {
    "losses as a GPU tells them": lambda rng, n: rng.normal(size=n).astype(np.float32).astype(np.float64),
    "doubles": lambda rng, n: rng.normal(size=n),
    "odd values": lambda rng, n: rng.choice(np.array(ODD), size=n),
    "too large for a float32": lambda rng, n: rng.normal(size=n) * 1e300,
    "counts": lambda rng, n: rng.integers(0, 2**53, size=n).astype(np.float64),
    "one value": lambda rng, n: np.full(n, 0.25),
}
STEPS = {
    "by one": lambda rng, n: np.arange(1, n + 1),
    "repeated": lambda rng, n: np.sort(rng.integers(0, 50, size=n)),
    "in no order": lambda rng, n: rng.integers(-(2**62), 2**62, size=n),
    "at the ends of what a number holds": lambda rng, n: rng.choice(np.array([-(2**63), 2**63 - 1]), size=n),
}
WALLS = {
    "microseconds": lambda rng, n: np.round(np.cumsum(rng.random(n)), 6),
    "anything": lambda rng, n: np.cumsum(rng.random(n)),
    "not even finite": lambda rng, n: rng.choice(np.array([math.nan, math.inf, -0.0, 1e300]), size=n),
}


@pytest.mark.parametrize("values", CURVES)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("count", [1, 2, 1000])
def test_a_block_gives_back_every_bit(values: str, steps: str, wall: str, count: int) -> None:
    rng = np.random.default_rng(count)
    curve = Curve(STEPS[steps](rng, count).astype(np.int64), WALLS[wall](rng, count), CURVES[values](rng, count))
    assert bits(decode(encode(curve))) == bits(curve)


def test_a_long_curve_becomes_blocks_with_coarser_levels_and_a_short_one_a_block_without() -> None:
    values = np.random.default_rng(0).normal(size=2 * BLOCK_POINTS + 100)
    curve = Curve(np.arange(1, len(values) + 1), np.arange(len(values)) / 1000, values)
    blocks = list(blocks_of(curve))
    assert [block.num_points for block in blocks] == [BLOCK_POINTS, BLOCK_POINTS, 100]
    assert (blocks[2].medium, blocks[2].coarse) == (None, None)
    assert (blocks[1].first_step, blocks[1].last_step) == (BLOCK_POINTS + 1, 2 * BLOCK_POINTS)
    for block in blocks[:2]:
        full, medium, coarse = decode(block.full), decode(block.medium or b""), decode(block.coarse or b"")
        assert BLOCK_POINTS / 10 < len(medium) <= BLOCK_POINTS / 8 + 2
        assert BLOCK_POINTS / 80 < len(coarse) <= BLOCK_POINTS / 64 + 2
        for level in (medium, coarse):
            assert (level.values.min(), level.values.max()) == (full.values.min(), full.values.max())
            assert np.isin(level.steps, full.steps).all()
    assert next(blocks_of(curve[: LEVELED_POINTS - 1])).medium is None


@pytest.mark.parametrize("seed", range(20))
def test_every_stretch_of_a_level_has_its_lowest_and_highest_point_and_its_breaks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=int(rng.integers(100, 5000)))
    for _number in range(5):
        place = int(rng.integers(0, len(values)))
        values[place : place + int(rng.integers(1, 20))] = rng.choice([math.nan, math.inf, -math.inf])
    kept = pick_extremes(values, 50)
    finite = np.isfinite(values)
    assert values[kept][finite[kept]].max() == values[finite].max()
    assert values[kept][finite[kept]].min() == values[finite].min()
    assert {0, len(values) - 1} <= set(kept.tolist())
    for place in np.flatnonzero(~finite):
        is_end = place in (0, len(values) - 1) or finite[place - 1] or finite[place + 1]
        assert not is_end or place in kept
