"""The administration's site, which can be imported only once the apps are loaded."""

from collections.abc import Callable
from typing import Any

from unfold.sites import UnfoldAdminSite

from webapp.administration import allow_alpine


class AdministrationSite(UnfoldAdminSite):  # type: ignore[misc]
    """Every page of it may run Alpine."""

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """A view of the administration, for staff."""
        return allow_alpine(super().admin_view(view, cacheable))
