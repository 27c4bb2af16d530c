import pytest

from jobs.contract.errors import InvalidSpec
from jobs.contract.plan import Arrangement, Axis, Extension, StudyPlan, expand, extend, interleaved, repeat_of
from jobs.contract.spec import TrainSpec

BASE = TrainSpec(num_steps=100).model_dump(mode="json")
PRECISIONS = Axis(field="precision", values=["fp32", "bf16-mixed"])
MODES = Axis(field="compile_mode", values=["off", "default"])


def changes(plan):
    return [configuration.changes for configuration in expand(plan)]


def test_a_grid_holds_every_value_with_every_other_and_the_base_first():
    assert changes(StudyPlan(base=BASE, axes=[PRECISIONS, MODES])) == [
        {},
        {"compile_mode": "default"},
        {"precision": "bf16-mixed"},
        {"precision": "bf16-mixed", "compile_mode": "default"},
    ]


def test_one_at_a_time_changes_one_thing():
    plan = StudyPlan(base=BASE, axes=[PRECISIONS, MODES], arrangement=Arrangement.ONE_AT_A_TIME)
    assert changes(plan) == [{}, {"precision": "bf16-mixed"}, {"compile_mode": "default"}]


def test_a_list_is_taken_as_it_is_each_configuration_once():
    asked = [{"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}, {"optimizer": "sgd"}, {}]
    plan = StudyPlan(base=BASE, configurations=asked, arrangement=Arrangement.LIST)
    assert changes(plan) == [{}, {"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}]


def test_what_is_written_down_comes_after_what_the_axes_make():
    plan = StudyPlan(base=BASE, axes=[PRECISIONS], configurations=[{"optimizer": "sgd"}, {"precision": "bf16-mixed"}])
    assert changes(plan) == [{}, {"precision": "bf16-mixed"}, {"optimizer": "sgd"}]


@pytest.mark.parametrize("arrangement", list(Arrangement))
def test_an_extended_plan_keeps_the_places_and_is_the_same_when_said_twice(arrangement):
    first = [{"precision": "bf16-mixed"}] if arrangement is Arrangement.LIST else []
    plan = StudyPlan(base=BASE, axes=[PRECISIONS], configurations=first, arrangement=arrangement)
    more = Extension(axes=[MODES], configurations=[{"optimizer": "sgd"}], num_repeats=5)
    wider = extend(plan, more)
    assert changes(wider)[:2] == changes(plan)
    assert {"compile_mode": "default"} in changes(wider)
    assert {"optimizer": "sgd"} in changes(wider)
    together = {"precision": "bf16-mixed", "compile_mode": "default"}
    assert (together in changes(wider)) == (arrangement is Arrangement.GRID)
    assert wider.num_repeats == 5
    assert extend(wider, more) == wider


def test_a_plan_is_never_extended_to_fewer_repeats():
    with pytest.raises(InvalidSpec, match="3 repeats already"):
        extend(StudyPlan(base=BASE, axes=[PRECISIONS], num_repeats=3), Extension(num_repeats=2))


def test_a_length_in_epochs_takes_the_place_of_one_in_steps():
    plan = StudyPlan(base=BASE, axes=[Axis(field="num_epochs", values=[2])])
    assert changes(plan) == [{}, {"num_steps": None, "num_epochs": 2}]


def test_repeats_are_paired_by_their_seeds():
    plan = StudyPlan(base=BASE | {"seed": 7}, axes=[PRECISIONS], num_repeats=3)
    baseline, candidate = expand(plan)
    for repeat in range(3):
        assert repeat_of(baseline, repeat).seed == repeat_of(candidate, repeat).seed == 7 + repeat


def test_runs_take_turns_there_and_back():
    assert list(interleaved(2, 3)) == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("plan", "field", "words"),
    [
        ({"axes": [{"field": "colour", "values": [1]}]}, "axes", "no option “colour”"),
        ({"axes": [{"field": "seed", "values": [1, 2]}]}, "axes", "pairs the repeats"),
        ({"axes": [{"field": "precision", "values": ["fp32"]}]}, "axes", "Nothing varies"),
        ({"axes": [{"field": "precision", "values": ["fp31"]}]}, "precision", "Must be one of"),
        ({"axes": [MODES, MODES]}, "axes", "varies twice"),
        ({"axes": [{"field": "micro_batch_size", "values": list(range(1, 100))}], "num_repeats": 15}, "axes", "500"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_at_its_field(plan, field, words):
    with pytest.raises(InvalidSpec) as refused:
        expand(StudyPlan.model_validate({"base": BASE} | plan))
    [finding] = refused.value.findings
    assert finding.field == field
    assert words in finding.sentence
