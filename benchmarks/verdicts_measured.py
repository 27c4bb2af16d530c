"""Studies whose verdict is known beforehand, in the database that the environment names.

`python -m benchmarks.verdicts_measured SAME SLOWED` prints a line of JSON. Studies enter, take turns, grow until they
are sure and are judged by the services and selectors that the product uses. Only the way to a run is shorter: the
engine stays up between them (`kept_engine.py`), for what is measured is steps, not starts.
"""

import json
import os
import sys
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

from django.core.management import call_command

from benchmarks.kept_engine import KeptEngine
from jobs.contract.plan import Arrangement, StudyPlan
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job
from jobs.selectors.studies import view_study
from jobs.services.claim import claim_next
from jobs.services.finish import finish_attempt
from jobs.services.record import record_started
from jobs.services.studies import create_study
from jobs.services.study_repeats import add_repeats
from tests.jobs.factories import make_queue, make_team, make_user, make_worker

PLANTED = 0.05
# Both sides do the same: how many steps are timed in parts after the last one changes nothing before it.
BASE = {"model": "mlp", "dataset": "digits", "device": "cpu", "micro_batch_size": 32, "num_steps": 4000}
BASE |= {"num_threads": 1, "phase_steps": 1}
OTHER = {"phase_steps": 2}


def main(num_same: int, num_slowed: int) -> dict[str, Any]:
    """Every study's verdict on the second configuration, with its ratio and its pairs."""
    engine, studies = KeptEngine(), Studies()
    _started, first = engine.run(BASE)
    assert first.steady_step_time_ms
    spin_s = PLANTED * 1e-3 * first.steady_step_time_ms
    same = [studies.judge(engine, number, 0.0) for number in range(num_same)]
    slowed = [studies.judge(engine, num_same + number, spin_s) for number in range(num_slowed)]
    engine.end()
    return {"step_time_ms": first.steady_step_time_ms, "planted": PLANTED, "same": same, "slowed": slowed}


class Studies:
    """Somebody who asks for studies, and the host that runs them."""

    def __init__(self) -> None:
        team = make_team()
        self._about = {"owner": make_user(team=team), "team": team, "queue": make_queue()}
        self._worker = make_worker()

    def judge(self, engine: KeptEngine, number: int, spin_s: float) -> dict[str, Any]:
        """Run one study to its end. Each has seeds of its own."""
        plan = StudyPlan(
            base=BASE | {"seed": 100 * number},
            arrangement=Arrangement.LIST,
            configurations=[OTHER],
            num_repeats=3,
            until_sure=True,
        )
        study = create_study(plan=plan, name=f"study {number}", **self._about)
        while self._run_what_waits(engine, spin_s) or add_repeats():
            continue
        row = next(row for row in view_study(study).rows if not row.is_baseline)
        assert row.time
        return {
            "verdict": row.time_verdict.value,
            "ratio": row.time.ratio,
            "low": row.time.low,
            "high": row.time.high,
            "half_width": row.time.half_width,
            "n": row.time.n,
        }

    def _run_what_waits(self, engine: KeptEngine, spin_s: float) -> int:
        num_run = 0
        while attempt := claim_next(self._worker.pk):
            started, summary = engine.run(attempt.job.spec, spin_s if attempt.job.study_place else 0.0)
            record_started(attempt, started)
            finish_attempt(Attempt.objects.get(pk=attempt.pk), Outcome.SUCCEEDED, summary)
            num_run += 1
        assert not Job.objects.exclude(outcome=Outcome.SUCCEEDED).exists()
        return num_run


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    print(json.dumps(main(*map(int, sys.argv[1:]))))
