"""An event file for TensorBoard, by TensorBoard's own writer, where it is installed."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.utils.translation import gettext

from jobs.exports.series import Origin, Outbox, Series
from jobs.services.errors import NotPossible

_POINTS_AT_ONCE = 4096


def can_write_tensorboard() -> bool:
    """Whether TensorBoard is installed here."""
    return find_spec("tensorboard") is not None


def write_tensorboard(origin: Origin, series: Iterable[Series]) -> Iterator[bytes]:
    """A scalar per point. Raises `NotPossible` with a sentence where TensorBoard is missing."""
    if not can_write_tensorboard():
        raise NotPossible(
            gettext("TensorBoard is not installed on this server: pip install -r requirements-tensorboard.txt")
        )
    return _write(origin, series)


def _write(origin: Origin, series: Iterable[Series]) -> Iterator[bytes]:
    protocol: Any = import_module("tensorboard.compat.proto.event_pb2")
    records: Any = import_module("tensorboard.summary.writer.record_writer")
    outbox = Outbox()
    writer = records.RecordWriter(outbox)
    began_s = origin.began_at.timestamp()
    writer.write(protocol.Event(wall_time=began_s, file_version="brain.Event:2").SerializeToString())
    for one in series:
        points = zip(one.curve.steps.tolist(), one.curve.wall_s.tolist(), one.curve.values.tolist(), strict=True)
        for index, (step, wall_s, value) in enumerate(points):
            event = protocol.Event(wall_time=began_s + wall_s, step=step)
            event.summary.value.add(tag=one.name, simple_value=value)
            writer.write(event.SerializeToString())
            if index % _POINTS_AT_ONCE == 0:
                yield outbox.take()
    yield outbox.take()
