"""Data sets in local folders: what is offered, what is read, and what is said where that cannot be."""

import os

import numpy as np
import pytest
import torch
from engine_runs import run_command, train, write_spec
from PIL import Image

from jobs.contract.errors import DataMissing
from workers.engine.catalog import read_catalog
from workers.engine.data import load_dataset
from workers.engine.data.dataset import Sizes


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("PITWALL_DATA", str(tmp_path))
    return tmp_path


def write_images(folder, count=40):
    generator = np.random.default_rng(0)
    for number, name in enumerate(("bright", "dark")):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = generator.integers(0, 100, (20, 30, 3)) + (150 if number == 0 else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{index}.png")


def write_texts(folder):
    (folder / "deep").mkdir(parents=True)
    for index in range(40):
        (folder / "deep" / f"{index}.txt").write_text(f"line {index} of a text\n" * 20)


def test_images_by_class_are_offered_and_learned(data):
    write_images(data / "lights")
    info = read_catalog().dataset("folder:lights")
    ran = train(dataset="folder:lights", model="convnet", image_size=8, num_steps=30, learning_rate=3e-3)
    assert ran.started.num_train_samples == info.num_train_samples
    assert load_dataset("folder:lights").num_classes == info.num_classes == 2
    assert ran.summary.eval_accuracy > 0.9
    assert ran.started.spec.image_size == 8


def test_images_are_squares_of_bytes_and_become_numbers_up_to_one(data):
    write_images(data / "lights", count=20)
    dataset = load_dataset("folder:lights", Sizes(image_size=16))
    assert dataset.train.samples.dtype is torch.uint8
    inputs, _labels = dataset.train.take(torch.arange(4))
    assert inputs.shape == (4, 3, 16, 16)
    assert 0 <= inputs.min() <= inputs.max() <= 1
    assert inputs.max() > 0.5


def test_text_files_are_offered_and_learned(data):
    write_texts(data / "lines")
    info = read_catalog().dataset("folder:lines")
    assert info.revision
    assert load_dataset("folder:lines").num_classes == info.num_classes
    ran = train(dataset="folder:lines", model="gpt-tiny", sequence_length=16, num_steps=20, learning_rate=3e-3)
    assert ran.losses[-1] < 0.8 * ran.losses[0]


def test_revisions_follow_names_and_contents(data):
    write_texts(data / "lines")
    listed, loaded = read_catalog().dataset("folder:lines").revision, load_dataset("folder:lines").revision
    assert (read_catalog().dataset("folder:lines").revision, load_dataset("folder:lines").revision) == (listed, loaded)
    (data / "lines" / "deep" / "0.txt").write_text("changed\n")
    assert read_catalog().dataset("folder:lines").revision != listed
    assert load_dataset("folder:lines").revision != loaded


def test_a_folder_without_data_is_a_sentence_and_not_offered(data):
    (data / "empty").mkdir()
    catalog = read_catalog()
    assert catalog.problems == ["The folder empty holds neither images in one folder per class nor text files."]
    with pytest.raises(DataMissing, match="The folder empty holds neither"):
        train(dataset="folder:empty")


def test_a_root_that_is_not_there_is_a_sentence(monkeypatch):
    monkeypatch.setenv("PITWALL_DATA", "/nowhere")
    assert read_catalog().problems == ["PITWALL_DATA names the folder /nowhere, which does not exist."]


@pytest.mark.parametrize("name", ["../secrets", "..", "/etc", "a/b", "", ".hidden"])
def test_no_name_leads_out_of_the_folder(data, name):
    (data / "a" / "b").mkdir(parents=True)
    (data.parent / "secrets").mkdir(exist_ok=True)
    with pytest.raises(DataMissing, match="There is no data set folder:"):
        load_dataset(f"folder:{name}")


def test_without_the_setting_the_folder_is_named(monkeypatch):
    monkeypatch.delenv("PITWALL_DATA", raising=False)
    with pytest.raises(DataMissing, match="needs PITWALL_DATA"):
        load_dataset("folder:any")


def test_a_picture_that_is_none_is_a_sentence_with_an_exit_code_of_its_own(data):
    write_images(data / "lights")
    (data / "lights" / "dark" / "broken.png").write_text("no picture")
    spec = write_spec(data, dataset="folder:lights", image_size=8)
    ran = run_command(spec, environment={"PITWALL_DATA": os.environ["PITWALL_DATA"]})
    assert ran.exit_code == 4
    assert ran.finished.error.message == "The image broken.png in the folder dark cannot be read."
