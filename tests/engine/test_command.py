"""The engine as its users meet it: a process with lines on standard output and an exit code."""

import errno
import json
import os
import subprocess
import sys

import pytest
from engine_runs import DIGITS, DIVERGING, ROOT, run_command, write_spec

from jobs.contract.catalog import BUILT_IN, Catalog
from jobs.contract.events import Phase, parse_event
from jobs.contract.facts import HostFacts
from jobs.contract.rules import RULES
from jobs.contract.states import Outcome

NO_SUCH = os.strerror(errno.ENOENT)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The default digits job."""
    return run_command(write_spec(tmp_path_factory.mktemp("ran")))


def test_a_run_ends_with_finished_and_exit_code_zero(ran):
    assert (ran.exit_code, ran.finished.outcome) == (0, Outcome.SUCCEEDED)
    phases = [event.name for event in ran.events if isinstance(event, Phase)]
    assert phases == ["importing", "building", "first_step", "training", "evaluating", "measuring"]
    assert len(ran.losses) == DIGITS["num_steps"]


def test_events_can_go_to_a_file_from_any_working_directory(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text(Phase(name="before").model_dump_json() + "\n")
    command = [sys.executable, "-m", "workers.engine", "run", str(write_spec(tmp_path)), "--events", str(events)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=True)
    assert ended.stdout == b""
    first, *_others, last = [parse_event(line) for line in events.read_text().splitlines()]
    assert first == Phase(name="before")
    assert last.outcome is Outcome.SUCCEEDED


def test_what_a_library_prints_stays_out_of_the_events(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "import workers.engine.seeds as seeds\n"
        "def chatter(seed): print('printed'); os.system('echo from a child')\n"
        "seeds.seed_everything = chatter\n"
    )
    ran = run_command(write_spec(tmp_path), environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert ran.exit_code == 0
    assert "printed" in ran.stderr
    assert "from a child" in ran.stderr


@pytest.mark.parametrize(
    ("text", "field", "sentence"),
    [
        ("{", "spec", "This is not valid JSON"),
        ('{"num_stepz": 5}', "num_stepz", "There is no such option."),
        ('{"num_steps": 0}', "num_steps", "Must be at least 1."),
    ],
)
def test_a_broken_spec_is_a_sentence_and_a_finding(tmp_path, text, field, sentence):
    path = tmp_path / "spec.json"
    path.write_text(text)
    ran = run_command(path)
    assert ran.exit_code == 2
    assert ran.finished.outcome is Outcome.FAILED
    (finding,) = ran.finished.error.findings
    assert finding.field == field
    assert sentence in finding.sentence
    assert ran.stderr == f"{ran.finished.error.message}\n"


def test_a_missing_spec_file_is_a_sentence(tmp_path):
    ran = run_command(tmp_path / "nowhere.json")
    assert ran.exit_code == 2
    assert "cannot be read: No such file or directory." in ran.stderr


def test_a_refused_combination_ends_with_its_findings(tmp_path):
    ran = run_command(write_spec(tmp_path, num_epochs=1, num_devices=2))
    assert ran.exit_code == 3
    assert ran.finished.outcome is Outcome.FAILED
    assert {finding.field for finding in ran.finished.error.findings} == {"num_epochs", "num_devices"}
    assert ran.stderr.splitlines()[-1] == ran.finished.error.message
    assert "Traceback" not in ran.stderr


def test_the_log_tells_phases_and_loss_in_words(ran):
    told = [line.split(" ", 1)[1] for line in ran.stderr.splitlines()]
    assert told[:2] == ["importing", "building"]
    assert told[-1] == "succeeded"
    assert f"mlp on digits, 20 steps of 16 samples, on {ran.started.device_name}" in told
    assert any(line.startswith("step 1: loss 2.") for line in told)


def test_a_diverged_run_keeps_its_points_up_to_the_bad_step(tmp_path):
    ran = run_command(write_spec(tmp_path, **DIVERGING))
    assert (ran.exit_code, ran.finished.outcome) == (5, Outcome.DIVERGED)
    error = ran.finished.error
    assert (error.type, error.phase) == ("Diverged", "training")
    assert list(ran.points("train_loss"))[-1] == error.step == ran.summary.num_steps
    assert ran.losses[-1] != ran.losses[-1]
    assert f"at step {error.step}" in error.message


def test_memory_that_does_not_suffice_is_an_outcome_of_its_own(tmp_path):
    spec = write_spec(tmp_path, model="gpt-tiny", dataset="stdlib-text", micro_batch_size=60_000)
    ran = run_command(spec, "--memory-limit-bytes", str(4 * 2**30))  # the embedding alone needs almost as much
    assert (ran.exit_code, ran.finished.outcome) == (6, Outcome.OUT_OF_MEMORY)
    assert (ran.finished.error.phase, ran.finished.error.step) == ("first_step", 1)
    assert "A micro-batch of 30000 with 2 accumulated keeps the global batch" in ran.finished.error.message
    assert ran.finished.error.proposed_spec.micro_batch_size == 30_000
    memory = ran.finished.error.memory
    assert memory.asked_bytes == 60_000 * 128 * 128 * 4  # the token embedding's output
    assert memory.rss_bytes > 2**26
    assert [holder.name for holder in memory.largest] == ["data set", "weights"]


@pytest.mark.parametrize(
    ("fields", "limit_s"),
    [({}, 4), ({"parallelism": "ddp", "num_devices": 2}, 8)],
    ids=["one process", "two ranks"],
)
def test_a_run_that_takes_too_long_ends_with_an_outcome_of_its_own(tmp_path, fields, limit_s):
    ran = run_command(write_spec(tmp_path, num_steps=10**8, time_limit_s=limit_s, **fields))
    assert (ran.exit_code, ran.finished.outcome) == (8, Outcome.TIMED_OUT)
    assert ran.finished.error.message.startswith(f"The time limit of {limit_s} s has passed.")
    assert ran.finished.error.phase


def test_a_full_disk_is_a_sentence_and_an_exit_code(tmp_path):
    ran = run_command(write_spec(tmp_path), "--events", "/dev/full")
    assert ran.exit_code == 9
    assert "there is no room left" in ran.stderr
    assert "result could not be written: No space left on device." in ran.stderr


def test_an_unexpected_error_is_told_with_its_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import workers.engine.seeds as seeds\n"
        "def fail(seed): raise RuntimeError('the first line\\nthe second')\n"
        "seeds.seed_everything = fail\n"
    )
    ran = run_command(write_spec(tmp_path), environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert (ran.exit_code, ran.finished.outcome) == (1, Outcome.FAILED)
    error = ran.finished.error
    assert (error.type, error.message, error.phase) == ("RuntimeError", "RuntimeError: the first line", "building")
    assert "in fail" in error.traceback
    assert "in fail" in ran.stderr


def test_a_file_for_events_that_cannot_be_written_is_a_sentence(tmp_path):
    ran = run_command(write_spec(tmp_path), "--events", str(tmp_path / "nowhere" / "events.jsonl"))
    assert ran.exit_code == 14
    assert ran.stderr == f"--events {tmp_path}/nowhere/events.jsonl cannot be written: {NO_SUCH}. Name another one.\n"


@pytest.mark.parametrize("limit", ["1000", "-5", "0", "much"])
def test_a_memory_limit_that_nothing_fits_into_is_a_wrong_option(tmp_path, limit):
    ran = run_command(write_spec(tmp_path), "--memory-limit-bytes", limit)
    assert ran.exit_code == 2
    assert "argument --memory-limit-bytes: " in ran.stderr.splitlines()[-1]


def describe():
    ended = subprocess.run(
        [sys.executable, "-m", "workers.engine", "describe"], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    return json.loads(ended.stdout)


def test_describe_tells_facts_catalog_options_and_rules():
    described = describe()
    facts = HostFacts.model_validate(described["facts"])
    assert facts.devices_of("cpu")[0].memory_bytes > 2**28
    catalog = Catalog.model_validate(described["catalog"])
    assert catalog.models == BUILT_IN.models
    assert catalog.datasets[: len(BUILT_IN.datasets)] == BUILT_IN.datasets
    assert described["options"]["properties"]["micro_batch_size"]["title"] == "Micro-batch size"
    assert [rule["name"] for rule in described["rules"]] == [rule.__name__ for rule in RULES]
    assert all(rule["docstring"] for rule in described["rules"])


def test_the_engine_imports_neither_django_nor_celery_nor_redis():
    code = (
        "import importlib, pkgutil, sys, workers.engine as e\n"
        "for m in pkgutil.walk_packages(e.__path__, 'workers.engine.'): importlib.import_module(m.name)\n"
        "print({'django', 'celery', 'redis', 'jobs.models', 'webapp'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "set()"


def test_the_launchers_side_never_imports_torch():
    code = "import sys, workers.engine.attempt, workers.engine.launch; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "False"
