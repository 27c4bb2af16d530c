"""Stored curves: packed arrays, a row per flush."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class CurveChunk(models.Model):
    """All points of all series of one flush; `jobs.curves` packs and unpacks `payload`."""

    attempt = models.ForeignKey("Attempt", on_delete=models.CASCADE, related_name="chunks")
    sequence = models.PositiveIntegerField()
    first_step = models.BigIntegerField()
    last_step = models.BigIntegerField()
    num_points = models.PositiveIntegerField()
    payload = models.BinaryField()

    class Meta:
        verbose_name = _("curve chunk")
        verbose_name_plural = _("curve chunks")
        ordering = ["attempt", "sequence"]
        constraints = [models.UniqueConstraint(fields=["attempt", "sequence"], name="one_chunk_per_sequence")]

    def __str__(self) -> str:
        return f"attempt {self.attempt_id}, chunk {self.sequence}"
