"""The form of a search: what may vary, and what the answer must keep to."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.plan import MOST_REPEATS
from jobs.contract.search_space import AXIS_TITLES
from jobs.messages import option_title

_GIB = 2**30


class SearchForm(forms.Form):
    """Axes to tick, a memory budget, and how sure the end is to be."""

    name = forms.CharField(label=_("Name"), required=False, max_length=150)
    axes = forms.MultipleChoiceField(
        label=_("What may vary"),
        widget=forms.CheckboxSelectMultiple(attrs={"class": "check"}),
        error_messages={"required": _("Tick at least one.")},
    )
    num_steps = forms.IntegerField(
        label=_("Steps of a full run"),
        min_value=20,
        max_value=1_000_000_000,
        help_text=_("Screening runs take a fifth of them. Let a full run last long beside its start."),
    )
    memory_gib = forms.FloatField(
        label=_("Memory budget (GiB)"),
        min_value=0.01,
        required=False,
        help_text=_("What PyTorch may reserve of each GPU, or the process hold on a CPU; empty sets none."),
    )
    loss_margin = forms.FloatField(
        label=_("Losses within this count as equal"),
        min_value=1e-9,
        required=False,
        help_text=_("Empty takes the margin that the first run of this work fixed."),
    )
    num_repeats = forms.IntegerField(label=_("Repeats in the finals"), min_value=2, max_value=MOST_REPEATS, initial=5)

    def __init__(self, *args: Any, possible: dict[str, list[dict[str, Any]]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._possible = possible
        axes = self.fields["axes"]
        assert isinstance(axes, forms.MultipleChoiceField)  # noqa: S101 declared above
        axes.choices = [(name, _choice(name, values)) for name, values in possible.items()]
        for name in ("name", "num_steps", "memory_gib", "loss_margin", "num_repeats"):
            self.fields[name].widget.attrs["class"] = "input"

    @property
    def chosen_axes(self) -> dict[str, list[dict[str, Any]]]:
        """The ticked axes with their values."""
        return {name: values for name, values in self._possible.items() if name in self.cleaned_data["axes"]}

    @property
    def memory_budget_bytes(self) -> int | None:
        """The budget in bytes, None where there is none."""
        size = self.cleaned_data["memory_gib"]
        return round(size * _GIB) if size else None


def _choice(name: str, values: list[dict[str, Any]]) -> str:
    return f"{gettext(AXIS_TITLES[name])}: {'; '.join(map(_in_words, values))}"


def _in_words(changes: dict[str, Any]) -> str:
    """A value by itself where one field changes, else each field with its value."""
    if not changes:
        return gettext("as it is")
    shown = {name: gettext("yes") if value is True else str(value) for name, value in changes.items()}
    if len(shown) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{option_title(name)} {value}" for name, value in shown.items())
