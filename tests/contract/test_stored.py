from jobs.contract.plan import Arrangement, Axis, StudyPlan
from jobs.contract.spec import TrainSpec
from jobs.contract.stored import read_stored_plan, read_stored_spec


def told(findings):
    return {finding.field: finding.sentence for finding in findings}


def test_a_spec_of_today_is_read_as_it_is():
    spec = TrainSpec(num_steps=7, precision="bf16-mixed")
    stored = read_stored_spec(spec.model_dump(mode="json"))
    assert stored.spec == spec
    assert stored.unread == []


def test_what_cannot_be_read_is_named_and_the_rest_stands():
    stored = read_stored_spec({"num_steps": 7, "warp_speed": 9, "precision": "fp12", "seed": 3})
    assert stored.spec == TrainSpec(num_steps=7, seed=3)
    assert told(stored.unread)["warp_speed"] == "There is no such option."
    assert told(stored.unread)["precision"].startswith("Must be one of")
    assert len(stored.unread) == 2


def test_a_plan_keeps_what_can_be_read_and_names_each_field_once():
    stored = read_stored_plan(
        {
            "base": {"num_steps": 7, "warp_speed": 9},
            "arrangement": "list",
            "axes": [{"field": "precision", "values": ["fp32", "fp12"]}, {"field": "warp_speed", "values": [1, 2]}],
            "configurations": [{"warp_speed": 4}, {"optimizer": "sgd", "warp_speed": 5}],
            "num_repeats": 2,
        }
    )
    assert stored.plan == StudyPlan(
        base={"num_steps": 7},
        arrangement=Arrangement.LIST,
        axes=[Axis(field="precision", values=["fp32"])],
        configurations=[{}, {"optimizer": "sgd"}],
        num_repeats=2,
    )
    assert [finding.field for finding in stored.unread] == ["warp_speed", "precision"]


def test_a_plan_whose_own_keys_are_others_is_read_too():
    stored = read_stored_plan({"base": {"num_steps": 7}, "shuffled": True, "num_repeats": 400})
    assert stored.plan.base == {"num_steps": 7}
    assert stored.plan.num_repeats == 3
    assert set(told(stored.unread)) == {"shuffled", "num_repeats"}
    assert read_stored_plan({}).plan.base == {}
