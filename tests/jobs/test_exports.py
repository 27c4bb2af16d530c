"""A job's points as files: read back by other programs they are the stored points."""

import csv
import io
import json
import math
from datetime import timedelta
from typing import Any

import numpy
import pandas
import pyarrow.parquet
import pytest
from django.test import Client

from jobs.contract.series import unit_of
from jobs.exports import tensorboard
from jobs.models import Job, User
from jobs.selectors.curves import read_curve
from jobs.selectors.exports import origin_of
from jobs.services.compaction import compact
from tests.jobs.factories import make_ended_job, make_job, points, record, start

pytestmark = [
    pytest.mark.django_db,
    # The test client serves the stream's parts one after the other, as a server without a loop would.
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators"),
]

VALUES = [3.0, 1 / 3, math.nan, math.inf, -math.inf, 5e-324]
COLUMNS = ["job", "attempt", "series", "unit", "step", "wall_s", "value"]


@pytest.fixture
def job(alice: User) -> Job:
    job = make_ended_job(alice, losses=())
    attempt = job.last_attempt
    assert attempt
    type(attempt).objects.update(outcome=None)
    steps = range(1, 7)
    record(
        attempt, points(steps, train_loss=VALUES), points(range(1, 9001), step_time_ms=[0.1 * n for n in range(9000)])
    )
    type(attempt).objects.update(outcome="succeeded")
    attempt.refresh_from_db()
    assert compact(attempt)
    return job


def download(client: Client, job: Job, query: str = "") -> bytes:
    response = client.get(f"/api/v1/jobs/{job.pk}/points?{query}")
    assert response.status_code == 200, response.content
    assert "attachment" in response["Content-Disposition"]
    return b"".join(response)


def stored(job: Job, series: str) -> Any:
    assert job.last_attempt
    return read_curve(job.last_attempt, series)


def assert_is_stored(table: pandas.DataFrame, job: Job) -> None:
    assert list(table.columns) == COLUMNS
    assert set(table["job"]) == {job.pk}
    for series, unit in (("train_loss", ""), ("step_time_ms", "ms")):
        rows, curve = table[table["series"] == series], stored(job, series)
        assert rows["step"].tolist() == curve.x
        assert numpy.array_equal(rows["wall_s"], curve.wall_s)
        assert numpy.array_equal(rows["value"], curve.y, equal_nan=True)
        assert set(rows["unit"].fillna("")) == {unit}
    assert len(table) == 9006


def test_csv_is_read_back_by_pandas_and_by_the_standard_library(api: Client, job: Job) -> None:
    content = download(api, job)
    assert_is_stored(pandas.read_csv(io.BytesIO(content)), job)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert [repr(float(row["value"])) for row in rows[:6]] == [repr(value) for value in VALUES]


def test_parquet_is_read_back_by_pyarrow_and_keeps_nan(api: Client, job: Job) -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(download(api, job, "format=parquet")))
    assert table["value"].null_count == 0
    assert_is_stored(table.to_pandas(), job)


def test_each_line_of_json_is_an_object(api: Client, job: Job) -> None:
    def refuse(text: str) -> None:
        raise ValueError(text)

    lines = download(api, job, "format=jsonl").splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [row["value"] for row in rows[:6]] == [3.0, 1 / 3, "NaN", "Infinity", "-Infinity", 5e-324]
    for row in rows:
        row["value"] = float(row["value"])
    assert_is_stored(pandas.DataFrame(rows), job)


def test_some_series_alone(api: Client, job: Job) -> None:
    rows = download(api, job, "series=train_loss").decode().splitlines()
    assert len(rows) == 7


def test_a_series_that_the_job_does_not_have_is_named(api: Client, job: Job) -> None:
    response = api.get(f"/api/v1/jobs/{job.pk}/points?series=train_loss,gossip")
    assert response.status_code == 422
    assert "gossip" in response.json()["errors"][0]["message"]


def test_an_unknown_format_is_refused(api: Client, job: Job) -> None:
    assert api.get(f"/api/v1/jobs/{job.pk}/points?format=xlsx").status_code == 422


def test_a_job_that_has_not_started_is_an_empty_file(api: Client, alice: User) -> None:
    assert download(api, make_job(alice)).decode() == ",".join(COLUMNS) + "\r\n"


def test_the_points_of_a_living_job_can_be_had_too(api: Client, alice: User) -> None:
    job = make_job(alice)
    record(start(job), points([1, 2], train_loss=[2.0, 1.0]))
    assert len(download(api, job).splitlines()) == 3


def test_a_job_that_ended_without_points_is_an_empty_table(api: Client, alice: User) -> None:
    content = download(api, make_ended_job(alice, losses=()), "format=parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(content)).num_rows == 0


def test_nobody_downloads_what_is_not_theirs_to_see(api: Client, strangers_job: Job) -> None:
    assert api.get(f"/api/v1/jobs/{strangers_job.pk}/points").status_code == 404


def test_wall_time_counts_from_when_the_model_was_built(alice: User) -> None:
    job = make_ended_job(alice, summary={"build_s": 4.0})
    attempt = Job.objects.get(pk=job.pk).last_attempt
    assert attempt
    assert attempt.running_at
    assert origin_of(Job.objects.get(pk=job.pk)).began_at == attempt.running_at + timedelta(seconds=4)


def test_without_tensorboard_a_sentence_says_what_is_missing(
    api: Client, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda _name: None)
    response = api.get(f"/api/v1/jobs/{job.pk}/points?format=tensorboard")
    assert response.status_code == 409
    assert "requirements-tensorboard.txt" in response.json()["errors"][0]["message"]


def test_tensorboard_reads_its_own_file(api: Client, job: Job, tmp_path: Any) -> None:
    pytest.importorskip("tensorboard", reason="pip install -r requirements-tensorboard.txt")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(download(api, job, "format=tensorboard"))
    events = [event for event in EventFileLoader(str(path)).Load() if event.HasField("summary")]
    losses = [event for event in events if event.summary.value[0].tag == "train_loss"]
    assert [event.step for event in losses] == stored(job, "train_loss").x
    assert len(events) == 9006


@pytest.mark.parametrize(
    ("series", "unit"),
    [
        ("train_loss", ""),
        ("step_time_ms", "ms"),
        ("samples_per_s", "samples/s"),
        ("telemetry.gpu_power_w", "W"),
        ("telemetry.process_rss_bytes", "bytes"),
        ("telemetry.load_average", ""),
        ("telemetry.gpu_temperature_c", "°C"),
    ],
)
def test_a_series_says_its_unit(series: str, unit: str) -> None:
    assert unit_of(series) == unit


def test_the_page_links_every_format(client: Client, alice: User, job: Job) -> None:
    client.force_login(alice)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    for name in ("csv", "parquet", "jsonl"):
        assert f"/api/v1/jobs/{job.pk}/points?format={name}" in page
