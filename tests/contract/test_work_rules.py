import pytest

from jobs.contract.catalog import BUILT_IN
from jobs.contract.rules import check
from jobs.contract.spec import TrainSpec


def found(**fields) -> list[tuple[str, str, str]]:
    asked = TrainSpec(**{"model": "mlp", "dataset": "digits", "num_steps": 5} | fields)
    return [(finding.severity.value, finding.field, finding.sentence) for finding in check(asked, None, BUILT_IN)]


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({"dataset": "diabetes", "image_size": 32}, "image_size", "diabetes has no images."),
        ({"sequence_length": 32}, "sequence_length", "digits has no sequences of tokens."),
        (
            {"model": "vit-b16"},
            "image_size",
            "vit-b16 takes images whose size is a multiple of 16; these have 8 pixels.",
        ),
        (
            {"model": "gpt2", "dataset": "stdlib-text", "sequence_length": 1025},
            "sequence_length",
            "gpt2 takes at most 1024 tokens at once; these sequences have 1025.",
        ),
        ({"model": "resnet18", "dropout": 0.1}, "dropout", "resnet18 has no dropout. Set it to 0."),
    ],
)
def test_sizes_and_dropout_that_have_no_place_are_refused(fields, field, sentence):
    assert found(**fields) == [("refuse", field, sentence)]


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "vit-b16", "image_size": 32},
        {"model": "resnet18", "image_size": 33},
        {"model": "gpt2", "dataset": "stdlib-text", "sequence_length": 1024},
        {"model": "gpt-tiny", "dataset": "stdlib-text", "sequence_length": 4096},
    ],
)
def test_sizes_that_suit_pass(fields):
    assert found(**fields) == []


def test_dropout_is_warned_about_where_there_is_some():
    ((severity, field, _sentence),) = found(dropout=0.1)
    assert (severity, field) == ("warn", "dropout")


def test_made_up_data_are_told():
    assert found(dataset="synthetic-images") == [
        ("warn", "dataset", "synthetic-images is made up: the run measures speed and shows no loss.")
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("optimizer", "sgd"),
        ("learning_rate", 0.1),
        ("grad_accum_steps", 2),
        ("dropout", 0.1),
        ("lr_schedule", "cosine"),
        ("initial_loss_scale", 1024.0),
    ],
)
def test_inference_has_no_option_of_training(field, value):
    refused = [finding for finding in found(task="inference", **{field: value}) if finding[0] == "refuse"]
    assert ("refuse", field, "An inference job trains nothing; leave this option as it comes.") in refused


def test_inference_as_it_comes_passes():
    assert found(task="inference", seed=3) == []


def test_inference_has_nothing_to_exchange_between_ranks():
    refused = found(task="inference", parallelism="ddp", num_devices=2, ddp_static_graph=True)
    assert refused == [
        ("refuse", "ddp_static_graph", "An inference job trains nothing; leave this option as it comes.")
    ]


def test_inference_keeps_a_whole_model_on_each_device():
    (refused,) = found(task="inference", parallelism="fsdp2", num_devices=2)
    assert refused == (
        "refuse",
        "parallelism",
        "An inference job has a whole model on each device: choose none or ddp.",
    )
