import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from jobs.contract.states import Outcome
from jobs.models import Job, User
from jobs.services.finish import finish_attempt
from tests.jobs.conftest import client_of
from tests.jobs.factories import make_queue, make_summary, make_team, make_user, start


@pytest.fixture
def admin(alice: User) -> User:
    """The first administrator, who is meant where no user is named."""
    user = User.objects.create_superuser("admin", password="open sesame")
    user.teams.set(alice.teams.all())
    return user


@pytest.fixture
def spec_file(tmp_path: Path) -> str:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"num_steps": 5, "learning_rate": 0.1}))
    return str(path)


def submit(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("submit", *arguments, stdout=out)
    return json.loads(out.getvalue())


def refused(*arguments: str) -> list[str]:
    """The lines on stderr of a submission that was refused."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("submit", *arguments, stdout=out, stderr=err)
    assert ended.value.code == 2
    assert out.getvalue() == ""
    assert not Job.objects.exists()
    return err.getvalue().splitlines()


def test_a_file_is_queued_and_printed_as_the_api_prints_it(admin: User, spec_file: str) -> None:
    body = submit(spec_file, "--name", "first")
    assert (body["owner"], body["name"], body["spec"]["learning_rate"]) == ("admin", "first", 0.1)
    assert body == client_of(admin).get(f"/api/v1/jobs/{body['id']}").json()


def test_fields_are_overridden_by_set_and_by_flags_of_their_own(admin: User, spec_file: str) -> None:
    body = submit(
        spec_file, "--set", "learning_rate=0.5", "--set", "precision=bf16-mixed", "--seed", "7", "--num-steps=9"
    )
    spec = body["spec"]
    assert (spec["learning_rate"], spec["precision"], spec["seed"], spec["num_steps"]) == (0.5, "bf16-mixed", 7, 9)


def test_flags_alone_suffice(admin: User) -> None:
    spec = submit("--num-epochs", "2", "--model", "mlp", "--dataset", "digits", "--no-pin-memory")["spec"]
    assert (spec["num_epochs"], spec["num_steps"], spec["model"], spec["pin_memory"]) == (2, None, "mlp", False)


def test_null_takes_a_field_back(admin: User, spec_file: str) -> None:
    spec = submit(spec_file, "--set", "num_steps=null", "--set", "num_epochs=1")["spec"]
    assert (spec["num_steps"], spec["num_epochs"]) == (None, 1)


def test_a_dash_reads_standard_input(admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"num_steps": 3}'))
    assert submit("-")["spec"]["num_steps"] == 3


def test_user_team_and_queue_can_be_named(admin: User) -> None:
    make_queue("gpu")
    make_user("bob", team=make_team("Others"))
    body = submit("--num-steps", "1", "--user", "bob", "--team", "Others", "--queue", "gpu")
    assert (body["owner"], body["team"], body["queue"]) == ("bob", "Others", "gpu")


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ((), ["num_steps"]),
        (("--num-steps", "0", "--precision", "fp7"), ["precision", "num_steps"]),
        (("--set", "colour=red", "--num-steps", "1"), ["colour"]),
        (
            (
                "--set",
                "colour",
            ),
            ["set"],
        ),
        (("--num-steps", "1", "--queue", "nowhere"), ["queue"]),
        (("--num-steps", "1", "--user", "nobody"), ["user"]),
        (("--num-steps", "1", "--team", "Nobodies"), ["team"]),
        (("--num-steps", "1", "--name", "x" * 201), ["name"]),
        (("/no/such/file.json",), ["spec"]),
        (("/",), ["spec"]),
    ],
)
def test_bad_input_is_a_sentence_per_field_and_exit_code_2(
    admin: User, arguments: tuple[str, ...], fields: list[str]
) -> None:
    lines = refused(*arguments)
    assert [line.split(": ")[0] for line in lines] == fields
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize("text", ["{", "[]", "3", "", '{"a": 1} b'])
def test_a_file_that_is_no_spec_is_said_so(admin: User, tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)
    [line] = refused(str(path))
    assert line.startswith("spec: ")


def test_without_an_administrator_a_user_must_be_named(alice: User) -> None:
    assert refused("--num-steps", "1") == ["user: There is no administrator; name a user."]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
def test_wait_ends_with_the_job_and_tells_by_its_exit_code(
    admin: User, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.management.commands.submit._POLL_S", 0.02)

    def run_it() -> None:
        try:
            while not Job.objects.exists():
                time.sleep(0.02)
            finish_attempt(start(Job.objects.get()), outcome, make_summary())
        finally:
            connection.close()

    worker = threading.Thread(target=run_it)
    worker.start()
    out = io.StringIO()
    try:
        call_command("submit", "--num-steps", "1", "--wait", stdout=out)
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    worker.join()
    body = json.loads(out.getvalue())
    assert (body["outcome"], code) == (outcome.value, 0 if outcome is Outcome.SUCCEEDED else 1)
    assert body["attempts"]


def test_a_token_is_all_that_create_token_prints(alice: User) -> None:
    out = io.StringIO()
    call_command("create_token", "alice", "--name", "laptop", stdout=out)
    secret = out.getvalue().strip()
    assert len(out.getvalue().splitlines()) == 1
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/v1/jobs").status_code == 200
    assert alice.api_tokens.get().name == "laptop"


def test_create_token_for_nobody_is_refused(db: None) -> None:
    with pytest.raises(Exception, match="no active user"):
        call_command("create_token", "nobody", stdout=io.StringIO())
