"""Two addresses for probes: is the web process alive, and does everything that a job needs answer?"""

import logging

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.models import Queue
from jobs.selectors.hosts import online_workers

logger = logging.getLogger(__name__)

OK = "ok"
_BROKER_TIMEOUT_S = 1


@login_not_required
@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers; asks nobody else."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when web, database, broker and a worker are well, else 503; each part says "ok" or what is wrong."""
    parts = {"web": OK, "database": _database(), "broker": _broker()}
    parts["worker"] = _worker() if parts["database"] == OK else gettext("Unknown while the database does not answer.")
    return JsonResponse(parts, status=200 if set(parts.values()) == {OK} else 503)


def _database() -> str:
    try:
        Queue.objects.exists()
    except DatabaseError as error:
        logger.warning("health: database: %s", error)
        return gettext("The database does not answer.")
    return OK


def _broker() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=_BROKER_TIMEOUT_S,
            socket_connect_timeout=_BROKER_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        ) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        logger.warning("health: broker: %s", error)
        return gettext("Redis does not answer.")
    return OK


def _worker() -> str:
    return OK if online_workers().exists() else gettext("No worker is online.")
