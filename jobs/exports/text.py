"""CSV, and a JSON object per line. Numbers that are not finite are NaN, Infinity and -Infinity; strings in JSON."""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator

from jobs.curves import Curve
from jobs.exports.series import Origin, Series

COLUMNS = ("job", "attempt", "series", "unit", "step", "wall_s", "value")

_ROWS_AT_ONCE = 8192


def write_csv(origin: Origin, series: Iterable[Series]) -> Iterator[bytes]:
    """A header, then a line per point."""
    yield f"{','.join(COLUMNS)}\r\n".encode()
    for one in series:
        line = io.StringIO()
        csv.writer(line).writerow((origin.job, origin.attempt, one.name, one.unit))
        begin = line.getvalue().removesuffix("\r\n")
        for rows in _rows(one.curve):
            lines = (f"{begin},{step},{_number(wall_s)},{_number(value)}\r\n" for step, wall_s, value in rows)
            yield "".join(lines).encode()


def write_json_lines(origin: Origin, series: Iterable[Series]) -> Iterator[bytes]:
    """An object per point, with the same names as the columns of CSV."""
    for one in series:
        fields = dict(zip(COLUMNS, (origin.job, origin.attempt, one.name, one.unit), strict=False))
        begin = json.dumps(fields)[:-1]
        for rows in _rows(one.curve):
            yield "".join(
                f'{begin}, "step": {step}, "wall_s": {_json_number(wall_s)}, "value": {_json_number(value)}}}\n'
                for step, wall_s, value in rows
            ).encode()


def _rows(curve: Curve) -> Iterator[Iterable[tuple[int, float, float]]]:
    for begin in range(0, len(curve), _ROWS_AT_ONCE):
        part = curve[begin : begin + _ROWS_AT_ONCE]
        yield zip(part.steps.tolist(), part.wall_s.tolist(), part.values.tolist(), strict=True)


def _json_number(number: float) -> str:
    return _number(number) if math.isfinite(number) else f'"{_number(number)}"'


def _number(number: float) -> str:
    """The shortest text that reads as the same number."""
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
