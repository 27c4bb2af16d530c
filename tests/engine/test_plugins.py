"""A team's own package, built and installed for real, and what is said of a broken one."""

import json
import os
import subprocess
import sys

import pytest
from engine_runs import ROOT, run_command, write_spec

from jobs.contract.events import Warned
from jobs.contract.rules.parts import NO_BLOCKS

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "team-models"
version = "1.0"

[tool.setuptools]
py-modules = ["team_offer", "team_code", "team_broken"]

[project.entry-points."pitwall.models"]
team-net = "team_offer:NET"
team-torn = "team_broken:NET"
team-misnamed = "team_offer:NET"
mlp = "team_offer:MLP"

[project.entry-points."pitwall.datasets"]
team-points = "team_offer:POINTS"
team-number = "team_offer:NUMBER"
"""
OFFER = """
from jobs.contract.catalog import DataKind, DatasetInfo, ModelInfo
from jobs.contract.plugins import DatasetPlugin, ModelPlugin

NET = ModelPlugin(
    info=ModelInfo(name="team-net", description="ours", takes=[DataKind.VECTORS]), builder="team_code:build"
)
MLP = NET.model_copy(update={"info": NET.info.model_copy(update={"name": "mlp"})})
POINTS = DatasetPlugin(
    info=DatasetInfo(name="team-points", description="ours", gives=DataKind.VECTORS), loader="team_code:load"
)
NUMBER = 7
"""
CODE = """
import torch
from torch import nn
from jobs.contract.catalog import DataKind, Target
from workers.engine.data.dataset import Dataset, Sizes, Split

def build(dataset, dropout):
    return nn.Linear(dataset.sample_shape[0], dataset.num_classes)

def load(sizes):
    points = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    labels = (points.sum(1) > 0).long()
    return Dataset(
        kind=DataKind.VECTORS, target=Target.CLASS, revision="1", sample_shape=(3,), num_classes=2,
        train=Split(points[:160], labels[:160]), evaluation=Split(points[160:], labels[160:]),
    )
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which the package is installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "team_offer.py").write_text(OFFER)
    (source / "team_code.py").write_text(CODE)
    (source / "team_broken.py").write_text("import a_package_that_is_not_there\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, capture_output=True, timeout=120)
    return {"PYTHONPATH": f"{target}:{ROOT}"}


@pytest.fixture(scope="module")
def catalog(installed):
    command = [sys.executable, "-m", "workers.engine", "describe"]
    told = subprocess.run(command, cwd=ROOT, env=os.environ | installed, check=True, capture_output=True, timeout=60)
    return json.loads(told.stdout)["catalog"]


def test_describe_offers_what_the_package_brings(catalog):
    assert "team-net" in [info["name"] for info in catalog["models"]]
    assert "team-points" in [info["name"] for info in catalog["datasets"]]


@pytest.mark.parametrize(
    "sentence",
    [
        "The plug-in team-torn of the package team-models cannot be imported (ModuleNotFoundError: "
        "No module named 'a_package_that_is_not_there').",
        "The plug-in team-misnamed of the package team-models calls itself team-net; both names must be the same.",
        "The plug-in team-number of the package team-models is no DatasetPlugin; its entry point must lead to one.",
        "The plug-in mlp has a name that is built in and is left out.",
    ],
)
def test_a_broken_plug_in_is_a_sentence(catalog, sentence):
    assert sentence in catalog["problems"]
    assert len(catalog["problems"]) == 4


def test_a_teams_model_trains_on_its_data(installed, tmp_path):
    ran = run_command(
        write_spec(tmp_path, model="team-net", dataset="team-points", num_steps=60, learning_rate=0.05),
        environment=installed,
    )
    assert ran.exit_code == 0, ran.stderr
    assert ran.summary.num_parameters == 8
    assert ran.summary.eval_accuracy > 0.85


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"activation_checkpointing": True}, "activation_checkpointing"),
        ({"compile_mode": "default", "compile_scope": "block"}, "compile_scope"),
    ],
)
def test_what_a_team_did_not_list_of_its_model_the_engine_sees(installed, tmp_path, fields, field):
    ran = run_command(
        write_spec(tmp_path, model="team-net", dataset="team-points", **fields),
        environment=installed,
    )
    assert ran.exit_code == 3, ran.stderr
    assert [(finding.field, finding.sentence) for finding in ran.finished.error.findings] == [(field, NO_BLOCKS)]


def test_an_option_that_does_nothing_in_a_teams_model_is_warned_about(installed, tmp_path):
    ran = run_command(
        write_spec(tmp_path, model="team-net", dataset="team-points", channels_last=True), environment=installed
    )
    assert ran.exit_code == 0, ran.stderr
    assert [event.finding.field for event in ran.events if isinstance(event, Warned)] == ["channels_last"]


def test_without_the_package_its_names_are_refused(tmp_path):
    ran = run_command(write_spec(tmp_path, model="team-net", dataset="team-points"))
    assert ran.exit_code == 3
    assert "There is no model “team-net”." in ran.stderr
