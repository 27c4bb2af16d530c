"""A worker: one host that takes jobs from its queues."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.contract.catalog import Catalog
from jobs.contract.facts import HostFacts
from jobs.models.queue import Queue


class Worker(models.Model):
    """One host by its persistent id, with what its engine reported about it."""

    host_id = models.UUIDField(unique=True)
    hostname = models.CharField(_("host name"), max_length=200)
    pid = models.PositiveIntegerField(null=True)
    queues = models.ManyToManyField(Queue, related_name="workers")
    version = models.CharField(_("engine version"), max_length=50, blank=True)
    facts = models.JSONField(default=dict)
    catalog = models.JSONField(default=dict)
    is_draining = models.BooleanField(_("draining"), default=False)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(db_index=True)
    stopped_at = models.DateTimeField(null=True, blank=True)  # set when it said good-bye
    forgotten_at = models.DateTimeField(null=True, blank=True)  # staff took it off the pages; it returns by registering

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ["hostname"]

    def __str__(self) -> str:
        return self.hostname

    @property
    def host_facts(self) -> HostFacts:
        """Its facts as the contract's type."""
        return HostFacts.model_validate(self.facts)

    @property
    def host_catalog(self) -> Catalog:
        """Its catalog as the contract's type."""
        return Catalog.model_validate(self.catalog)
