"""A device of a worker, and its lease."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Device(models.Model):
    """One GPU, or a host's CPU as one device. `attempt` is the lease: null means free."""

    worker = models.ForeignKey("Worker", on_delete=models.CASCADE, related_name="devices")
    kind = models.CharField(max_length=10)
    index = models.PositiveSmallIntegerField(default=0)
    uuid = models.CharField(max_length=100, blank=True)
    name = models.CharField(_("name"), max_length=200)
    memory_bytes = models.BigIntegerField()
    compute_capability = models.CharField(_("compute capability"), max_length=10, blank=True)  # "9.0"; GPUs only
    attempt = models.ForeignKey("Attempt", null=True, blank=True, on_delete=models.SET_NULL, related_name="devices")
    is_present = models.BooleanField(default=True)  # False once its host no longer reports it
    foreign_use = models.CharField(_("used by others"), max_length=200, blank=True)  # whose processes are on it
    # What its host last read of it: see `contract.facts.DeviceSample`.
    sample = models.JSONField(default=dict)
    sampled_at = models.DateTimeField(null=True, blank=True)
    quarantine_reason = models.CharField(_("quarantine"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("device")
        verbose_name_plural = _("devices")
        ordering = ["worker", "kind", "index"]
        constraints = [models.UniqueConstraint(fields=["worker", "kind", "index"], name="one_row_per_device")]

    def __str__(self) -> str:
        return f"{self.kind}:{self.index} {self.name}"

    @property
    def is_in_service(self) -> bool:
        """Whether it may be leased at all; a device that runs a job is in service too."""
        return self.is_present and not self.quarantine_reason and not self.foreign_use


class DeviceUse(models.Model):
    """Five minutes of one device, summed up over the samples that its host took."""

    device = models.ForeignKey("Device", on_delete=models.CASCADE, related_name="uses")
    began_at = models.DateTimeField()
    num_samples = models.PositiveIntegerField(default=0)
    utilization_sum_percent = models.FloatField(default=0)
    most_memory_bytes = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("device use")
        verbose_name_plural = _("device use")
        ordering = ["device", "began_at"]
        constraints = [models.UniqueConstraint(fields=["device", "began_at"], name="one_row_per_five_minutes")]

    def __str__(self) -> str:
        return f"device {self.device_id} at {self.began_at:%Y-%m-%d %H:%M}"
