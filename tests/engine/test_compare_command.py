"""`compare A B` puts two result files side by side."""

import subprocess
import sys

import pytest
from engine_runs import ROOT, run_command, write_spec


def compare(*paths):
    command = [sys.executable, "-m", "workers.engine", "compare", *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for name, fields in {"plain": {}, "bf16": {"precision": "bf16-mixed"}}.items():
        paths.append(folder / f"{name}.jsonl")
        run_command(write_spec(folder, num_steps=6, phase_steps=0, **fields), "--events", str(paths[-1]))
    return paths


def test_it_names_the_options_that_differ_and_no_others(files):
    lines = compare(*files).stdout.splitlines()
    options = {line.split()[0]: line.split()[1:] for line in lines}
    assert options["precision"] == ["fp32", "bf16-mixed"]
    assert "micro_batch_size" not in options


def test_it_gives_every_common_figure_with_its_ratio(files):
    rows = {line.split()[0]: line.split()[1:] for line in compare(*files).stdout.splitlines()}
    one, other, ratio = (float(cell) for cell in rows["samples_per_s"][:3])
    assert ratio == pytest.approx(other / one, rel=0.01)
    assert rows["samples_per_s"][3] == ("better" if other > one else "worse")


def test_it_tells_how_far_the_losses_lie_apart(files):
    same, different = compare(files[0], files[0]), compare(*files)
    assert "differ by at most 0 (step" in same.stdout
    assert "Over 6 common steps the training losses differ by at most 0.0" in different.stdout


def test_a_missing_and_a_cut_off_file_are_one_sentence_each(files, tmp_path):
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"\n".join(files[0].read_bytes().splitlines()[:-1]))
    for path, words in ((cut, "no `finished` line"), (tmp_path / "none.jsonl", "cannot be read")):
        ended = compare(files[0], path)
        assert ended.returncode == 1
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr
