"""A length in epochs is one in steps where the catalog knows the size of the split; rules about steps ask then, too."""

import pytest
from test_rules import GPU, host, spec

from jobs.contract.catalog import BUILT_IN
from jobs.contract.lengths import length_in_steps
from jobs.contract.rules import check
from jobs.contract.spec import TrainSpec

TWO = host(GPU, GPU)
POWERSGD = {"parallelism": "ddp", "num_devices": 2, "ddp_comm_hook": "powersgd"}
GRAPH = {"cuda_graph": True, "optimizer_impl": "fused"}
HALF = {"num_steps": None, "num_epochs": 1, "micro_batch_size": 700}  # of digits: two steps an epoch, one on two ranks


@pytest.mark.parametrize(
    ("fields", "num_samples", "steps"),
    [
        ({"num_steps": 7}, 100, 7),
        ({"num_steps": 7}, None, 7),
        ({"num_epochs": 3, "micro_batch_size": 30}, 100, 9),
        ({"num_epochs": 3, "micro_batch_size": 30, "drop_last": False}, 100, 12),
        ({"num_epochs": 3, "micro_batch_size": 25, "drop_last": False}, 100, 12),
        (
            {"num_epochs": 3, "micro_batch_size": 5, "grad_accum_steps": 3, "num_devices": 2, "parallelism": "ddp"},
            100,
            9,
        ),
        ({"num_epochs": 3}, None, None),
        ({}, 100, None),
    ],
)
def test_epochs_come_to_steps(fields, num_samples, steps):
    assert length_in_steps(TrainSpec(**fields), num_samples) == steps


def fields_told(asked):
    return {finding.field for finding in check(asked, TWO, BUILT_IN)}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (HALF | POWERSGD, "num_epochs"),
        (HALF | GRAPH, "num_epochs"),
        (HALF | {"warmup_steps": 4}, "warmup_steps"),
    ],
)
def test_what_waits_for_the_number_of_steps_is_told_of_epochs_too(fields, field):
    assert field in fields_told(spec(**fields))
    assert field not in fields_told(spec(**fields | {"num_epochs": 9}))
    unknown = fields | {"num_epochs": 1, "model": "gpt-tiny", "dataset": "stdlib-text"}
    assert field not in fields_told(spec(**unknown))  # its size only loading it tells
