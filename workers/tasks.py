"""Celery's side: a wake-up takes one job, hands it over, wakes the next and then only observes."""

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

from jobs.services.wake import JOIN_TASK, OBSERVE_TASK, WAKE_TASK, wake
from workers.host import host


@shared_task(name=WAKE_TASK, ignore_result=True)
def wake_up(queue_name: str) -> int | None:
    """Take one job if there is one for this host; the supervisor's exit code, None where there was nothing to do."""
    supervisor = host.answer()
    if supervisor is None:
        return None
    wake(queue_name)  # there may be more that fits
    return host.observe(supervisor)


@shared_task(name=OBSERVE_TASK, ignore_result=True)
def observe(attempt_id: int) -> None:
    """Watch an attempt that outlived the worker which started it, so that Celery's tools show what runs here."""
    host.observe_adopted(attempt_id)


@shared_task(name=JOIN_TASK, ignore_result=True)
def join(node_id: int) -> int | None:
    """Start this host's node of an attempt that another host leads; None where it is started already."""
    supervisor = host.join(node_id)
    return host.observe(supervisor) if supervisor else None


@worker_ready.connect
def begin(**_: object) -> None:
    """The Celery worker consumes: make this host known."""
    host.start()


@worker_shutting_down.connect
def end(**_: object) -> None:
    """The Celery worker was asked to stop."""
    host.stop()
