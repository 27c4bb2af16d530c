"""Tags: free labels that people put on jobs."""

from django.db import models
from django.utils.translation import gettext_lazy as _

MAX_TAG_LENGTH = 50


class JobTag(models.Model):
    """One label on one job."""

    job = models.ForeignKey("Job", on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(_("name"), max_length=MAX_TAG_LENGTH)

    class Meta:
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["job", "name"], name="one_tag_per_name")]
        indexes = [models.Index(fields=["name", "job"], name="tag_by_name")]

    def __str__(self) -> str:
        return self.name


class TeamTag(models.Model):
    """A label that some job of a team has: what a menu offers, without reading the tags of a million jobs."""

    team = models.ForeignKey("Team", on_delete=models.CASCADE, related_name="known_tags")
    name = models.CharField(_("name"), max_length=MAX_TAG_LENGTH)

    class Meta:
        verbose_name = _("tag of a team")
        verbose_name_plural = _("tags of a team")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_known_tag_per_team")]

    def __str__(self) -> str:
        return self.name
