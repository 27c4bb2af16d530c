import json

import pytest

from jobs.contract.errors import InvalidSpec
from jobs.contract.options import Role, metadata
from jobs.contract.spec import Precision, TrainSpec, fields_with_role, parse_spec


def sentences(error: InvalidSpec) -> dict[str, str]:
    return {finding.field: finding.sentence for finding in error.findings}


def test_a_spec_survives_json():
    spec = parse_spec({"model": "mlp", "dataset": "digits", "num_steps": 5, "precision": "bf16-mixed"})
    assert parse_spec(spec.model_dump_json()) == spec


def test_a_spec_is_read_from_a_mapping_a_text_and_bytes_alike():
    data = {"model": "mlp", "num_epochs": 2}
    assert parse_spec(data) == parse_spec(json.dumps(data)) == parse_spec(json.dumps(data).encode())


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        TrainSpec(num_steps=1).num_steps = 2


def _quoted(choices) -> str:
    *first, last = (f"'{item.value}'" for item in choices)
    return f"{', '.join(first)} or {last}"


@pytest.mark.parametrize(
    ("data", "field", "sentence"),
    [
        ({"stepz": 5}, "stepz", "There is no such option."),
        ({"num_steps": 0}, "num_steps", "Must be at least 1."),
        ({"num_steps": 1.5}, "num_steps", "Must be a whole number."),
        ({"learning_rate": 0}, "learning_rate", "Must be greater than 0.0."),
        ({"learning_rate": "fast"}, "learning_rate", "Must be a number."),
        ({"precision": "fp7"}, "precision", f"Must be one of {_quoted(Precision)}."),
        ({"pin_memory": "perhaps"}, "pin_memory", "Must be true or false."),
        ({"model": 5}, "model", "Must be a text."),
    ],
)
def test_a_wrong_field_gets_a_sentence(data, field, sentence):
    with pytest.raises(InvalidSpec) as caught:
        parse_spec(data)
    assert sentences(caught.value) == {field: sentence}


def test_every_wrong_field_is_named_at_once():
    with pytest.raises(InvalidSpec) as caught:
        parse_spec({"num_steps": 0, "seed": -1, "extra": 1})
    assert set(sentences(caught.value)) == {"num_steps", "seed", "extra"}


@pytest.mark.parametrize("text", ["{", "", "[1]", "null"])
def test_what_is_not_an_object_is_refused_as_a_whole(text):
    with pytest.raises(InvalidSpec) as caught:
        parse_spec(text)
    assert set(sentences(caught.value)) == {"spec"}


def test_the_global_batch_counts_ranks_and_accumulation():
    spec = TrainSpec(micro_batch_size=8, grad_accum_steps=3, parallelism="ddp", num_devices=2)
    assert (spec.num_ranks, spec.global_batch_size) == (2, 48)
    over_nodes = spec.model_copy(update={"num_nodes": 3})
    assert (over_nodes.num_local_ranks, over_nodes.num_ranks, over_nodes.global_batch_size) == (2, 6, 144)


def test_every_field_has_a_label_a_help_text_a_group_and_a_role():
    for name, field in TrainSpec.model_fields.items():
        assert field.title, name
        assert field.description, name
        assert set(metadata(field)) == {"group", "role", "unit", "advanced"}, name


def test_every_field_has_exactly_one_role():
    named = [name for role in Role for name in fields_with_role(role)]
    assert sorted(named) == sorted(TrainSpec.model_fields)
