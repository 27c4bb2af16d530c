"""A Celery app of one task that does nothing but count itself: what the queue's rate is held against."""

import os

import redis
from celery import Celery

app = Celery("plain", broker=os.environ["PITWALL_REDIS_URL"].replace("unix://", "redis+socket://", 1))
app.conf.update(task_ignore_result=True)
_counter = redis.Redis.from_url(os.environ["PITWALL_REDIS_URL"])


@app.task(name="nothing")
def nothing() -> None:
    """Be done."""
    _counter.incr("done")
