import io
import json

import pytest
from django.core.management import call_command

from jobs.contract.errors import PitwallError
from jobs.contract.events import Artifact, Finished, Phase, Points, Started, Warned
from jobs.contract.findings import Finding, Severity
from jobs.contract.metrics import Summary
from jobs.contract.results import BrokenResult
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job
from jobs.models.job import Origin
from jobs.selectors.curves import read_curves
from jobs.selectors.leaderboard import visible_boards
from jobs.services.import_run import EVENTS_PER_CHUNK, import_run
from jobs.services.record import record_artifact
from tests.jobs.factories import HARDWARE, make_ended_job, make_job, make_queue, make_team, make_user, start

pytestmark = pytest.mark.django_db

STARTED = Started(
    pid=7,
    spec=TrainSpec(model="mlp", dataset="digits", device="cpu", num_steps=3),
    device_name="Fast CPU",
    dataset_revision="r1",
    num_train_samples=1437,
    versions={"engine": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
    hardware=HARDWARE,
)
WARNED = Warned(finding=Finding(code="c", field="model", severity=Severity.WARN, message="Careful."))
CURVE = Points(steps=[1, 2, 3], wall_s=[0.1, 0.2, 0.3], series={"train_loss": [3.0, 2.0, 1.0]})
FINISHED = Finished(
    outcome=Outcome.SUCCEEDED, summary=Summary(num_steps=3, steady_step_time_ms=1.5, final_train_loss=float("nan"))
)
RUN = [Phase(name="importing"), STARTED, WARNED, CURVE, FINISHED]


@pytest.fixture
def cast():
    team = make_team("racers")
    return {"owner": make_user("ann", team=team), "team": team, "queue": make_queue()}


def write(folder, events=RUN):
    path = folder / "result.jsonl"
    path.write_text("".join(f"{event if isinstance(event, str) else event.model_dump_json()}\n" for event in events))
    return path


def test_a_run_comes_in_as_a_job_that_has_ended(tmp_path, cast):
    job, is_new = import_run(**cast, path=write(tmp_path), name=" from Kaggle ")
    assert is_new
    job = Job.objects.get(pk=job.pk)
    attempt = job.last_attempt
    assert (job.state, job.outcome, job.origin, job.title) == ("succeeded", "succeeded", Origin.IMPORTED, "from Kaggle")
    assert attempt.measured.num_steps == 3
    assert attempt.hardware["num_cpu_cores"] == 6
    assert attempt.steady_step_time_ms == 1.5
    assert attempt.summary["final_train_loss"] == "NaN"
    assert [finding["message"] for finding in attempt.findings] == ["Careful."]
    assert (attempt.last_step, attempt.num_points) == (3, 3)
    assert read_curves([attempt], "train_loss")[attempt.pk].y == [3.0, 2.0, 1.0]


def test_the_same_file_comes_in_once_per_team(tmp_path, cast):
    path = write(tmp_path)
    first, _ = import_run(**cast, path=path)
    assert import_run(**cast, path=path) == (first, False)
    other_team = make_team("others")
    second, is_new = import_run(**cast | {"team": other_team}, path=path)
    assert is_new
    assert second.pk != first.pk


def test_it_is_never_ranked_among_runs_that_were_measured_here(tmp_path, cast):
    here = make_ended_job(
        cast["owner"], team=cast["team"], spec=STARTED.spec, started={"spec": STARTED.spec.model_dump(mode="json")}
    )
    imported, _ = import_run(**cast, path=write(tmp_path))
    attempts = [Attempt.objects.get(job=job) for job in (here, imported)]
    assert attempts[0].workload_key == attempts[1].workload_key
    assert attempts[0].environment_key != attempts[1].environment_key
    assert {board.device_name for board in visible_boards(cast["owner"])} == {"Fast CPU", "Fast CPU (imported)"}


def test_a_run_that_failed_comes_in_with_its_error(tmp_path, cast):
    error = {"type": "Diverged", "message": "It did.", "step": 2}
    failed = Finished.model_validate({"outcome": "diverged", "summary": {}, "error": error})
    job, _ = import_run(**cast, path=write(tmp_path, [STARTED, failed]))
    assert job.outcome == "diverged"
    assert Attempt.objects.get(job=job).error["message"] == "It did."


def test_long_curves_come_in_whole_and_compacted(tmp_path, cast):
    many = [Points(steps=[n], wall_s=[n / 10], series={"train_loss": [1 / n]}) for n in range(1, EVENTS_PER_CHUNK + 3)]
    job, _ = import_run(**cast, path=write(tmp_path, [STARTED, *many, FINISHED]))
    job.last_attempt.refresh_from_db()
    assert (job.last_attempt.num_flushes, job.last_attempt.curve_form) == (2, "compacted")
    assert len(read_curves([job.last_attempt], "train_loss")[job.last_attempt.pk].x) == EVENTS_PER_CHUNK + 2


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([], "has no `started` line"),
        ([STARTED, CURVE], "has no `finished` line"),
        ([FINISHED], "has no `started` line"),
        ([STARTED, STARTED, FINISHED], "Line 2 begins a second run"),
        ([*RUN, CURVE], "Line 6 comes after the end"),
        ([STARTED, "{", FINISHED], "Line 2 is not an event of this version's engine"),
        ([STARTED, '{"type": "gossip"}', FINISHED], "Line 2 is not an event"),
        ([STARTED, CURVE.model_copy(update={"wall_s": [0.1]}), FINISHED], "Line 2 has series of different lengths"),
    ],
)
def test_a_broken_file_is_a_sentence_and_leaves_nothing(tmp_path, cast, events, sentence):
    with pytest.raises(BrokenResult, match=sentence):
        import_run(**cast, path=write(tmp_path, events))
    assert not Job.objects.exists()
    assert issubclass(BrokenResult, PitwallError)


def test_the_command_prints_the_job(tmp_path, cast):
    out = io.StringIO()
    call_command("import_run", str(write(tmp_path)), user="ann", stdout=out)
    printed = json.loads(out.getvalue())
    assert (printed["origin"], printed["state"], printed["team"]) == ("imported", "succeeded", "racers")
    assert printed["attempts"][0]["device_name"] == "Fast CPU (imported)"


def test_the_command_says_what_is_wrong(tmp_path, cast):
    err = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("import_run", str(tmp_path / "nowhere.jsonl"), user="ann", stderr=err)
    assert caught.value.code == 2
    assert err.getvalue().endswith("nowhere.jsonl cannot be read: No such file or directory.\n")


def test_the_page_says_that_it_was_imported(tmp_path, cast, client):
    job, _ = import_run(**cast, path=write(tmp_path))
    client.force_login(cast["owner"])
    assert "Made elsewhere and brought in as a file" in client.get(f"/jobs/{job.pk}/").content.decode()


def test_artifacts_are_kept_with_their_attempt():
    attempt = start(make_job())
    for size in (1, 2):
        record_artifact(attempt, Artifact(name="t", kind="trace", file="profile/t", size_bytes=size))
    attempt.refresh_from_db()
    assert attempt.artifacts == [{"name": "t", "kind": "trace", "file": "profile/t", "size_bytes": 2}]
