"""Wake-ups: messages that may be lost, late or doubled, because the database says what there is to do."""

import logging
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 8  # for hosts that are idle; the rest are woken by those that start

WAKE_TASK = "workers.wake"
OBSERVE_TASK = "workers.observe"
JOIN_TASK = "workers.join"

# kombu's and redis-py's own options: one try, and no wait longer than a second.
_IMPATIENT = {"max_retries": 0, "socket_timeout": 1, "socket_connect_timeout": 1, "retry_on_timeout": False}


def celery_queue(queue_name: str) -> str:
    """The Celery queue in which a Pitwall queue's wake-ups travel."""
    return f"pitwall.{queue_name}"


def host_queue(host_id: UUID) -> str:
    """The Celery queue that only the worker of one host consumes."""
    return f"pitwall.host.{host_id}"


def wake(queue_name: str) -> bool:
    """Send one wake-up; False where the broker cannot be reached within a second or two (the relay tries again)."""
    return _send(WAKE_TASK, celery_queue(queue_name), queue_name=queue_name)


def ask_to_observe(host_id: UUID, attempt_id: int) -> bool:
    """Ask a host's worker to watch an attempt whose supervisor it did not start itself; False as for `wake`."""
    return _send(OBSERVE_TASK, host_queue(host_id), attempt_id=attempt_id)


def ask_to_join(host_id: UUID, node_id: int) -> bool:
    """Ask a host's worker to start its node of an attempt that another one leads; False as for `wake`."""
    return _send(JOIN_TASK, host_queue(host_id), node_id=node_id)


def _send(task: str, queue: str, **kwargs: object) -> bool:
    from webapp.celery import app  # the Celery app loads Django's settings, so it is imported when first used

    # A connection of its own: the pool's keep trying for seconds, and a person waits for the answer to a submit.
    with app.connection_for_write(transport_options=_IMPATIENT) as connection:
        failures: tuple[type[BaseException], ...] = (
            OSError,
            OperationalError,
            *connection.connection_errors,
            *connection.channel_errors,
        )
        try:
            app.send_task(task, kwargs=kwargs, queue=queue, connection=connection, retry=False)
        except failures as error:
            logger.warning("%s was not sent to %s: %s", task, queue, error)
            return False
    return True


def wake_on_commit(queue_name: str, num_jobs: int = 1) -> None:
    """Send wake-ups once the surrounding transaction has committed; their failure never undoes what was stored.

    A few do for many jobs: who takes one of them sends the next. None follows one that could not be sent.
    """
    times = min(num_jobs, _MOST_AT_ONCE)
    transaction.on_commit(lambda: all(wake(queue_name) for _time in range(times)), robust=True)
