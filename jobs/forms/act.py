"""What a person does to jobs, one or many, as the page's one dialog sends it."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from jobs.models import Queue
from jobs.services.actions import MOST_JOBS, Act, Order
from jobs.services.tags import split_tags

_NEEDED = {Act.PRIORITY: "priority", Act.MOVE: "queue", Act.TAG: "tags", Act.UNTAG: "tags"}


class ActForm(forms.Form):
    """An act, the jobs that it is for, and what it needs."""

    act = forms.ChoiceField(choices=[(act.value, act.value) for act in Act])
    jobs = forms.CharField()
    reason = forms.CharField(required=False, max_length=500)
    priority = forms.IntegerField(label=_("Priority"), required=False)
    queue = forms.ModelChoiceField(Queue.objects.all(), label=_("Queue"), required=False, to_field_name="name")
    time_limit_s = forms.FloatField(label=_("Time limit"), required=False)
    tags = forms.CharField(label=_("Tags"), required=False, max_length=1000)
    after = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def clean_jobs(self) -> list[int]:
        """The numbers of the jobs."""
        parts = [part.strip() for part in self.cleaned_data["jobs"].split(",") if part.strip()]
        if not parts or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            raise forms.ValidationError(_("Tick the jobs first."))
        if len(parts) > MOST_JOBS:
            raise forms.ValidationError(_("At most %(max)s jobs at once."), params={"max": MOST_JOBS})
        return [int(part) for part in parts]

    def clean(self) -> dict[str, Any]:
        """A priority or a queue must be given where it is what the act is about."""
        data: dict[str, Any] = super().clean() or {}
        needed = _NEEDED.get(Act(data["act"]) if data.get("act") else Act.CANCEL)
        if needed and data.get(needed) in (None, "") and needed not in self.errors:
            self.add_error(needed, _("This field is required."))
        return data

    @property
    def order(self) -> Order:
        """The act as the services take it."""
        data = self.cleaned_data
        return Order(
            act=Act(data["act"]),
            reason=data["reason"],
            priority=data["priority"] or 0,
            queue=data["queue"],
            time_limit_s=data["time_limit_s"],
            tags=tuple(split_tags(data["tags"])),
            after=data["after"],
        )
