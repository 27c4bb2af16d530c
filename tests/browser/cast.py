"""The process behind the browser's tests: fills a database, then does as the lines on its stdin say.

Run as `python -m tests.browser.cast` with PITWALL_VAR set. Answers every line with one line of JSON.
"""

import json
import os
import sys
from typing import Any

import django

# The models can only be imported once Django stands.
# ruff: noqa: E402

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.utils import timezone

from jobs.attempt_files import AttemptFiles
from jobs.contract.events import Points
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, User, Worker
from jobs.services import finish, submit
from jobs.services.record import record_phase
from tests.jobs.factories import (
    make_job,
    make_queue,
    make_spec,
    make_summary,
    make_team,
    make_user,
    make_worker,
    points,
    record,
    start,
)

# No broker listens here, and asking for one would take seconds.
finish.wake_on_commit = submit.wake_on_commit = lambda *_: None  # type: ignore[assignment]


def fill() -> dict[str, int]:
    """People, a worker that stays online, two ended jobs, one that runs and one that waits."""
    team = make_team("Pit crew")
    mara, _boss = make_user("mara", team=team), make_user("boss", team=team, is_staff=True)
    make_user("noor", team=team)
    make_queue()
    worker = make_worker("pit-01")
    slow = make_job(mara, name="slow one", spec=make_spec(num_steps=60))
    _end(start(slow, worker), 20.0)
    fast = make_job(mara, name="fast one", spec=make_spec(num_steps=60, precision="bf16-mixed"))
    _end(start(fast, worker), 10.0)
    running = make_job(mara, name="the live one", spec=make_spec(num_steps=400))
    attempt = start(running, worker)
    record_phase(attempt, "training")
    _add_points(attempt, 40)
    waiting = make_job(mara, name="the waiting one")
    return {"slow": slow.pk, "fast": fast.pk, "running": running.pk, "waiting": waiting.pk}


def add_repeats() -> list[int]:
    """Twelve ended jobs: four repeats each of a configuration, of one as fast, and of one twice as fast."""
    mara, worker = User.objects.get(username="mara"), make_worker("pit-02")
    times_ms = {0.001: 20.0, 0.002: 20.0, 0.004: 10.0}
    jobs = []
    for rate, time_ms in times_ms.items():
        for seed in range(4):
            job = make_job(mara, name=f"{rate} {seed}", spec=make_spec(num_steps=60, learning_rate=rate, seed=seed))
            sampled = {"telemetry.process_rss_bytes": [1e8, 2e8, 3e8], "telemetry.cpu_percent": [50, 60, 70]}
            figures = {"phase_data_wait_ms": 8.0, "phase_forward_ms": 12.0, "first_step_s": 0.5}
            figures["final_eval_loss"] = 1.5 + 0.01 * seed + rate
            _end(start(job, worker), time_ms * (1 + 0.1 * seed), points([20, 40, 60], **sampled), **figures)
            jobs.append(job.pk)
    return jobs


def end_waiting(**which: Any) -> int:
    """End some of the jobs that wait: bf16-mixed takes half the time, at the same loss."""
    worker = make_worker("pit-03")
    waiting = list(Job.objects.filter(state="queued", **which).order_by("order_key", "pk"))
    for job in waiting:
        is_fast = job.spec["precision"] == "bf16-mixed"
        figures = {"steady_step_time_ms": 5.0 if is_fast else 10.0, "final_eval_loss": 2.0}
        finish.finish_attempt(start(job, worker), Outcome.SUCCEEDED, make_summary(**figures))
    return len(waiting)


def _end(attempt: Attempt, step_time_ms: float, *more: Points, **figures: float) -> None:
    _add_points(attempt, 60)
    record(attempt, *more)
    told = {"num_steps": 60, "steady_step_time_ms": step_time_ms, "final_train_loss": 1.5, "peak_rss_bytes": 2**30}
    finish.finish_attempt(attempt, Outcome.SUCCEEDED, Summary.model_validate(told | figures))


def _add_points(attempt: Attempt, count: int) -> int:
    attempt.refresh_from_db()
    first = attempt.last_step + 1
    steps = range(first, first + count)
    record(attempt, points(steps, train_loss=[5 / step**0.5 for step in steps]))
    log = AttemptFiles(attempt.pk).log
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write(f"step {steps[-1]} is done\n")
    return steps[-1]


def _ended_with_every_tile() -> int:
    """A job that measured whatever stands on top of its page."""
    figures = {"first_step_s": 12.5, "eval_accuracy": 0.9875, "peak_allocated_bytes": 3 * 2**30}
    job = make_job(User.objects.get(username="mara"), name="the measured one")
    summary = make_summary(observed_dtype="bfloat16", samples_per_s=123456.0, **figures)
    finish.finish_attempt(start(job, make_worker("pit-04")), Outcome.SUCCEEDED, summary)
    return job.pk


def _print(attempt: Attempt, count: int) -> int:
    with AttemptFiles(attempt.pk).log.open("a") as file:
        file.writelines(f"printed {number}\n" for number in range(1, count + 1))
    return count


def obey(words: list[str]) -> Any:
    """`wait NAME` (a job that waits), `start JOB`, `points JOB N`, `finish JOB`, `delete JOB`, `repeats`, `count`,
    `ended` (a job with every tile) or `print JOB N` (lines of its log).

    `study ID` and `reproductions` end what waits of a study, and what is measured again.
    """
    if words[0] == "repeats":
        return add_repeats()
    if words[0] == "study":
        return end_waiting(study=int(words[1]))
    if words[0] == "reproductions":
        return end_waiting(reproductions__isnull=False)
    if words[0] == "ended":
        return _ended_with_every_tile()
    if words[0] == "delete":
        return Job.objects.get(pk=int(words[1])).delete()[0]
    if words[0] == "count":
        return Job.objects.count()
    if words[0] == "wait":
        return make_job(User.objects.get(username="mara"), name=" ".join(words[1:])).pk
    if words[0] == "start":
        return start(Job.objects.get(pk=int(words[1])), make_worker(f"pit-{words[1]}")).pk
    attempt = Attempt.objects.select_related("job").get(job_id=int(words[1]), outcome=None)
    if words[0] == "print":
        return _print(attempt, int(words[2]))
    if words[0] == "points":
        return _add_points(attempt, int(words[2]))
    return finish.finish_attempt(attempt, Outcome.SUCCEEDED, Summary(steady_step_time_ms=7.5)).value


def _answer(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Fill, then obey until stdin ends."""
    _answer(fill())
    for line in sys.stdin:
        Worker.objects.update(heartbeat_at=timezone.now())
        _answer(obey(line.split()))


if __name__ == "__main__":
    main()
