"""The audit trail, for staff."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from jobs.forms import HistoryFilter
from jobs.models import AuditAction
from jobs.selectors.audit import page_of_entries, visible_entries
from jobs.views.access import person, staff_only


@require_GET
@staff_only
def fleet_history(request: HttpRequest) -> HttpResponse:
    """Who did what when, newest first."""
    filters = HistoryFilter.from_query(request.GET)
    page = page_of_entries(filters.apply(visible_entries(person(request))), filters.before)
    return render(request, "fleet/history.html", {"filters": filters, "page": page, "actions": AuditAction.choices})
