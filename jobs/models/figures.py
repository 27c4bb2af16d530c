"""The figures that runs are ranked, sorted and searched by, as columns."""

from django.db import models

from jobs.contract.metrics import Summary


class Figures(models.Model):
    """Columns for the ranked figures of `contract.metrics.Summary`; null where a run has none."""

    steady_step_time_ms = models.FloatField(null=True, blank=True)
    samples_per_s = models.FloatField(null=True, blank=True)
    first_step_s = models.FloatField(null=True, blank=True)
    train_s = models.FloatField(null=True, blank=True)
    final_train_loss = models.FloatField(null=True, blank=True)
    final_eval_loss = models.FloatField(null=True, blank=True)
    eval_accuracy = models.FloatField(null=True, blank=True)
    peak_rss_bytes = models.BigIntegerField(null=True, blank=True)
    peak_allocated_bytes = models.BigIntegerField(null=True, blank=True)

    class Meta:
        abstract = True


_COLUMNS = {field.name for field in Figures._meta.local_fields}
RANKED_METRICS = [name for name in Summary.model_fields if name in _COLUMNS]
