"""`manage.py worker`: this host's Celery worker for the queues in PITWALL_QUEUES."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from jobs.services.wake import celery_queue, host_queue
from workers.identity import host_id, host_name

# A thread only observes an attempt, so there may be many more than any host has devices.
_NUM_THREADS = 32


class Command(BaseCommand):
    """Becomes the Celery worker, so that signals reach it directly."""

    help = "Run this host's worker for the queues in PITWALL_QUEUES."

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process by Celery."""
        queues = ",".join([*map(celery_queue, settings.WORKER_QUEUES), host_queue(host_id())])
        command = [sys.executable, "-m", "celery", "--app", "webapp.celery", "worker", "--queues", queues]
        command += ["--pool", "threads", "--concurrency", str(_NUM_THREADS), "--loglevel", "INFO"]
        command += ["--without-gossip", "--without-mingle"]
        command += ["--hostname", f"pitwall@{host_name()}"]
        os.execv(sys.executable, command)  # noqa: S606 the command is built here
