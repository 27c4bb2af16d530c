"""`compare A B`: two runs' result files side by side, as text for a terminal."""

import math
from collections.abc import Iterator
from pathlib import Path

from jobs.contract.errors import PitwallError
from jobs.contract.metrics import Better, Summary
from jobs.contract.results import BrokenResult, Result, read_result

_NUM_DIGITS = 5


def compare_files(one: Path, other: Path) -> str:
    """What differs in the specs, every figure that both have with its ratio, and how far the losses lie apart.

    Raises `PitwallError` with a sentence where a file cannot be read or is not one whole run.
    """
    a, b = _read(one), _read(other)
    rows = [("", "A", "B", "B / A"), ("file", one.name, other.name, "")]
    rows += [("outcome", a.finished.outcome.value, b.finished.outcome.value, "")]
    rows += _differing_options(a, b)
    rows += _figures(a.finished.summary, b.finished.summary)
    return f"{_as_table(rows)}\n{_losses_apart(a, b)}\n"


def _read(path: Path) -> Result:
    try:
        return read_result(path.read_bytes().splitlines())
    except OSError as error:
        raise PitwallError(f"The file {path} cannot be read: {error.strerror}.") from error
    except BrokenResult as error:
        raise PitwallError(f"{path}: {error}") from error


def _differing_options(a: Result, b: Result) -> Iterator[tuple[str, str, str, str]]:
    one, other = a.started.spec.model_dump(mode="json"), b.started.spec.model_dump(mode="json")
    one["device_name"], other["device_name"] = a.started.device_name, b.started.device_name
    for name, value in one.items():
        if value != other[name]:
            yield name, str(value), str(other[name]), ""


def _figures(a: Summary, b: Summary) -> Iterator[tuple[str, str, str, str]]:
    for name, field in Summary.model_fields.items():
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, bool) or not (isinstance(x, int | float) and isinstance(y, int | float)):
            continue
        yield name, _short(x), _short(y), _ratio(x, y, Better(field.json_schema_extra["better"]))  # type: ignore[index, arg-type]


def _ratio(x: float, y: float, better: Better) -> str:
    """B / A; with a word where one direction is better. One pair of runs says nothing about noise, so nor does this."""
    if not x or not math.isfinite(x) or not math.isfinite(y):
        return ""
    if x == y or better is Better.NEITHER:
        return f"{y / x:.3f}"
    return f"{y / x:.3f} {'better' if (y < x) == (better is Better.LOWER) else 'worse'}"


def _losses_apart(a: Result, b: Result) -> str:
    one, other = _losses(a), _losses(b)
    shared = one.keys() & other.keys()
    if not shared:
        return "The runs have no step in common whose training loss both recorded."
    apart, step = max((abs(one[step] - other[step]), step) for step in shared)
    if math.isnan(apart):
        return "A training loss is not a number in one of them."
    return f"Over {len(shared)} common steps the training losses differ by at most {_short(apart)} (step {step})."


def _losses(result: Result) -> dict[int, float]:
    points = (event for event in result.points if "train_loss" in event.series)
    return {step: loss for event in points for step, loss in zip(event.steps, event.series["train_loss"], strict=True)}


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.{_NUM_DIGITS}g}"


def _as_table(rows: list[tuple[str, str, str, str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
