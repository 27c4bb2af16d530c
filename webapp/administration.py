"""The administration for staff: unfold's look over Django's admin, under a policy of scripts of its own."""

from collections.abc import Callable
from typing import Any

from axes.apps import AppConfig as AxesConfig
from csp.constants import SELF, UNSAFE_EVAL
from csp.decorators import csp_update
from django.contrib.admin.apps import AdminConfig
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class AdministrationConfig(AdminConfig):
    """Django's admin with a site of our own."""

    default_site = "webapp.administration_site.AdministrationSite"


class SignInAttemptsConfig(AxesConfig):  # type: ignore[misc]
    """django-axes, named after what it stores and not after itself."""

    verbose_name = _("Sign-in attempts")


def allow_alpine(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a page evaluate its attributes as scripts, which Alpine, in unfold's pages, cannot do without."""
    allowed: Callable[..., Any] = csp_update({"script-src": [SELF, UNSAFE_EVAL]})(view)
    return allowed


def _item(title: Promise, icon: str, address: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(address)}


def _live(title: Promise, icon: str, address: str) -> dict[str, Any]:
    """A page outside of the administration, and so never the one that is shown."""
    return _item(title, icon, address) | {"active": False}


def _stored(title: Promise, icon: str, model: str) -> dict[str, Any]:
    return _item(title, icon, f"admin:jobs_{model}_changelist")


# The blues of the stylesheet's accent, from its soft tint to its strongest shade.
_BLUES = [
    "#f3f8fe",
    "#e6effb",
    "#c8dcf6",
    "#9cc3f0",
    "#6fb1ff",
    "#2f7fe0",
    "#0b5cc4",
    "#084a9f",
    "#083c80",
    "#062d61",
    "#041d40",
]
_SHADES = ["50", "100", "200", "300", "400", "500", "600", "700", "800", "900", "950"]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Pitwall",
    "SITE_HEADER": "Pitwall",
    "SITE_SUBHEADER": _("Administration"),
    "SITE_URL": reverse_lazy("job-list"),
    "SITE_ICON": lambda _request: static("img/favicon.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("img/favicon.svg")}],
    "COLORS": {"primary": dict(zip(_SHADES, _BLUES, strict=True))},
    "BORDER_RADIUS": "6px",
    "SIDEBAR": {
        "show_search": True,
        "navigation": [
            {
                "title": _("Live"),
                "items": [
                    _live(_("Jobs"), "list", "job-list"),
                    _live(_("Fleet"), "dns", "fleet"),
                    _live(_("Use"), "monitoring", "fleet-use"),
                    _live(_("History"), "history", "fleet-history"),
                ],
            },
            {
                "title": _("People"),
                "separator": True,
                "items": [
                    _stored(_("Users"), "person", "user"),
                    _stored(_("Teams"), "group", "team"),
                    _stored(_("API tokens"), "key", "apitoken"),
                    _item(_("Failed sign-ins"), "lock", "admin:axes_accessattempt_changelist"),
                ],
            },
            {
                "title": _("Stored"),
                "separator": True,
                "items": [
                    _stored(_("Queues"), "low_priority", "queue"),
                    _stored(_("Workers"), "computer", "worker"),
                    _stored(_("Devices"), "memory", "device"),
                    _stored(_("Jobs"), "task", "job"),
                    _stored(_("Attempts"), "replay", "attempt"),
                    _stored(_("Audit trail"), "fact_check", "auditentry"),
                ],
            },
        ],
    },
}
