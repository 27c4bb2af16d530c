"""Addresses."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path, reverse_lazy
from django.utils.functional import lazy
from django.views.generic import RedirectView

from jobs.api import api
from jobs.health import healthz, livez
from jobs.prometheus import metrics
from jobs.views.access import admin_sign_in

handler500 = "webapp.faults.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("jobs.urls")),
    path("sign-in/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("sign-out/", auth.LogoutView.as_view(next_page="login"), name="logout"),
    path(
        "account/password/",
        auth.PasswordChangeView.as_view(
            template_name="account/password.html", success_url=reverse_lazy("password-changed")
        ),
        name="password-change",
    ),
    path(
        "account/password/changed/",
        auth.PasswordChangeDoneView.as_view(template_name="account/password_changed.html"),
        name="password-changed",
    ),
    path("admin/login/", admin_sign_in),  # one page to sign in, also for the administration
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    # Pages without an icon of their own (the admin's) make browsers ask for this one.
    path("favicon.ico", login_not_required(RedirectView.as_view(url=lazy(static, str)("img/favicon.svg")))),
    path("livez", livez),
    path("healthz", healthz),
    path("metrics", metrics),
]
