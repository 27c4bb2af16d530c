"""A saved view: all that a page's address says of what it shows, under a name."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ViewPage(models.TextChoices):
    """The pages that can be kept."""

    LIST = "list", _("runs list")
    COMPARISON = "comparison", _("comparison")


class SavedView(models.Model):
    """A named address of a page. Its owner sees it; shared, the whole team does."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    team = models.ForeignKey("Team", on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(_("name"), max_length=100)
    page = models.CharField(_("page"), max_length=16, choices=ViewPage, default=ViewPage.LIST)
    query = models.CharField(max_length=4000, blank=True)  # as in the page's address, without the place in a list
    is_shared = models.BooleanField(_("shared with the team"), default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # kept, so that a deletion can be undone

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name
