"""Charts of the fleet and of its queues: waits, outcomes, use of the devices."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from jobs.figures import outcomes_figure, use_figure, waits_figure
from jobs.models import Queue
from jobs.selectors.use import Span, read_outcomes, read_use, read_waits
from jobs.views.access import staff_only


@require_GET
@staff_only
def fleet_use(request: HttpRequest) -> HttpResponse:
    """The page; its script fetches the figures."""
    return render(request, "fleet/use.html", {"queues": Queue.objects.all()})


@require_GET
@staff_only
def fleet_figures(request: HttpRequest) -> JsonResponse:
    """Every figure of the page, for `?span=day|week` and, where one is named, one queue."""
    span = Span.WEEK if request.GET.get("span") == Span.WEEK else Span.DAY
    name = request.GET.get("queue", "")
    queue = get_object_or_404(Queue, name=name) if name else None
    use = read_use(span)
    return JsonResponse(
        {
            "waits": waits_figure(read_waits(span, queue)),
            "outcomes": outcomes_figure(read_outcomes(span, queue)),
            "leased": use_figure(use, "leased"),
            "busy": use_figure(use, "busy"),
        }
    )
