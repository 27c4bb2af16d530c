"""What every result carries: date, machine, versions; and where it is kept."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT

RESULTS = Path(__file__).resolve().parent / "results"
_PACKAGES = ("torch", "numpy", "transformers", "accelerate", "lightning", "torchao")


def begin_results() -> dict[str, Any]:
    """Results with nothing measured yet."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": describe_host(),
        "versions": find_versions(),
    }


def describe_host() -> dict[str, Any]:
    """The machine as the engine sees it; without its name, which says nothing to others."""
    command = [sys.executable, "-m", "workers.engine", "describe"]
    facts = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["facts"]
    return {name: value for name, value in facts.items() if name != "hostname"}


def find_versions() -> dict[str, str]:
    """Versions of the packages that matter here and are installed."""
    installed = {distribution.name for distribution in metadata.distributions()}
    return {name: metadata.version(name) for name in _PACKAGES if name in installed}


def write(results: dict[str, Any], lines: Sequence[str], *names: str) -> Path:
    """Keep raw numbers and tables beside those of other days, in files of this day and these names."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{'-'.join([results['measured_at'][:10], *names])}.json"
    path.write_text(json.dumps(results, indent=2) + "\n")
    path.with_suffix(".md").write_text("\n".join([*_heading(results), *lines]))
    return path


def _heading(results: dict[str, Any]) -> list[str]:
    host = results["host"]
    devices = ", ".join(device["name"] for device in host["devices"])
    about = [devices, f"{host['num_cpu_cores']} cores", f"Python {host['python_version']}"]
    about += [f"{name} {host[name]}" for name in ("cuda_version", "driver_version") if host[name]]
    about += [f"{name} {version}" for name, version in results["versions"].items()]
    return [f"# Benchmark of {results['measured_at']}", "", "; ".join(about), ""]
