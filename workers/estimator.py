"""Answers what specs would need, in a process of the engine: a Celery worker never imports torch."""

import json
import subprocess
import tempfile
from pathlib import Path

from jobs.contract.estimates import Estimate
from jobs.models import SpecEstimate
from jobs.services import estimates
from workers.engine_process import engine_command, environment_without_secrets

_TIME_LIMIT_S = 90
_NOT_TOLD = "The worker's engine could not tell what this would need."


def answer_one(worker_id: int) -> bool:
    """Answer the question that was asked last; False where there is none for this worker now."""
    wanted = estimates.take_wanted(worker_id)
    if wanted is None:
        return False
    try:
        ended = _ask_engine(wanted)
    except subprocess.TimeoutExpired:
        estimates.store_problem(wanted, _NOT_TOLD)
        return True
    if ended.returncode == 0:
        estimates.store_answer(wanted, Estimate.model_validate_json(ended.stdout))
    else:
        estimates.store_problem(wanted, _sentence(ended.stderr))
    return True


def _ask_engine(wanted: SpecEstimate) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryDirectory(prefix="pitwall-estimate-") as folder:
        spec = Path(folder, "spec.json")
        spec.write_text(json.dumps(wanted.spec))
        return subprocess.run(
            ["nice", "-n", "19", *engine_command(), "estimate", str(spec)],
            env=environment_without_secrets(),
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT_S,
            check=False,
        )


def _sentence(stderr: str) -> str:
    """An engine's last word is a sentence for people, unless it broke."""
    lines = stderr.strip().splitlines()
    return lines[-1] if lines and "Traceback" not in stderr else _NOT_TOLD
