"""The points of one job as files for other programs: a format per file, each a generator of bytes.

A point is a row: which series, its unit, step, wall time, value. Formats are given one series after the other, so that
no more than one of them is in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs.exports.parquet import write_parquet
from jobs.exports.series import Origin, Series
from jobs.exports.tensorboard import write_tensorboard
from jobs.exports.text import write_csv, write_json_lines

__all__ = ["FORMATS", "Format", "Origin", "Series"]


@dataclass(frozen=True)
class Format:
    """A kind of file."""

    write: Callable[[Origin, Iterable[Series]], Iterator[bytes]]
    content_type: str
    file_name: str  # with the job's number to be filled in


FORMATS = {
    "csv": Format(write_csv, "text/csv; charset=utf-8", "job-{job}-points.csv"),
    "jsonl": Format(write_json_lines, "application/x-ndjson", "job-{job}-points.jsonl"),
    "parquet": Format(write_parquet, "application/vnd.apache.parquet", "job-{job}-points.parquet"),
    "tensorboard": Format(write_tensorboard, "application/octet-stream", "events.out.tfevents.{seconds}.job-{job}"),
}
