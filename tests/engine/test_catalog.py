import pytest
import torch
from torch import nn

from jobs.contract.catalog import BUILT_IN, Target
from workers.engine.data import LOADERS, load_dataset
from workers.engine.data.dataset import Sizes
from workers.engine.models import BUILDERS, blocks_of, build_model
from workers.engine.probe import observe, parts_of


def test_the_registries_hold_what_the_catalog_names():
    assert set(BUILDERS) == {info.name for info in BUILT_IN.models}
    assert set(LOADERS) == {info.name for info in BUILT_IN.datasets}


@pytest.mark.parametrize("info", BUILT_IN.datasets, ids=lambda info: info.name)
def test_a_data_set_gives_what_the_catalog_says(info):
    dataset = load_dataset(info.name)
    assert (dataset.kind, dataset.target) == (info.gives, info.target)
    assert info.num_train_samples in (None, len(dataset.train))
    assert (info.num_classes, info.is_padded) == (dataset.num_classes, dataset.padding is not None)
    inputs, targets = dataset.train.take(torch.tensor([0, 1]))
    assert tuple(inputs.shape[1:]) == dataset.sample_shape
    if info.target is Target.VALUE:
        assert (targets.dtype, dataset.num_classes) == (torch.float32, 1)
    else:
        assert 0 <= targets.min() <= targets.max() < dataset.num_classes


SMALL = Sizes(image_size=32, sequence_length=16)


@pytest.mark.parametrize("info", BUILT_IN.models, ids=lambda info: info.name)
def test_a_model_takes_every_data_set_that_suits_it(info):
    for suited in BUILT_IN.datasets_for(info):
        dataset = load_dataset(suited.name, SMALL)
        inputs, targets = dataset.evaluation.take(torch.tensor([0, 1]))
        with torch.device("meta"):  # shapes without the work
            outputs = build_model(info.name, dataset)(inputs.to("meta"))
        assert outputs.shape[:-1] == targets.shape
        assert outputs.shape[-1] >= dataset.num_classes


@pytest.mark.parametrize("info", BUILT_IN.models, ids=lambda info: info.name)
def test_a_model_is_made_of_what_the_catalog_lists(info):
    dataset, meta = load_dataset(BUILT_IN.datasets_for(info)[0].name, SMALL), torch.device("meta")
    with meta:
        model = build_model(info.name, dataset)
    assert parts_of(model, observe(model, model, dataset.evaluation, meta)) == info.parts
    *_others, last = (module for module in model.modules() if isinstance(module, nn.Linear))
    assert last.out_features == max(info.min_outputs, dataset.num_classes)


BLOCKS = [
    ("gpt-tiny", "stdlib-text", 2),
    ("mlp", "digits", 0),
    ("resnet18", "digits", 8),
    ("resnet50", "digits", 16),
    ("vit-b16", "digits", 12),
    ("bert-large", "synthetic-sequences", 24),
    ("gpt2", "stdlib-text", 12),
    ("llama-160m", "stdlib-text", 12),
]


@pytest.mark.parametrize(("model", "dataset", "count"), BLOCKS)
def test_a_model_lists_its_repeated_blocks(model, dataset, count):
    with torch.device("meta"):
        built = build_model(model, load_dataset(dataset, SMALL))
    assert len(blocks_of(built)) == count
    assert set(blocks_of(built)) <= set(built.modules())
