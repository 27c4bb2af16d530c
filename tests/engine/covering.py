"""A pairwise covering array: few cases in which every two values of two different options meet at least once.

Greedy, as in AETG (Cohen et al., 1997): a case begins with a pair that is still missing and takes, option by option,
the value that brings the most missing pairs with it. The same seed gives the same cases.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

Case = dict[str, Any]
Pair = frozenset[tuple[str, int]]  # two options, each with the place of one of its values


def cover_pairs(values: Mapping[str, Sequence[Any]], seed: int = 0) -> list[Case]:
    """Cases over all options in `values`."""
    chance = random.Random(seed)
    missing = {
        frozenset([(one, i), (two, j)])
        for one, two in combinations(values, 2)
        for i in range(len(values[one]))
        for j in range(len(values[two]))
    }
    cases = []
    while missing:
        case = dict(min(missing, key=sorted))
        names = [name for name in values if name not in case]
        chance.shuffle(names)
        for name in names:
            places = chance.sample(range(len(values[name])), len(values[name]))
            case[name] = max(places, key=lambda place: _num_new(case, name, place, missing))
        missing -= {frozenset(pair) for pair in combinations(case.items(), 2)}
        cases.append({name: values[name][case[name]] for name in values})
    return cases


def _num_new(case: Mapping[str, int], name: str, place: int, missing: set[Pair]) -> int:
    return sum(frozenset([(name, place), other]) in missing for other in case.items())
