"""Log records say which attempt they are about, for people and for machines."""

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.contract.states import Outcome
from jobs.logs import AddFields, JsonLines, Lines, about, fields_of
from jobs.models import Attempt, User
from jobs.services.cancel import request_cancel
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_job, start

ROOT = Path(__file__).resolve().parents[2]


def make_record(message: str = "it %s", *arguments: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord("workers.host", logging.WARNING, __file__, 1, message, arguments or ("works",), None)
    record.__dict__ |= extra
    AddFields().filter(record)
    return record


@pytest.fixture
def attempt() -> Attempt:
    return Attempt(pk=7, job_id=3, fence=2)


def test_a_record_in_the_block_of_an_attempt_carries_its_numbers(attempt: Attempt) -> None:
    with about(attempt):
        inside = json.loads(JsonLines().format(make_record()))
    outside = json.loads(JsonLines().format(make_record()))
    assert {name: inside[name] for name in ("job", "attempt", "fence")} == {"job": 3, "attempt": 7, "fence": 2}
    assert not {"job", "attempt", "fence"} & set(outside)
    assert (inside["level"], inside["logger"], inside["message"]) == ("WARNING", "workers.host", "it works")


def test_what_a_record_says_itself_goes_before_its_block(attempt: Attempt) -> None:
    with about(attempt):
        assert json.loads(JsonLines().format(make_record(job=99)))["job"] == 99


def test_one_threads_block_is_not_anothers(attempt: Attempt) -> None:
    seen: list[dict[str, object]] = []
    with about(attempt):
        thread = threading.Thread(target=lambda: seen.append(json.loads(JsonLines().format(make_record()))))
        thread.start()
        thread.join()
    assert "job" not in seen[0]


def test_people_read_a_line(attempt: Attempt) -> None:
    assert (
        Lines()
        .format(make_record(**fields_of(attempt)))
        .endswith("WARNING workers.host: it works [job=3 attempt=7 fence=2]")
    )
    assert Lines().format(make_record()).endswith("it works")


def test_a_traceback_and_a_line_break_stay_on_one_line_of_json() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        record = make_record("failed:\n%s", "here")
        record.exc_info = sys.exc_info()
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line)["message"] == "failed:\nhere"
    assert "ValueError: first" in json.loads(line)["traceback"]


@pytest.mark.django_db
def test_the_life_of_a_job_is_told_with_its_numbers(caplog: pytest.LogCaptureFixture, alice: User) -> None:
    with caplog.at_level(logging.INFO):
        attempt = start(make_job(alice))
        request_cancel(attempt.job, alice, "enough")
        finish_attempt(attempt, Outcome.FAILED)
    told = [(record.message, record.job, getattr(record, "attempt", None)) for record in caplog.records]  # type: ignore[attr-defined]
    numbers = (attempt.job_id, attempt.pk)
    assert ("claimed by box on cpu:0", *numbers) in told
    assert ("ended as cancelled", *numbers) in told
    assert (f"alice: cancel {attempt.job}", attempt.job_id, None) in told


@pytest.mark.parametrize("log_format", ["json", "lines"])
def test_a_process_writes_in_the_format_that_is_set(tmp_path: Path, log_format: str) -> None:
    program = (
        "import django, logging; django.setup(); logging.getLogger('pit').info('box', extra={'job': 4, 'fence': 1})"
    )
    environment = os.environ | {
        "PITWALL_VAR": str(tmp_path),
        "PITWALL_LOG_FORMAT": log_format,
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    line = ran.stderr.strip().splitlines()[-1]
    if log_format == "json":
        assert json.loads(line)["job"] == 4
    else:
        assert line.endswith("INFO pit: box [job=4 fence=1]")
