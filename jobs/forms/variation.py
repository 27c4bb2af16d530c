"""What varies in a study, as forms ask it: fields with their values, configurations line by line, repeats."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.errors import InvalidSpec
from jobs.contract.findings import Finding
from jobs.contract.options import metadata
from jobs.contract.plan import MOST_REPEATS, Arrangement, Axis, Configuration, Extension, StudyPlan, expand, extend
from jobs.contract.spec import TrainSpec
from jobs.forms.annotations import choices_of, plain_type
from jobs.forms.spec_form import GROUP_TITLES
from jobs.messages import translate

NUM_AXES = 4

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class VariationForm(forms.Form):
    """Up to four fields that vary, and configurations written down one a line."""

    num_repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=1,
        max_value=MOST_REPEATS,
        help_text=_(
            "Of each configuration, every one with a seed of its own. Verdicts need two; five make them sharp."
        ),
    )
    configurations = forms.CharField(
        label=_("Configurations, one a line"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_("Each as what it changes about the base, such as: precision=bf16-mixed, compile_mode=default"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for number in range(1, NUM_AXES + 1):
            choice = forms.ChoiceField(label=_("What varies"), choices=_axis_choices(), required=False)
            choice.widget.attrs["class"] = "select"
            values = forms.CharField(label=_("Values"), required=False, max_length=1000)
            values.widget.attrs |= {"class": "input", "autocomplete": "off"}
            self.fields |= {f"axis_{number}": choice, f"values_{number}": values}
        self.fields["num_repeats"].widget.attrs["class"] = "input"
        self.fields["configurations"].widget.attrs["class"] = "input mono"

    @property
    def axes(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """The rows of what varies."""
        return [(self[f"axis_{number}"], self[f"values_{number}"]) for number in range(1, NUM_AXES + 1)]

    def read_axes(self) -> list[Axis]:
        """The fields that vary; what is missing is told beside it."""
        axes = []
        for number in range(1, NUM_AXES + 1):
            field, values = self.cleaned_data.get(f"axis_{number}"), self.cleaned_data.get(f"values_{number}", "")
            parts = [part.strip() for part in values.split(",") if part.strip()]
            if field and not parts:
                self.add_error(f"values_{number}", gettext("Say which values it takes, separated by commas."))
            elif parts and not field:
                self.add_error(f"axis_{number}", gettext("Say what takes these values."))
            elif field:
                axes.append(Axis(field=field, values=[_read_value(field, part) for part in parts]))
        return axes

    def read_configurations(self) -> list[dict[str, Any]]:
        """The configurations that were written down; a line that cannot be read is told."""
        found = []
        for line in filter(None, map(str.strip, self.cleaned_data.get("configurations", "").splitlines())):
            pairs = [part.partition("=") for part in line.split(",")]
            if all(sign and value.strip() for _name, sign, value in pairs):
                found.append({name.strip(): _read_value(name.strip(), value.strip()) for name, _sign, value in pairs})
            else:
                text = gettext("“%(line)s” is not of the form name=value, name=value.")
                self.add_error("configurations", text % {"line": line[:80]})
        return found

    @property
    def variation_errors(self) -> list[str]:
        """What is wrong with what varies, each sentence once."""
        names = [*VariationForm.base_fields, *(field.name for row in self.axes for field in row)]
        return list(dict.fromkeys(str(error) for name in names for error in self.errors.get(name, [])))

    def tell(self, findings: Iterable[Finding]) -> None:
        """Each finding beside the axis that it is about; what is about all of them beside the first."""
        for finding in findings:
            self.add_error(self._place_of(finding.field), translate(finding))

    def _place_of(self, field: str) -> str:
        if field in self.fields and field in VariationForm.base_fields:
            return field
        chosen = {self.cleaned_data.get(f"axis_{number}"): f"values_{number}" for number in range(1, NUM_AXES + 1)}
        alone = "configurations" if self.cleaned_data.get("configurations") else "values_1"
        return chosen.get(field, alone)


class ExtensionForm(VariationForm):
    """What comes on top of a study that is there."""

    def __init__(self, *args: Any, plan: StudyPlan, **kwargs: Any) -> None:
        super().__init__(*args, initial={"num_repeats": plan.num_repeats}, **kwargs)
        self._plan = plan
        self.fields["num_repeats"].label = _("Repeats in all")
        self.extension = Extension()

    def clean(self) -> dict[str, Any]:
        """Read it against the study's plan."""
        data = self.cleaned_data
        axes, configurations = self.read_axes(), self.read_configurations()
        if self.errors:
            return data
        self.extension = Extension(num_repeats=data["num_repeats"], axes=axes, configurations=configurations)
        try:
            expand(extend(self._plan, self.extension))
        except InvalidSpec as error:
            self.tell(error.findings)
        return data


def initial_variation(plan: StudyPlan) -> dict[str, Any]:
    """The form's values that ask for the same plan; more axes than it has rows become lines.

    A plan that makes nothing to compare, because what it varied exists no more, gives none.
    """
    initial: dict[str, Any] = {"num_repeats": plan.num_repeats, "arrangement": plan.arrangement.value}
    initial["until_sure"] = plan.until_sure
    if len(plan.axes) > NUM_AXES or plan.arrangement is Arrangement.LIST:
        return initial | {"configurations": "\n".join(_line(one.changes) for one in _others(plan))}
    for number, axis in enumerate(plan.axes, start=1):
        initial |= {f"axis_{number}": axis.field, f"values_{number}": ", ".join(map(_text, axis.values))}
    return initial | {"configurations": "\n".join(map(_line, plan.configurations))}


def _others(plan: StudyPlan) -> list[Configuration]:
    try:
        return expand(plan)[1:]
    except InvalidSpec:
        return []


def _line(changes: dict[str, Any]) -> str:
    in_order = [name for name in TrainSpec.model_fields if name in changes]  # PostgreSQL keeps no order of keys
    return ", ".join(f"{name}={_text(changes[name])}" for name in in_order)


def _text(value: Any) -> str:
    """A value as `_read_value` takes it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _read_value(field: str, text: str) -> Any:
    """A value as the spec's field takes it; what cannot be read is left to the contract's own sentence."""
    if text.lower() in ("none", "not set") and text not in _choices(field):
        return None
    return _TRUTH.get(text.lower(), text) if field in TrainSpec.model_fields and plain_type(field) is bool else text


def _choices(field: str) -> list[str]:
    return choices_of(field) if field in TrainSpec.model_fields else []


def _axis_choices() -> list[tuple[str, Any]]:
    """Every field that may vary, by group, with the values of those that have a list of them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, info in TrainSpec.model_fields.items():
        if name != "seed":
            choices = ", ".join(map(str, choices_of(name) or ()))
            title = gettext(info.title or name)
            label = f"{title} ({choices})" if choices and len(choices) < 90 else title
            groups.setdefault(metadata(info).get("group", ""), []).append((name, label))
    titled = [(str(GROUP_TITLES[key][0]) if key in GROUP_TITLES else key, fields) for key, fields in groups.items()]
    return [("", gettext("nothing")), *titled]
