"""Estimates: asked for by forms and the API, given by a worker that measures nothing at that moment."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from jobs.contract.estimates import Estimate
from jobs.contract.spec import TrainSpec
from jobs.models import Device, Queue, SpecEstimate
from jobs.models.estimate import estimate_key

_WANTED_FOR = timedelta(seconds=10)  # who still waits for an answer asks again every second
_TAKEN_FOR = timedelta(minutes=2)  # a worker that has not answered by then has died over it
_KEPT_FOR = timedelta(days=30)


def want_estimate(spec: TrainSpec, queue: Queue) -> SpecEstimate:
    """The estimate for this spec, answered or not; asking again says that it is still wanted."""
    now = timezone.now()
    estimate, is_new = SpecEstimate.objects.update_or_create(
        key=estimate_key(spec, queue),
        defaults={"wanted_at": now},
        create_defaults=_new(spec, queue) | {"wanted_at": now},
    )
    if is_new:
        SpecEstimate.objects.filter(wanted_at__lt=now - _KEPT_FOR).delete()
    return estimate


def still_want(key: str) -> SpecEstimate | None:
    """The estimate that was asked for before, still wanted; None where nobody ever asked."""
    SpecEstimate.objects.filter(key=key).update(wanted_at=timezone.now())
    return SpecEstimate.objects.filter(key=key).first()


def _new(spec: TrainSpec, queue: Queue) -> dict[str, object]:
    return {"queue": queue, "spec": spec.model_dump(mode="json")}


def take_wanted(worker_id: int) -> SpecEstimate | None:
    """The question that was asked last and is this worker's to answer; None while an attempt holds its devices.

    An estimate keeps a core busy for some seconds, which would be measured in the job beside it.
    """
    if Device.objects.filter(worker=worker_id).exclude(attempt=None).exists():
        return None
    now = timezone.now()
    open_ones = SpecEstimate.objects.filter(
        Q(taken_at=None) | Q(taken_at__lt=now - _TAKEN_FOR),
        answer__isnull=True,
        problem="",
        queue__workers=worker_id,
        wanted_at__gte=now - _WANTED_FOR,
    )
    for estimate in open_ones.order_by("-wanted_at")[:5]:
        if open_ones.filter(pk=estimate.pk).update(taken_at=now):  # else another worker was faster
            return estimate
    return None


def store_answer(estimate: SpecEstimate, answer: Estimate) -> None:
    """What the worker's engine said."""
    SpecEstimate.objects.filter(pk=estimate.pk).update(answer=answer.model_dump(mode="json"), problem="")


def store_problem(estimate: SpecEstimate, sentence: str) -> None:
    """Why the worker's engine could not tell."""
    SpecEstimate.objects.filter(pk=estimate.pk).update(problem=sentence)
