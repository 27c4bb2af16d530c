"""The search on simulated grids with known step times: how near to the true best, at what share of the grid's cost."""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from jobs.search import SHARE, Costs, finalists, next_batch, reference
from jobs.search_points import Point, Space, Trial

NOISE = 0.015
COSTS = Costs(num_repeats=3, short_run=0.2)


@dataclass(frozen=True)
class Grid:
    """True step times, some of them of configurations that do not run."""

    space: Space
    times_ms: dict[Point, float]
    out: set[Point]

    @property
    def best_ms(self) -> float:
        return min(time for point, time in self.times_ms.items() if point not in self.out)


def make_grid(rng: random.Random, interaction: float = 0.04) -> Grid:
    """Factors that mostly multiply, pairs that interact, and a tenth that cannot run."""
    sizes = rng.choice([(2, 3, 4, 3), (2, 2, 3, 2, 3), (4, 3, 2, 2), (2, 2, 2, 3, 4), (5, 4, 3)])
    space = Space(tuple(tuple({f"axis_{axis}": place} for place in range(size)) for axis, size in enumerate(sizes)))
    main = [[0.0, *(rng.gauss(0, 0.2) for _place in range(size - 1))] for size in sizes]
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    both = {
        (pair, i, j): rng.gauss(0, interaction)
        for pair in pairs
        for i in range(sizes[pair[0]])
        for j in range(sizes[pair[1]])
    }
    points = list(itertools.product(*map(range, sizes)))
    logs = {
        point: sum(main[axis][place] for axis, place in enumerate(point))
        + sum(both[pair, point[pair[0]], point[pair[1]]] for pair in pairs)
        for point in points
    }
    out = {point for point in points if any(point) and rng.random() < 0.1}
    return Grid(space, {point: 10 * math.exp(log) for point, log in logs.items()}, out)


def search(grid: Grid, rng: random.Random, seed: int) -> tuple[Point, float]:
    """The point that was found, and what it cost as a share of the full grid."""
    trials: dict[Point, Trial] = {}
    num_runs, num_rounds = COSTS.num_screening_runs(grid.space), 0
    while batch := next_batch(grid.space, list(trials.values()), num_runs, seed):
        num_rounds += 1
        assert num_rounds < 500, "it goes on for ever"
        for point in batch:
            trial = trials.setdefault(point, Trial(point, is_out=point in grid.out))
            if not trial.is_out:
                trial.times_ms.append(grid.times_ms[point] * math.exp(rng.gauss(0, NOISE)))
    used = sum(len(trial.times_ms) for trial in trials.values()) * COSTS.short_run + COSTS.finals()
    [best] = finalists(list(trials.values()), grid.space.base, 1)
    return min(best, grid.space.base, key=lambda point: grid.times_ms[point]), used / COSTS.grid(grid.space)


@pytest.fixture(scope="module")
def found() -> list[tuple[float, float]]:
    """Of many grids: how much slower than the true best, and the share of the grid's cost."""
    return list(_searched(20))


def _searched(num_grids: int, interaction: float = 0.04) -> Iterator[tuple[float, float]]:
    for seed in range(num_grids):
        rng = random.Random(seed)
        grid = make_grid(rng, interaction)
        point, share = search(grid, rng, seed)
        assert point not in grid.out
        yield grid.times_ms[point] / grid.best_ms, share


def test_it_lands_within_three_percent_of_the_true_best(found: list[tuple[float, float]]) -> None:
    assert sum(slower <= 1.03 for slower, _share in found) >= 0.9 * len(found)
    assert max(slower for slower, _share in found) < 1.15


def test_it_takes_at_most_a_fifth_of_the_grid(found: list[tuple[float, float]]) -> None:
    assert max(share for _slower, share in found) <= SHARE


def test_what_is_known_decides_what_comes_next_and_nothing_else() -> None:
    grid = make_grid(random.Random(1))
    trials = [Trial(point, [grid.times_ms[point]]) for point in [grid.space.base, *grid.space.singles()]]
    once, again = (next_batch(grid.space, trials, 40, seed=7) for _time in range(2))
    assert once == again
    assert not {trial.point for trial in trials} & set(once)


def test_what_is_refused_costs_nothing_and_is_never_proposed_again() -> None:
    grid = make_grid(random.Random(2))
    trials = [Trial(point, [grid.times_ms[point]]) for point in [grid.space.base, *grid.space.singles()]]
    refused = next_batch(grid.space, trials, 40, seed=7)
    again = next_batch(grid.space, [*trials, *(Trial(point, is_out=True) for point in refused)], 40, seed=7)
    assert len(again) == len(refused)
    assert not set(again) & set(refused)


def test_where_each_value_alone_fails_combinations_are_tried_within_the_budget() -> None:
    grid = make_grid(random.Random(3))
    trials = {point: Trial(point, is_out=True, num_failed=1) for point in [grid.space.base, *grid.space.singles()]}
    num_runs = len(trials) + 12
    while batch := next_batch(grid.space, list(trials.values()), num_runs, seed=7):
        assert not trials.keys() & set(batch)
        trials |= {point: Trial(point, is_out=True, num_failed=1) for point in batch}
    assert any(sum(place > 0 for place in point) > 1 for point in trials)
    assert len(trials) <= num_runs


def test_finalists_are_held_against_the_base_or_else_against_what_is_nearest_to_it() -> None:
    base, near, far, best = (0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 2, 0)
    ran = [Trial(near, [9.0]), Trial(far, [8.0]), Trial(best, [5.0])]
    assert reference([Trial(base, [10.0]), *ran], base, [best]) == base
    assert reference([Trial(base, [10.0], is_out=True), *ran], base, [best]) == base, "too large, but it ran"
    failed = Trial(base, is_out=True, num_failed=1)
    assert reference([failed, *ran], base, [best]) == near
    assert reference([failed, *ran[1:]], base, [best]) == far
    assert reference([failed, ran[2]], base, [best]) is None
