"""The reader's own account: teams, API tokens."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from jobs.forms import TokenForm
from jobs.services.tokens import create_token, revoke_token
from jobs.views.access import person


@require_GET
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """The account's page."""
    return _render(request, TokenForm())


@require_POST
@never_cache
def token_create(request: HttpRequest) -> HttpResponse:
    """Make a token and show its secret, this once: it is in no redirect, no session and no log."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _render(request, form, status=422)
    _token, secret = create_token(person(request), form.cleaned_data["name"])
    return _render(request, TokenForm(), secret=secret, status=201)


@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Make one of the reader's tokens worthless."""
    token = get_object_or_404(person(request).api_tokens, pk=pk)
    revoke_token(token)
    messages.success(request, gettext("The token “%(name)s” is revoked.") % {"name": token.name or token.prefix})
    return redirect("account")


def _render(request: HttpRequest, form: TokenForm, secret: str = "", status: int = 200) -> HttpResponse:
    user = person(request)
    context = {
        "form": form,
        "secret": secret,
        "tokens": user.api_tokens.filter(revoked_at=None),
        "teams": user.teams.all(),
    }
    return render(request, "account/account.html", context, status=status)
