import json
import math

import pytest
from pydantic import ValidationError

from jobs.contract.events import ErrorInfo, Finished, Phase, Points, Started, Warned, parse_event
from jobs.contract.findings import Finding, Severity
from jobs.contract.metrics import Summary
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome

FINDING = Finding(code="c", field="f", severity=Severity.WARN, message="%(n)s left", params={"n": 1})
EVENTS = [
    Started(
        pid=1, spec=TrainSpec(num_steps=2), device_name="d", dataset_revision="r", num_train_samples=3, versions={}
    ),
    Phase(name="building"),
    Warned(finding=FINDING),
    Points(steps=[1, 2], wall_s=[0.5, 1.0], series={"train_loss": [2.0, 1.5]}),
    Finished(outcome=Outcome.SUCCEEDED, summary=Summary(num_steps=2, samples_per_s=1.5)),
    Finished(
        outcome=Outcome.FAILED, summary=Summary(), error=ErrorInfo(type="T", message="m", rank=1, findings=[FINDING])
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_an_event_survives_its_line(event):
    line = event.model_dump_json()
    assert "\n" not in line
    assert parse_event(line) == event
    assert parse_event(line.encode()) == event


def test_numbers_that_are_not_finite_travel_as_strings():
    points = Points(steps=[1, 2, 3], wall_s=[0, 1, 2], series={"x": [math.nan, math.inf, -math.inf]})
    line = points.model_dump_json()
    assert json.loads(line)["series"]["x"] == ["NaN", "Infinity", "-Infinity"]
    nan, *infinite = parse_event(line).series["x"]
    assert math.isnan(nan)
    assert infinite == [math.inf, -math.inf]


def test_a_summary_inside_an_event_keeps_its_nan():
    line = Finished(outcome=Outcome.DIVERGED, summary=Summary(final_train_loss=math.nan)).model_dump_json()
    assert json.loads(line)["summary"]["final_train_loss"] == "NaN"
    assert math.isnan(parse_event(line).summary.final_train_loss)


@pytest.mark.parametrize("line", ["", "{}", '{"type": "gossip"}', '{"type": "phase"}'])
def test_what_is_not_an_event_is_refused(line):
    with pytest.raises(ValidationError):
        parse_event(line)
