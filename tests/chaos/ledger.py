"""The database's own account of every end: triggers write it, whatever code the change came from."""

from collections import Counter
from pathlib import Path

from django.db import connection

from jobs.attempt_files import AttemptFiles
from jobs.models import Attempt, Device, Job
from jobs.selectors.curves import read_curve, read_own_curve
from tests.stand_in_engine import loss_at

_TABLE = "CREATE TABLE chaos_ledger (job_id bigint NOT NULL, what varchar(20) NOT NULL)"

# A job's end, a change of a job that had ended, and a change of an attempt that had ended, but for how its points are
# stored: they are compacted after the end.
_EVENTS = [
    ("jobs_job", "ended", "OLD.outcome IS NULL AND NEW.outcome IS NOT NULL", "NEW.id"),
    ("jobs_job", "changed after", "OLD.outcome IS NOT NULL AND NEW.state <> OLD.state", "NEW.id"),
    ("jobs_attempt", "changed after", "OLD.outcome IS NOT NULL AND OLD.curve_form = NEW.curve_form", "NEW.job_id"),
]


def open_ledger() -> None:
    """Make the table and the triggers that write it."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        for number, (table, what, condition, job_id) in enumerate(_EVENTS):
            for statement in _trigger(f"chaos_{number}", table, what, condition, job_id):
                cursor.execute(statement)


def _trigger(name: str, table: str, what: str, condition: str, job_id: str) -> list[str]:
    insert = f"INSERT INTO chaos_ledger VALUES ({job_id}, '{what}')"  # noqa: S608 its parts stand above
    if connection.vendor == "sqlite":
        return [f"CREATE TRIGGER {name} AFTER UPDATE ON {table} WHEN {condition} BEGIN {insert}; END"]
    return [
        f"CREATE FUNCTION {name}() RETURNS trigger AS $$ BEGIN {insert}; RETURN NULL; END $$ LANGUAGE plpgsql",
        f"CREATE TRIGGER {name} AFTER UPDATE ON {table} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()",
    ]


def entries(what: str) -> Counter[int]:
    """How often it happened, by job."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT job_id FROM chaos_ledger WHERE what = %s", [what])
        return Counter(row[0] for row in cursor.fetchall())


def is_doubled(job: Job, ends: Counter[int], changes: Counter[int]) -> bool:
    """Whether it ended twice, changed after its end, or has a point twice or wrong."""
    return ends[job.pk] > 1 or changes[job.pk] > 0 or any(_has_wrong_points(attempt) for attempt in job.attempts.all())


def _has_wrong_points(attempt: Attempt) -> bool:
    curve = read_own_curve(attempt, "train_loss")
    steps = curve.steps.tolist()
    first = (attempt.resumed_at_step or 0) + 1
    return steps != list(range(first, first + len(steps))) or curve.values.tolist() != [loss_at(s) for s in steps]


def is_lost(job: Job, ends: Counter[int]) -> bool:
    """Whether it has not ended, was given up, or succeeded without all of its points."""
    if ends[job.pk] == 0 or job.outcome == "lost":
        return True
    if job.outcome != "succeeded" or job.last_attempt is None:
        return False
    return read_curve(job.last_attempt, "train_loss").x != list(range(1, job.train_spec.num_steps + 1))


def num_leaked_devices() -> int:
    """Devices that are still leased or in quarantine although nothing runs."""
    return Device.objects.exclude(attempt=None, quarantine_reason="").count()


def num_refused(jobs: list[Job]) -> int:
    """How often a supervisor of these jobs found that it was not the owner any more; it tells its log."""
    logs = [AttemptFiles(pk).supervisor_log for pk in Attempt.objects.filter(job__in=jobs).values_list("pk", flat=True)]
    return sum(_count(log, ("no longer the owner", "had lost its job")) for log in logs)


def _count(log: Path, words: tuple[str, ...]) -> int:
    text = log.read_text(errors="replace") if log.exists() else ""
    return sum(text.count(word) for word in words)
