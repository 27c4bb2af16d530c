"""The points that curves are measured with: a loss that falls and scatters, with times as the engine tells them."""

import numpy as np

from jobs.contract.events import Points

STEPS_PER_WINDOW = 250  # the engine reads the clock once per window and interpolates inside


def losses(num_steps: int, seed: int, *, as_float32: bool = True) -> np.ndarray:
    """One value per step; from torch's losses come float32."""
    rng = np.random.default_rng(seed)
    values = 2.5 * np.exp(-np.arange(num_steps) / num_steps * 4) + rng.normal(scale=0.05, size=num_steps)
    return values.astype(np.float32).astype(np.float64) if as_float32 else values


def walls_s(num_steps: int, seed: int) -> np.ndarray:
    """Seconds since the first step began, a millisecond a step, each window a little faster or slower."""
    rng = np.random.default_rng(seed)
    paces_s = np.repeat(rng.normal(1e-3, 3e-5, size=num_steps // STEPS_PER_WINDOW + 1), STEPS_PER_WINDOW)
    return np.cumsum(paces_s[:num_steps])


def events(num_steps: int, seed: int, per_event: int, series: tuple[str, ...] = ("train_loss",)) -> list[Points]:
    """The same as the engine's events, so many steps in each."""
    wall_s = walls_s(num_steps, seed)
    values = {name: losses(num_steps, seed + place) for place, name in enumerate(series)}
    return [
        Points(
            steps=list(range(begin + 1, min(begin + per_event, num_steps) + 1)),
            wall_s=wall_s[begin : begin + per_event].tolist(),
            series={name: array[begin : begin + per_event].tolist() for name, array in values.items()},
        )
        for begin in range(0, num_steps, per_event)
    ]
