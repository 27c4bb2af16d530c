"""Parquet, a row group per series; the columns are those of CSV."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from jobs.exports.series import Origin, Outbox, Series


def write_parquet(origin: Origin, series: Iterable[Series]) -> Iterator[bytes]:
    """One table; NaN and infinity are what they are."""
    arrow: Any = import_module("pyarrow")  # only here: it is large, and most web processes never write a file
    parquet: Any = import_module("pyarrow.parquet")
    schema = _schema(arrow)
    outbox = Outbox()
    with parquet.ParquetWriter(outbox, schema, compression="zstd") as writer:
        for one in series:
            if len(one.curve):
                writer.write_table(arrow.Table.from_pydict(_columns(arrow, origin, one), schema=schema))
                yield outbox.take()
    yield outbox.take()


def _schema(arrow: Any) -> Any:
    name = arrow.dictionary(arrow.int32(), arrow.string())
    fields = [("job", arrow.int64()), ("attempt", arrow.int32()), ("series", name), ("unit", name)]
    fields += [("step", arrow.int64()), ("wall_s", arrow.float64()), ("value", arrow.float64())]
    return arrow.schema(fields)


def _columns(arrow: Any, origin: Origin, series: Series) -> dict[str, Any]:
    count, curve = len(series.curve), series.curve
    places = np.zeros(count, np.int32)
    return {
        "job": np.full(count, origin.job),
        "attempt": np.full(count, origin.attempt, np.int32),
        "series": arrow.DictionaryArray.from_arrays(places, [series.name]),
        "unit": arrow.DictionaryArray.from_arrays(places, [series.unit]),
        "step": curve.steps,
        "wall_s": curve.wall_s,
        "value": curve.values,
    }
