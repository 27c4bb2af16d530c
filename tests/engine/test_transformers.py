"""Models from transformers' configurations: their sizes as ENGINE.md counts them, and small ones that train."""

import pytest
import torch
from engine_runs import train

from workers.engine.data import load_dataset
from workers.engine.data.dataset import Sizes
from workers.engine.models import bert, build_model, gpt2, llama, vit

MILLIONS = {
    ("resnet18", "synthetic-images"): 11.7,
    ("resnet50", "synthetic-images"): 25.6,
    ("vit-b16", "synthetic-images"): 86.6,
    ("bert-base", "synthetic-sequences"): 109.5,
    ("bert-large", "synthetic-sequences"): 335.1,
    ("gpt2", "synthetic-tokens"): 124.4,
    ("gpt2-medium", "synthetic-tokens"): 354.8,
    ("llama-160m", "synthetic-tokens"): 162.4,
}


@pytest.mark.parametrize(("model", "dataset"), MILLIONS)
def test_a_model_has_the_parameters_that_its_paper_gives_it(model, dataset):
    with torch.device("meta"):
        built = build_model(model, load_dataset(dataset))
    assert round(sum(parameter.numel() for parameter in built.parameters()) / 1e6, 1) == MILLIONS[model, dataset]


def test_a_resnet_trains_on_digits_brought_to_another_size():
    ran = train(model="resnet18", image_size=32, num_steps=6, learning_rate=1e-3)
    assert ran.started.spec.image_size == 32
    assert min(ran.losses[-2:]) < 0.95 * ran.losses[0]
    assert 0 <= ran.summary.eval_accuracy <= 1


TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture
def _tiny(monkeypatch):
    monkeypatch.setattr(vit, "SHAPE", TINY)
    monkeypatch.setattr(llama, "SHAPE", TINY)
    monkeypatch.setitem(gpt2.SHAPES, "gpt2", {"n_embd": 32, "n_layer": 2, "n_head": 2})
    monkeypatch.setitem(bert.SHAPES, "bert-base", TINY)
    for module in (bert, gpt2, llama):
        monkeypatch.setattr(module, "_VOCABULARY", 256)


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize(
    ("model", "dataset", "sizes"),
    [
        ("vit-b16", "digits", {"image_size": 32}),
        ("gpt2", "stdlib-text", {"sequence_length": 32}),
        ("llama-160m", "stdlib-text", {"sequence_length": 32}),
    ],
)
def test_a_small_one_of_the_family_learns(model, dataset, sizes):
    ran = train(model=model, dataset=dataset, num_steps=20, learning_rate=3e-3, **sizes)
    assert ran.losses[-1] < 0.95 * ran.losses[0]
    assert ran.summary.final_eval_loss < ran.losses[0]


@pytest.mark.usefixtures("_tiny")
def test_a_small_bert_learns_a_pool_of_sequences_by_heart():
    # Its data are made up, so the loss is not shown: that it falls is seen in the model's own answers.
    dataset = load_dataset("synthetic-sequences", Sizes(sequence_length=8))
    model = build_model("bert-base", dataset)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    inputs, targets = dataset.train.take(torch.arange(16))
    losses = []
    for _ in range(15):
        losses.append(torch.nn.functional.cross_entropy(model(inputs), targets))
        losses[-1].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.usefixtures("_tiny")
def test_a_forward_pass_never_reads_values_on_the_host():
    # On the meta device there are none. What reads them waits for the GPU in every step, and cannot be captured.
    dataset = load_dataset("synthetic-sequences", Sizes(sequence_length=8))
    for padding in (None, 0):
        padded = type(dataset)(**vars(dataset) | {"padding": padding})
        with torch.device("meta"):
            model = build_model("bert-base", padded)
            assert model(torch.zeros(2, 8, dtype=torch.long)).shape == (2, 2)


@pytest.mark.usefixtures("_tiny")
def test_attention_is_causal_by_flag_where_no_mask_is_needed(monkeypatch):
    seen = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def watch(*tensors, attn_mask=None, is_causal=False, **options):
        seen.append((attn_mask, is_causal))
        return attend(*tensors, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watch)
    dataset = load_dataset("stdlib-text", Sizes(sequence_length=16))
    inputs, _targets = dataset.train.take(torch.arange(2))
    for name in ("gpt2", "llama-160m"):
        build_model(name, dataset)(inputs)
    assert seen == [(None, True)] * 4


@pytest.mark.usefixtures("_tiny")
def test_what_fills_up_a_sequence_changes_nothing():
    dataset = load_dataset("synthetic-sequences", Sizes(sequence_length=8))
    padded = type(dataset)(**vars(dataset) | {"padding": 0})
    model = build_model("bert-base", padded).eval()
    tokens = torch.randint(1, 200, (1, 8))
    longer = torch.cat([tokens, torch.zeros(1, 4, dtype=torch.long)], dim=1)
    assert torch.allclose(model(tokens), model(longer), atol=1e-5)


@pytest.mark.usefixtures("_tiny")
def test_a_language_model_sees_nothing_of_what_comes_later():
    dataset = load_dataset("stdlib-text", Sizes(sequence_length=16))
    for name in ("gpt2", "llama-160m", "gpt-tiny"):
        model = build_model(name, dataset).eval()
        tokens = torch.randint(256, (1, 16))
        changed = tokens.clone()
        changed[0, 10:] = 7
        assert torch.allclose(model(tokens)[0, :10], model(changed)[0, :10], atol=1e-5), name


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize(
    ("model", "dataset"),
    [
        ("mlp", "digits"),
        ("convnet", "digits"),
        ("vit-b16", "digits"),
        ("gpt-tiny", "stdlib-text"),
        ("gpt2", "stdlib-text"),
        ("bert-base", "synthetic-sequences"),
    ],
)
def test_dropout_is_there_when_asked_for_and_only_then(model, dataset):
    loaded = load_dataset(dataset, Sizes(image_size=32, sequence_length=16))
    inputs, _targets = loaded.train.take(torch.arange(4))
    plain, dropping = (build_model(model, loaded, dropout) for dropout in (0.0, 0.5))
    assert torch.equal(plain.train()(inputs), plain(inputs))
    assert not torch.allclose(dropping.train()(inputs), dropping(inputs))
    assert torch.equal(dropping.eval()(inputs), dropping(inputs))
