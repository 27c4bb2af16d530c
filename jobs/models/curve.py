"""Stored curves: as flushes while a run lives, as blocks once it has ended and been compacted."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class CurveChunk(models.Model):
    """All points of all series of one flush, or of several; `jobs.curves` packs and unpacks `payload`."""

    attempt = models.ForeignKey("Attempt", on_delete=models.CASCADE, related_name="chunks")
    sequence = models.PositiveIntegerField()  # of the last flush in it
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


class CurveBlock(models.Model):
    """A stretch of one series at up to three levels; `jobs.curve_blocks` encodes and decodes them.

    The smallest level stands first: SQLite reads a row from its beginning, and only as far as it must.
    """

    attempt = models.ForeignKey("Attempt", on_delete=models.CASCADE, related_name="blocks", db_index=False)
    series = models.TextField()
    number = models.PositiveIntegerField()  # from 0, along the series
    first_step = models.BigIntegerField()
    last_step = models.BigIntegerField()
    last_wall_s = models.FloatField()
    num_points = models.PositiveIntegerField()  # recorded in it, whether or not they are kept
    coarse = models.BinaryField(null=True)
    medium = models.BinaryField(null=True)
    full = models.BinaryField(null=True)  # null where the points of old runs are not kept

    class Meta:
        verbose_name = _("curve block")
        verbose_name_plural = _("curve blocks")
        ordering = ["attempt", "series", "number"]
        constraints = [models.UniqueConstraint(fields=["attempt", "series", "number"], name="one_block_per_number")]

    def __str__(self) -> str:
        return f"attempt {self.attempt_id}, {self.series}, block {self.number}"
