"""What staff set about a queue."""

from typing import Any

from django import forms

from jobs.models import Queue
from jobs.services.queues import SETTINGS


class QueueForm(forms.ModelForm):  # type: ignore[type-arg]
    """The settings of one queue, and why they are changed. Saving is the service's part, which notes it."""

    reason = forms.CharField(required=False, max_length=500)

    class Meta:
        model = Queue
        fields = SETTINGS

    def settings(self) -> dict[str, Any]:
        """The settings as they were filled in."""
        return {name: self.cleaned_data[name] for name in SETTINGS}
