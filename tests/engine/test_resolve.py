"""What a run resolved to is a spec that could be asked for again."""

import pytest
import torch

from jobs.contract.catalog import BUILT_IN, DataKind, Target
from jobs.contract.spec import TrainSpec, parse_spec
from workers.engine.checks import require_allowed
from workers.engine.data.dataset import Dataset, Split
from workers.engine.facts import read_host_facts
from workers.engine.resolve import as_loaded, resolve


def images(size):
    samples = torch.zeros(64, 1, size, size)
    return Dataset(
        kind=DataKind.IMAGES,
        target=Target.CLASS,
        revision="1",
        sample_shape=(1, size, size),
        num_classes=10,
        train=Split(samples, torch.zeros(64, dtype=torch.long)),
        evaluation=Split(samples, torch.zeros(64, dtype=torch.long)),
    )


def tokens(length):
    windows = torch.zeros(64, length + 1, dtype=torch.uint8)
    return Dataset(
        kind=DataKind.TOKENS,
        target=Target.NEXT_TOKEN,
        revision="1",
        sample_shape=(length,),
        num_classes=256,
        train=Split(windows),
        evaluation=Split(windows),
    )


@pytest.mark.parametrize(
    ("work", "dataset", "field", "size"),
    [
        ({"model": "mlp", "dataset": "digits"}, images(8), "image_size", 8),
        ({"model": "mlp", "dataset": "digits"}, images(4), "image_size", None),
        ({"model": "gpt-tiny", "dataset": "stdlib-text"}, tokens(8), "sequence_length", 8),
        ({"model": "gpt-tiny", "dataset": "stdlib-text"}, tokens(4), "sequence_length", None),
    ],
)
def test_a_size_is_decided_unless_nobody_could_ask_for_it(work, dataset, field, size):
    asked = TrainSpec(num_steps=3, device="cpu", **work)
    resolved = resolve(asked, read_host_facts(with_gpus=False), dataset, BUILT_IN)
    assert getattr(resolved, field) == size
    assert parse_spec(resolved.model_dump_json()) == resolved


def test_a_warning_that_waits_for_the_number_of_steps_is_told_once_the_data_are_loaded():
    asked = TrainSpec(
        num_epochs=1, device="cpu", model="gpt-tiny", dataset="stdlib-text", micro_batch_size=16,
        parallelism="ddp", num_devices=2, ddp_comm_hook="powersgd",
    )  # fmt: skip
    facts = read_host_facts(with_gpus=False)
    before = require_allowed(asked, facts, BUILT_IN)
    after = require_allowed(asked, facts, as_loaded(BUILT_IN, "stdlib-text", tokens(128)))
    assert {finding.field for finding in after} - {finding.field for finding in before} == {"num_epochs"}
