import sysconfig
import time

import pytest
import torch

from jobs.contract.errors import DataMissing
from workers.engine.data import load_dataset, stdlib_text


def test_digits_are_scikit_learns_in_another_order():
    from sklearn.datasets import load_digits

    ours = load_dataset("digits")
    pixels = torch.cat([ours.train.samples, ours.evaluation.samples]).flatten(1) * 16
    theirs = torch.from_numpy(load_digits().data).float()
    assert len(ours.train) == 1437
    assert sorted(map(tuple, pixels.int().tolist())) == sorted(map(tuple, theirs.int().tolist()))


@pytest.mark.parametrize("name", ["digits", "stdlib-text"])
def test_loading_twice_gives_the_same_revision_and_samples(name):
    one, two = load_dataset(name), load_dataset(name)
    assert one.revision == two.revision
    assert torch.equal(one.train.samples, two.train.samples)


def test_a_language_models_targets_are_its_inputs_one_ahead():
    inputs, targets = load_dataset("stdlib-text").train.take(torch.tensor([3]))
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_neighbouring_windows_miss_no_byte():
    samples = load_dataset("stdlib-text").train.samples
    assert torch.equal(samples[0, -1], samples[1, 0])


def test_stdlib_text_is_pythons_sources_and_takes_the_processor_two_seconds_at_most():
    began_s = time.process_time()
    dataset = load_dataset("stdlib-text")
    assert time.process_time() - began_s < 2
    assert len(dataset.train) > 20_000
    assert len(dataset.evaluation) == stdlib_text.NUM_EVAL_WINDOWS
    assert b"import" in dataset.train.samples[:, :-1].numpy().tobytes()


def write_library(folder):
    for number in range(40):
        (folder / f"module_{number}.py").write_bytes(bytes([number]) * 500)
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "foreign.py").write_bytes(b"\xff" * 5000)
    (folder / "test").mkdir()
    (folder / "test" / "test_it.py").write_bytes(b"\xfe" * 5000)


def test_the_text_is_split_by_file_without_tests_and_foreign_packages(tmp_path, monkeypatch):
    write_library(tmp_path)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    dataset = load_dataset("stdlib-text")
    train, evaluation = (set(split.samples.unique().tolist()) for split in (dataset.train, dataset.evaluation))
    assert train
    assert evaluation
    assert train | evaluation <= set(range(40))
    assert not train & evaluation


def test_the_revision_follows_the_content(tmp_path, monkeypatch):
    write_library(tmp_path)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    before = load_dataset("stdlib-text").revision
    (tmp_path / "module_0.py").write_bytes(b"changed")
    assert load_dataset("stdlib-text").revision != before


def test_missing_sources_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(DataMissing, match="needs Python's sources"):
        load_dataset("stdlib-text")


@pytest.mark.parametrize("name", ["diabetes", "breast-cancer", "wine"])
def test_tables_are_scikit_learns_scaled_and_in_another_order(name):
    import sklearn.datasets

    theirs = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")
    wanted = theirs(scaled=False) if name == "diabetes" else theirs()
    ours = load_dataset(name)
    samples = torch.cat([ours.train.samples, ours.evaluation.samples])
    labels = torch.cat([ours.train.labels, ours.evaluation.labels]).double()
    raw = torch.from_numpy(wanted.data)[:, 0]
    assert sorted_and_scaled(samples[:, 0].double()) == pytest.approx(sorted_and_scaled(raw), abs=1e-5)
    target = torch.from_numpy(wanted.target).double()
    assert sorted_and_scaled(labels) == pytest.approx(sorted_and_scaled(target), abs=1e-5)
    assert ours.train.samples.mean(0).abs().max() < 1e-5


def sorted_and_scaled(column):
    return (((column - column.mean()) / column.std()).sort().values).tolist()
