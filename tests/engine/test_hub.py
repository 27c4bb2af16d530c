"""Data sets of the hub: read from local files through the same code, with the network forbidden."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_runs import train
from PIL import Image

from jobs.contract.errors import DataMissing
from workers.engine import hub
from workers.engine.catalog import read_catalog
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Sizes

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "home" / "datasets")


def put(monkeypatch, folder, name, columns, features):
    """Let the registered name lead to parquet files in a folder."""
    source = replace(hub.HUB[name], repository=str(folder), configuration="default")
    for split, count in (("train", 40), (source.evaluation_split, 8)):
        rows = {column: values(count) for column, values in columns.items()}
        made = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
        (folder / "data").mkdir(parents=True, exist_ok=True)
        made.to_parquet(folder / "data" / f"{split}-00000.parquet")
    monkeypatch.setitem(hub.HUB, name, source)


def test_images_are_read_and_learned(monkeypatch, tmp_path):
    def images(count):
        pixels = np.random.default_rng(0).integers(0, 100, (count, 32, 32, 3))
        return [Image.fromarray((image + 150 * (index % 2)).astype(np.uint8)) for index, image in enumerate(pixels)]

    features = {"img": datasets.Image(), "label": datasets.ClassLabel(names=["dark", "bright"])}
    columns = {"img": images, "label": lambda count: [index % 2 for index in range(count)]}
    put(monkeypatch, tmp_path / "repository", "cifar10", columns, features)
    assert read_catalog().dataset("cifar10").unavailable == ""
    dataset = load_dataset("cifar10")
    assert (dataset.sample_shape, dataset.num_classes, len(dataset.train)) == ((3, 32, 32), 2, 40)
    assert dataset.revision == hub.HUB["cifar10"].revision[:16]
    ran = train(model="convnet", dataset="cifar10", image_size=8, num_steps=20, learning_rate=3e-3)
    assert ran.summary.eval_accuracy == 1


WIKITEXT = (
    {"text": lambda count: [f"line {index}\n" * 20 for index in range(count)]},
    {"text": datasets.Value("string")},
)


def cache_as_the_hub_would(monkeypatch, folder, name, columns, features, revision):
    """Let the loading code itself fill its cache from files, then give the cache the name that the hub's would have."""
    source, cache = hub.HUB[name], folder / "home" / "datasets"
    with monkeypatch.context() as patch:
        put(patch, folder / "repository", name, columns, features)
        load_dataset(name)
    short_name = source.repository.partition("/")[2]
    made = next((cache / "repository").glob("*/*/*/dataset_info.json")).parent
    for file in made.glob("*.arrow"):
        file.rename(file.with_name(file.name.replace("repository", short_name)))
    info = json.loads((made / "dataset_info.json").read_text())
    named = {"dataset_name": short_name, "config_name": source.configuration}
    (made / "dataset_info.json").write_text(json.dumps(info | named))
    at_home = cache / source.repository.replace("/", "___") / source.configuration / "0.0.0" / revision
    at_home.parent.mkdir(parents=True)
    made.rename(at_home)
    shutil.rmtree(folder / "repository")


def test_what_is_in_the_hubs_cache_at_the_pinned_commit_is_read_without_a_network(monkeypatch, tmp_path):
    assert "not in this worker's cache" in read_catalog().dataset("wikitext-2").unavailable
    cache_as_the_hub_would(monkeypatch, tmp_path, "wikitext-2", *WIKITEXT, hub.HUB["wikitext-2"].revision)
    assert read_catalog().dataset("wikitext-2").unavailable == ""
    ran = train(model="gpt-tiny", dataset="wikitext-2", sequence_length=16, num_steps=5)
    assert ran.started.dataset_revision == hub.HUB["wikitext-2"].revision[:16]
    assert len(ran.losses) == 5


def test_another_commit_in_the_cache_is_not_taken_for_the_pinned_one(monkeypatch, tmp_path):
    cache_as_the_hub_would(monkeypatch, tmp_path, "wikitext-2", *WIKITEXT, "f" * 40)
    assert "not in this worker's cache" in read_catalog().dataset("wikitext-2").unavailable
    with pytest.raises(DataMissing, match="at another commit than b08601e04326"):  # as where the network is away
        load_dataset("wikitext-2")


def test_running_text_becomes_windows_of_bytes(monkeypatch, tmp_path):
    put(monkeypatch, tmp_path / "repository", "wikitext-2", *WIKITEXT)
    dataset = load_dataset("wikitext-2", Sizes(sequence_length=16))
    inputs, _targets = dataset.train.take(torch.tensor([0]))
    assert bytes(inputs[0].tolist()) == b"line 0\nline 0\nli"


def test_sentences_become_sequences_of_one_length(monkeypatch, tmp_path):
    features = {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["against", "for"])}
    columns = {
        "sentence": lambda count: ["good", "a very bad film"] * (count // 2),
        "label": lambda count: [1, 0] * (count // 2),
    }
    put(monkeypatch, tmp_path / "repository", "glue-sst2", columns, features)
    dataset = load_dataset("glue-sst2", Sizes(sequence_length=8))
    inputs, labels = dataset.train.take(torch.tensor([0, 1]))
    assert inputs[0].tolist() == [byte + 1 for byte in b"good"] + [dataset.padding] * 4
    assert inputs[1].tolist() == [byte + 1 for byte in b"a very b"]
    assert (labels.tolist(), dataset.vocabulary) == ([1, 0], 257)


def test_without_cache_and_network_it_is_a_sentence_before_anything_is_queued():
    reason = read_catalog().dataset("cifar10").unavailable
    assert reason == "cifar10 is not in this worker's cache, and the worker is told to stay offline (HF_HUB_OFFLINE)."
    with pytest.raises(DataMissing, match="not in this worker's cache"):
        train(model="convnet", dataset="cifar10")


def test_without_cache_and_network_loading_is_a_sentence_too():
    with pytest.raises(DataMissing, match="cifar10 is neither in this worker's cache nor to be had from the hub"):
        load_dataset("cifar10")


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    reason = read_catalog().dataset("wikitext-2").unavailable
    assert reason == "wikitext-2 needs the package datasets on the worker: pip install -r requirements-hub.txt."


def test_every_revision_is_pinned_to_a_commit():
    assert all(len(source.revision) == 40 for source in hub.HUB.values())
