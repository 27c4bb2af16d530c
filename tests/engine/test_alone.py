"""The engine alone, as in a cloud notebook: without the web's packages, and without those that only some jobs need."""

import pytest
from engine_runs import ROOT, run_command, write_spec

# What a machine that lacks these packages does with them.
WITHOUT = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
missing = {names!r}
PathFinder.find_spec = staticmethod(
    lambda name, *rest: None if name.partition(".")[0] in missing else find(name, *rest)
)
"""
THE_WEBS = {"django", "celery", "redis", "psutil", "plotly", "ninja", "psycopg"}
OF_SOME_JOBS = {"sklearn", "transformers", "PIL", "pynvml", "torchao", "datasets"}
TEXT = {"model": "gpt-tiny", "dataset": "stdlib-text", "num_steps": 2}


def without(folder, names):
    (folder / "sitecustomize.py").write_text(WITHOUT.format(names=names))
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


@pytest.mark.parametrize("parallelism", ["none", "ddp"])
def test_torch_numpy_and_pydantic_are_enough_to_train(tmp_path, parallelism):
    environment = without(tmp_path, THE_WEBS | OF_SOME_JOBS)
    ran = run_command(write_spec(tmp_path, **TEXT, parallelism=parallelism), environment=environment)
    assert ran.exit_code == 0, ran.stderr
    assert ran.started.versions["transformers"]  # installed, only not to be had: nothing imported it
    assert len(ran.losses) == 2


@pytest.mark.parametrize(
    ("work", "exit_code", "words"),
    [
        ({"model": "mlp", "dataset": "digits"}, 4, "comes with scikit-learn, which is not installed here."),
        ({"model": "gpt2", "dataset": "stdlib-text"}, 3, "needs the package transformers on the worker"),
    ],
)
def test_what_a_job_lacks_is_named(tmp_path, work, exit_code, words):
    ran = run_command(write_spec(tmp_path, **work), environment=without(tmp_path, THE_WEBS | OF_SOME_JOBS))
    assert ran.exit_code == exit_code, ran.stderr
    assert words in ran.finished.error.message


def test_the_engines_requirements_are_those_of_the_whole():
    names = {line.partition("==")[0] for line in (ROOT / "requirements-engine.txt").read_text().splitlines()}
    assert {"torch", "numpy", "pydantic"} <= names
    assert not THE_WEBS & names
    assert "-r requirements-engine.txt" in (ROOT / "requirements.txt").read_text().splitlines()
