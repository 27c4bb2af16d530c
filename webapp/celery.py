"""The Celery app. Its messages are only wake-ups; what has to be done stands in the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

from django.conf import settings

from webapp.broker import celery_url

app = Celery("pitwall", include=["workers.tasks"])
app.conf.update(
    broker_url=celery_url(settings.REDIS_URL),
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    result_backend=None,
    task_publish_retry=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    # A submit must not hang on a broker that is away; the relay delivers what a lost wake-up did not.
    broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2, "visibility_timeout": 3600},
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=True,
)
