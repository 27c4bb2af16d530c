"""What a spec would need, asked of a queue's workers and kept, so that the same question is answered once."""

import hashlib
import json

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.contract.estimates import Estimate
from jobs.contract.facts import ENGINE_VERSION
from jobs.contract.spec import TrainSpec
from jobs.models.queue import Queue


def estimate_key(spec: TrainSpec, queue: Queue) -> str:
    """Names the question what a spec needs on a queue's hosts."""
    asked = [ENGINE_VERSION, queue.pk, spec.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class SpecEstimate(models.Model):
    """One spec on one queue's hosts. `answer` is `contract.estimates.Estimate`; null until a worker has given it."""

    key = models.CharField(max_length=64, unique=True)
    queue = models.ForeignKey("Queue", on_delete=models.CASCADE, related_name="estimates")
    spec = models.JSONField()
    wanted_at = models.DateTimeField(db_index=True)  # when somebody last looked for the answer
    taken_at = models.DateTimeField(null=True, blank=True)  # when a worker began with it
    answer = models.JSONField(null=True, blank=True)
    problem = models.TextField(blank=True)  # the sentence of a worker that could not tell

    class Meta:
        verbose_name = _("estimate")
        verbose_name_plural = _("estimates")

    def __str__(self) -> str:
        return f"{self.spec['model']} / {self.spec['dataset']}"

    @property
    def told(self) -> Estimate | None:
        """The answer as the contract's type."""
        return None if self.answer is None else Estimate.model_validate(self.answer)

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.answer is not None or bool(self.problem)
