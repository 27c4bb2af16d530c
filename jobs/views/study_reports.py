"""A study as one page to share: for its team, for whoever has the link, and as a file that needs nothing else."""

import base64
import hashlib
import re
from functools import cache, wraps
from pathlib import Path
from typing import Any, Protocol

from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.figures.study import study_figures
from jobs.models import Study
from jobs.selectors.studies import environment_of, view_study, visible_studies
from jobs.selectors.study_words import headline
from jobs.services.study_shares import share_study, unshare_study
from jobs.views.ablation import shown_ablation
from jobs.views.access import person
from jobs.views.rows import chips
from jobs.views.studies import act_on_study, shown_left_out, shown_row, unread_words

# What the file carries within itself, in the order in which it is run.
_SCRIPTS = ("js/theme.js", "plotly/plotly.min.js", "js/report.js")


class _ShownByToken(Protocol):
    def __call__(self, request: HttpRequest, token: str) -> HttpResponse: ...


def _for_whoever_has_the_link(view: _ShownByToken) -> _ShownByToken:
    """No sign-in; and nobody else learns of the address by a cache, a search engine or a referrer."""

    @wraps(view)
    def open_to_all(request: HttpRequest, token: str) -> HttpResponse:
        response = view(request, token)
        response["Cache-Control"] = "no-store"
        response["X-Robots-Tag"] = "noindex, nofollow"
        response["Referrer-Policy"] = "no-referrer"
        return response

    return login_not_required(open_to_all)


@require_GET
def study_report(request: HttpRequest, pk: int) -> HttpResponse:
    """The report for who may see the study."""
    found = get_object_or_404(visible_studies(person(request)), pk=pk)
    return render(
        request, "studies/report.html", _report(found) | {"file_url": reverse("study-report-file", args=[pk])}
    )


@require_GET
def study_report_file(request: HttpRequest, pk: int) -> HttpResponse:
    """The report as a file."""
    return _file(get_object_or_404(visible_studies(person(request)), pk=pk))


@require_GET
@_for_whoever_has_the_link
def report(request: HttpRequest, token: str) -> HttpResponse:
    """The report for whoever has the link."""
    return render(
        request, "studies/report.html", _report(_shared(token)) | {"file_url": reverse("report-file", args=[token])}
    )


@require_GET
@_for_whoever_has_the_link
def report_file(request: HttpRequest, token: str) -> HttpResponse:
    """The shared report as a file."""
    return _file(_shared(token))


@require_POST
def study_share(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link, or show the one that there is."""

    def share(found: Study) -> str:
        share_study(found, person(request))
        return _("Whoever has the link can read the report now.")

    return act_on_study(request, pk, share)


@require_POST
def study_unshare(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the link back."""

    def unshare(found: Study) -> str:
        unshare_study(found, person(request))
        return _("The link leads nowhere now.")

    return act_on_study(request, pk, unshare)


def _shared(token: str) -> Study:
    return get_object_or_404(Study.objects.select_related("owner", "team"), share_token=token)


def _report(study: Study) -> dict[str, Any]:
    """All that the report shows."""
    view = view_study(study)
    return {
        "view": view,
        "study": study,
        "headline": headline(view),
        "ablation": shown_ablation(view),
        "rows": [shown_row(row) for row in view.rows],
        "left_out": shown_left_out(study),
        "unread": unread_words(view.unread),
        "base": chips(view.plan.base),
        "environment": environment_of(study),
        "figures": study_figures(view),
    }


def _file(study: Study) -> HttpResponse:
    """One file with its style, its scripts and its charts within; its own policy lets it load nothing."""
    scripts = [_asset(path) for path in _SCRIPTS]
    within = {
        "style": _safe(_asset("css/pitwall.css")),
        "scripts": [_safe(text) for text in scripts],
        "policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src "
        + " ".join(_source_of(text) for text in scripts),
    }
    response = HttpResponse(render_to_string("studies/report_file.html", _report(study) | within))
    name = re.sub(r"[^a-z0-9]+", "-", study.name.lower()).strip("-")[:60] or "study"
    response["Content-Disposition"] = f'attachment; filename="pitwall-{name}-{study.pk}.html"'
    return response


@cache
def _asset(path: str) -> str:
    """One of our own static files, as text."""
    found = finders.find(path)
    assert isinstance(found, str)  # noqa: S101 our own file
    return Path(found).read_text(encoding="utf-8")


def _source_of(script: str) -> str:
    """A script as a policy names it: by the hash of its text."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _safe(text: str) -> SafeString:
    return mark_safe(text)  # noqa: S308 our own file
