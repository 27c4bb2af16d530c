"""The form: built from the spec, checked per field, sent once."""

import html
import sys
import uuid

import pytest
from django.test import Client

from jobs.contract.catalog import BUILT_IN
from jobs.contract.options import Group, Role, option
from jobs.contract.spec import Precision, TrainSpec
from jobs.models import Job, Queue, Team, User
from tests.jobs.factories import make_job, make_spec, make_worker
from tests.web.conftest import browser_of

MODELS = ", ".join(info.name for info in BUILT_IN.models)
_NAMES = [f"'{precision.value}'" for precision in Precision]
PRECISIONS = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"


@pytest.fixture
def filled(team: Team, queue: Queue) -> dict[str, str]:
    """What the browser sends for a small job."""
    spec = {
        name: str(value)
        for name, value in make_spec().model_dump(mode="json").items()
        if value is not None and value is not False
    }
    return spec | {"job_name": "", "team": str(team.pk), "queue": str(queue.pk), "submission": str(uuid.uuid4())}


@pytest.fixture
def added_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TrainSpec` with one option more, wherever it is used."""

    class Wider(TrainSpec):
        dropout: float = option(
            0.5,
            label="Dropout",
            help_text="Share of dropped units.",
            group=Group.OPTIMIZATION,
            role=Role.CONFIGURATION,
            ge=0,
        )

    for module in [module for name, module in sys.modules.items() if name.startswith("jobs.")]:
        if getattr(module, "TrainSpec", None) is TrainSpec:
            monkeypatch.setattr(module, "TrainSpec", Wider)


def test_every_field_of_the_spec_is_in_the_form(web: Client) -> None:
    form = web.get("/jobs/new/").context["form"]
    assert set(TrainSpec.model_fields) <= set(form.fields)
    for name, info in TrainSpec.model_fields.items():
        assert form.fields[name].label == info.title


def test_a_field_added_to_the_spec_appears_with_its_help_and_limits(web: Client, added_field: None) -> None:
    page = web.get("/jobs/new/").content.decode()
    assert "Dropout" in page
    assert "Share of dropped units." in page
    assert 'name="dropout"' in page
    assert 'min="0"' in page


def test_a_field_added_to_the_spec_is_checked_and_stored(
    web: Client, filled: dict[str, str], added_field: None
) -> None:
    refused = web.post("/jobs/new/", filled | {"dropout": "-1"})
    assert refused.context["form"].errors["dropout"] == ["Must be at least 0.0."]
    web.post("/jobs/new/", filled | {"dropout": "0.25"})
    assert Job.objects.get().spec["dropout"] == 0.25


def test_a_right_form_makes_a_job_and_leads_to_its_page(web: Client, filled: dict[str, str], alice: User) -> None:
    response = web.post("/jobs/new/", filled | {"job_name": "first light", "precision": "bf16-mixed"})
    job = Job.objects.get()
    assert response.headers["Location"] == f"/jobs/{job.pk}/"
    assert (job.owner, job.name, job.state) == (alice, "first light", "queued")
    assert job.train_spec == make_spec(precision="bf16-mixed")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("micro_batch_size", "0", "Must be at least 1."),
        ("micro_batch_size", "", "Must be a whole number."),
        ("learning_rate", "fast", "Must be a number."),
        ("learning_rate", "nan", "Must be a finite number."),
        ("precision", "fp4", f"Must be one of {PRECISIONS}."),
        ("dataset", "digits", "The model gpt-tiny cannot train on digits. Choose stdlib-text, synthetic-tokens."),
        ("model", "../../etc/passwd", f"There is no model “../../etc/passwd”. Choose one of {MODELS}."),
        ("num_epochs", "3", "Give either steps or epochs, not both."),
        ("num_devices", "4", "Without parallelism a job uses one device. Choose ddp or set devices to 1."),
        ("pin_memory", "on", "The data set lives on the device; choose the dataloader to use this option."),
    ],
)
def test_what_is_wrong_comes_back_at_its_field(
    web: Client, filled: dict[str, str], field: str, value: str, sentence: str
) -> None:
    response = web.post("/jobs/new/", filled | {field: value, "job_name": "kept"})
    assert response.status_code == 422
    assert response.context["form"].errors[field] == [sentence]
    page = html.unescape(response.content.decode())
    assert sentence in page
    assert 'value="kept"' in page
    assert not Job.objects.exists()


def test_a_missing_length_is_said_at_the_steps(web: Client, filled: dict[str, str]) -> None:
    response = web.post("/jobs/new/", filled | {"num_steps": ""})
    assert "num_steps" in response.context["form"].errors


def test_the_same_form_sent_twice_makes_one_job(web: Client, filled: dict[str, str]) -> None:
    first, second = web.post("/jobs/new/", filled), web.post("/jobs/new/", filled)
    assert Job.objects.count() == 1
    assert first.headers["Location"] == second.headers["Location"]


def test_the_same_form_with_another_content_is_another_job(web: Client, filled: dict[str, str]) -> None:
    web.post("/jobs/new/", filled)
    web.post("/jobs/new/", filled | {"seed": "1"})
    assert Job.objects.count() == 2


def test_nobody_submits_into_a_team_that_is_not_theirs(web: Client, filled: dict[str, str], stranger: User) -> None:
    rivals = stranger.teams.get()
    response = web.post("/jobs/new/", filled | {"team": str(rivals.pk)})
    assert response.status_code == 422
    assert not Job.objects.exists()


def test_a_clone_starts_from_what_the_job_asked_for(web: Client, job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(
        spec=make_spec(learning_rate=0.25, num_steps=None, num_epochs=2).model_dump(mode="json")
    )
    form = web.get(f"/jobs/new/?from={job.pk}").context["form"]
    assert (form["learning_rate"].value(), form["num_epochs"].value(), form["num_steps"].value()) == (0.25, 2, None)


@pytest.mark.parametrize("source", ["nonsense", "", "-1"])
def test_an_unreadable_source_gives_a_new_form(web: Client, source: str) -> None:
    assert web.get(f"/jobs/new/?from={source}").status_code == 200


def test_the_check_answers_per_field_without_making_a_job(web: Client, filled: dict[str, str]) -> None:
    page = web.post("/jobs/check/", filled | {"num_epochs": "2"}).content.decode()
    assert 'id="notes-num_epochs" hx-swap-oob' in page
    assert "Give either steps or epochs, not both." in page
    assert not Job.objects.exists()


def test_the_check_names_the_worker_that_could_take_it_or_says_that_it_will_wait(
    web: Client, filled: dict[str, str]
) -> None:
    assert "Will wait: no worker of this queue is online." in web.post("/jobs/check/", filled).content.decode()
    make_worker("pit-01")
    page = web.post("/jobs/check/", filled).content.decode()
    assert "Can run on pit-01." in page
    assert "cuda: This worker has no CUDA GPU. Choose cpu or auto." in page


def test_the_check_computes_the_global_batch(web: Client, filled: dict[str, str]) -> None:
    change = {"micro_batch_size": "8", "grad_accum_steps": "4", "parallelism": "ddp", "num_devices": "2"}
    assert web.post("/jobs/check/", filled | change).context["verdict"].spec.global_batch_size == 64


def test_options_that_mean_nothing_now_are_set_aside_with_the_reason(web: Client, filled: dict[str, str]) -> None:
    on_device = web.post("/jobs/check/", filled).context["verdict"].aside
    assert {"num_workers", "prefetch_factor", "persistent_workers", "pin_memory"} <= set(on_device)
    assert on_device["num_workers"].startswith("The data set lives on the device")
    loader = (
        web.post("/jobs/check/", filled | {"data_loading": "dataloader", "num_workers": "2"}).context["verdict"].aside
    )
    assert not {"num_workers", "prefetch_factor", "persistent_workers"} & set(loader)


def test_what_a_model_has_no_part_for_is_set_aside_or_told(web: Client, filled: dict[str, str]) -> None:
    mlp = {"model": "mlp", "dataset": "digits"}
    verdict = web.post("/jobs/check/", filled | mlp).context["verdict"]
    assert verdict.aside["activation_checkpointing"] == "This model has no repeated blocks to do this with."
    page = web.post("/jobs/check/", filled | mlp | {"channels_last": "on"}).content.decode()
    assert "This model has nothing that this option could change." in page
    with_blocks = web.post("/jobs/check/", filled | {"model": "gpt-tiny", "dataset": "stdlib-text"}).context["verdict"]
    assert "activation_checkpointing" not in with_blocks.aside


def test_an_option_that_was_set_aside_and_not_sent_keeps_its_default(web: Client, filled: dict[str, str]) -> None:
    del filled["num_workers"]
    web.post("/jobs/new/", filled)
    assert Job.objects.get().train_spec.num_workers == 0
    refused = web.post("/jobs/new/", filled | {"seed": "-1"})
    assert refused.context["form"]["num_workers"].value() == "0"


def test_the_check_bears_an_unreadable_form(web: Client) -> None:
    assert web.post("/jobs/check/", {"queue": "x", "micro_batch_size": "many"}).status_code == 200


def test_somebody_without_a_team_is_told(db: None, queue: Queue) -> None:
    loner = User.objects.create_user("loner")
    page = browser_of(loner).get("/jobs/new/").content.decode()
    assert "You are in no team yet" in page


def test_a_running_job_can_be_cloned_after_an_option_is_gone(web: Client, alice: User) -> None:
    job = make_job(alice)
    Job.objects.filter(pk=job.pk).update(spec=job.spec | {"forgotten_option": 1})
    assert web.get(f"/jobs/new/?from={job.pk}").status_code == 200


def test_a_warning_about_the_number_of_steps_stands_at_the_epochs(web: Client, filled: dict[str, str]) -> None:
    asked = {
        "model": "mlp", "dataset": "digits", "num_steps": "", "num_epochs": "1", "micro_batch_size": "350",
        "device": "cpu", "parallelism": "ddp", "num_devices": "2", "ddp_comm_hook": "powersgd",
    }  # fmt: skip
    for epochs, is_warned in (("1", True), ("2", False)):
        notes = web.post("/jobs/check/", filled | asked | {"num_epochs": epochs}).context["notes"]
        texts = [text for _severity, text in notes.get("num_epochs", [])]
        assert texts == (["powersgd compresses nothing in its first 2 steps; ask for more."] if is_warned else [])
