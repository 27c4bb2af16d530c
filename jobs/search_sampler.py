"""What to try next: an optuna sampler that knows that options mostly multiply.

The logarithm of a step time is modelled as a sum over axes, and beside it what is peculiar to neighbours in the space:
a Gaussian process over the points, whose kernel has both. Most proposals are its most promising points; every third is
optuna's own TPE, which assumes none of that.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from jobs.search_points import Point, Space, Trial

_AXIS_VARIANCE = 0.06  # an option's factor is mostly within about a quarter
_PECULIAR_VARIANCE = 0.006
_NOISE_VARIANCE = 0.0006  # of a short run
_LIKENESS = 0.5  # of what is peculiar to two points that differ in one axis
_OPTIMISM = 1.0  # standard deviations that a point may turn out faster than expected
_TPE_EVERY = 3
_FEWEST = 4  # trials, before which there is nothing to model

optuna.logging.set_verbosity(optuna.logging.WARNING)


def propose(space: Space, trials: Sequence[Trial], num: int, seed: int) -> list[Point]:
    """Up to so many points that have not been tried; the same for the same trials and seed."""
    study = optuna.create_study(sampler=FactorSampler(space, seed + len(trials)))
    distributions = _distributions(space)
    study.add_trials([_frozen(trial, distributions) for trial in trials])
    taken = {trial.point for trial in trials}
    found: list[Point] = []
    for _attempt in range(20 * num):
        if len(found) == num or len(taken) == space.num_points:
            break
        point = _point(study.ask(distributions).params, space)
        if point not in taken:
            taken.add(point)
            found.append(point)
    return found


class FactorSampler(optuna.samplers.BaseSampler):
    """Proposes the point that may turn out fastest; TPE takes its turn."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._tpe = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=_FEWEST
        )
        self._points = list(product(*map(range, space.sizes)))

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All axes."""
        return _distributions(self._space)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The axes' places."""
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        known = [one for one in others if one.state is TrialState.COMPLETE]
        if len(known) < _FEWEST or trial.number % _TPE_EVERY == 0:
            sampled = self._tpe.sample_relative(study, trial, search_space)
            return sampled or {
                name: self._tpe.sample_independent(study, trial, name, each) for name, each in search_space.items()
            }
        taken = {_point(one.params, self._space) for one in others}
        logs = [one.value for one in known if one.value is not None]
        promise = _promise(self._points, [_point(one.params, self._space) for one in known], logs)
        order = np.argsort(promise)
        best = next(
            (self._points[place] for place in order if self._points[place] not in taken), self._points[order[0]]
        )
        return _params(best)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """What TPE says."""
        return self._tpe.sample_independent(study, trial, param_name, param_distribution)


def _promise(points: Sequence[Point], tried: Sequence[Point], logs: Sequence[float]) -> NDArray[np.float64]:
    """How fast each point may turn out: the posterior mean of its log time less some of its deviation."""
    every, known = np.array(points), np.array(tried)
    values = np.array(logs)
    kernel = _kernel(known, known) + _NOISE_VARIANCE * np.eye(len(known))
    across = _kernel(every, known)
    inverse = np.linalg.inv(kernel)
    middle = values.mean()
    mean = middle + across @ inverse @ (values - middle)
    own = _AXIS_VARIANCE * every.shape[1] + _PECULIAR_VARIANCE
    variance = own - np.einsum("ij,jk,ik->i", across, inverse, across)
    promise: NDArray[np.float64] = mean - _OPTIMISM * np.sqrt(np.maximum(variance, 0.0))
    return promise


def _kernel(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    same = (left[:, None, :] == right[None, :, :]).sum(axis=2)
    differing = left.shape[1] - same
    kernel: NDArray[np.float64] = _AXIS_VARIANCE * same + _PECULIAR_VARIANCE * _LIKENESS**differing
    return kernel


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    return {f"axis_{axis}": CategoricalDistribution(list(range(size))) for axis, size in enumerate(space.sizes)}


def _params(point: Point) -> dict[str, Any]:
    return {f"axis_{axis}": place for axis, place in enumerate(point)}


def _point(params: dict[str, Any], space: Space) -> Point:
    return tuple(params[f"axis_{axis}"] for axis in range(len(space.axes)))


def _frozen(trial: Trial, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    """A trial as optuna keeps it: what is out was pruned, what has no time yet runs."""
    is_told = bool(trial.times_ms) and not trial.is_out
    state = TrialState.COMPLETE if is_told else TrialState.PRUNED
    return optuna.trial.create_trial(
        state=state,
        params=_params(trial.point),
        distributions=distributions,
        value=trial.log_time if is_told and math.isfinite(trial.log_time) else None,
    )
