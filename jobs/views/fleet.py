"""Queues and workers, for staff: what they do now, and what staff do to them."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from jobs.forms import PauseForm, ReasonForm
from jobs.live import fleet_version, read_open_jobs
from jobs.models import Device, Queue, User, Worker
from jobs.selectors.fleet import queue_states, totals, worker_states
from jobs.services.devices import quarantine_device, release_device
from jobs.services.queues import pause_queue, resume_queue
from jobs.services.workers import drain_worker, forget_worker, undrain_worker
from jobs.views.access import person, staff_only
from jobs.views.doing import Undo, attempt_to, back, say_done


@require_GET
@staff_only
def fleet(request: HttpRequest) -> HttpResponse:
    """What waits, what runs, and who does it; asked for by htmx, only its living part."""
    version = fleet_version(read_open_jobs())
    queues, workers = queue_states(), worker_states()
    context = {"version": version, "queues": queues, "workers": workers, "totals": totals(queues, workers)}
    if request.headers.get("HX-Request"):
        return render(request, "fleet/_fleet.html", context | {"is_part": True})
    return render(request, "fleet/fleet.html", context)


@require_POST
@staff_only
def queue_pause(request: HttpRequest, name: str) -> HttpResponse:
    """Let nothing more be claimed from a queue, and say why."""
    queue, form = get_object_or_404(Queue, name=name), PauseForm(request.POST)
    if form.is_valid():
        pause_queue(queue, person(request), form.cleaned_data["reason"])
        done = gettext("Queue “%(name)s” is paused.") % {"name": queue.name}
        say_done(request, done, Undo(reverse("queue-resume", args=[queue.name])))
    else:
        messages.error(request, gettext("Say why the queue is paused: everybody whose job waits there reads it."))
    return back(request, "fleet")


@require_POST
@staff_only
def queue_resume(request: HttpRequest, name: str) -> HttpResponse:
    """Let a queue's jobs be claimed again."""
    queue = get_object_or_404(Queue, name=name)
    resume_queue(queue, person(request))
    messages.success(request, gettext("Queue “%(name)s” runs again.") % {"name": queue.name})
    return back(request, "fleet")


# What staff do to a worker: the service, and the sentence once it is done.
_WORKER_ACTIONS = {
    "drain": (drain_worker, _("%(host)s takes no new jobs.")),
    "resume": (undrain_worker, _("%(host)s takes jobs again.")),
    "forget": (forget_worker, _("%(host)s is forgotten. It comes back by itself when it starts again.")),
}


@require_POST
@staff_only
def worker_action(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Drain a host, let it take jobs again, or forget a dead one."""
    if action not in _WORKER_ACTIONS:
        raise Http404
    worker, form = get_object_or_404(Worker, pk=pk), ReasonForm(request.POST)
    service, done = _WORKER_ACTIONS[action]
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    undo = Undo(reverse("worker-action", args=[pk, "resume"])) if action == "drain" else None
    attempt_to(request, lambda: service(worker, person(request), reason), done % {"host": worker.hostname}, undo)
    return back(request, "fleet")


# What staff do to a device: the service, and the sentence once it is done.
_DEVICE_ACTIONS: dict[str, tuple[Callable[[Device, User, str], None], Promise]] = {
    "quarantine": (
        lambda device, by, reason: quarantine_device(device, reason, by),
        _("Nothing more starts on %(device)s of %(host)s."),
    ),
    "release": (release_device, _("%(device)s of %(host)s is in service again.")),
}


@require_POST
@staff_only
def device_action(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Take a device out of service, or put it back."""
    if action not in _DEVICE_ACTIONS:
        raise Http404
    device, form = get_object_or_404(Device.objects.select_related("worker"), pk=pk), ReasonForm(request.POST)
    service, done = _DEVICE_ACTIONS[action]
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    places = {"device": f"{device.kind}:{device.index}", "host": device.worker.hostname}
    attempt_to(request, lambda: service(device, person(request), reason), done % places)
    return back(request, "fleet")
