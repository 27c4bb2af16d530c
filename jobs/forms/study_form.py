"""The form of a new study: a job's form for the base, and beside it what varies and how often each is repeated."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.errors import InvalidSpec
from jobs.contract.options import metadata
from jobs.contract.plan import MOST_REPEATS, Arrangement, Axis, Configuration, StudyPlan, expand
from jobs.contract.spec import TrainSpec
from jobs.forms.annotations import choices_of, plain_type
from jobs.forms.spec_form import GROUP_TITLES, SpecForm
from jobs.messages import translate

NUM_AXES = 4

_ARRANGEMENTS = [
    (Arrangement.GRID.value, _("Grid: every value with every other")),
    (Arrangement.ONE_AT_A_TIME.value, _("One at a time: each value by itself")),
]
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class StudyForm(SpecForm):
    """A base spec with up to four fields that vary."""

    arrangement = forms.ChoiceField(label=_("Arrangement"), choices=_ARRANGEMENTS)
    num_repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=1,
        max_value=MOST_REPEATS,
        help_text=_(
            "Of each configuration, every one with a seed of its own. Verdicts need two; five make them sharp."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["job_name"].label = _("Name")
        self.fields["job_name"].help_text = _("Empty names it after its model and data set.")
        for number in range(1, NUM_AXES + 1):
            self.fields[f"axis_{number}"] = forms.ChoiceField(
                label=_("What varies"), choices=_axis_choices(), required=False
            )
            self.fields[f"values_{number}"] = forms.CharField(label=_("Values"), required=False, max_length=1000)
        for name in ("arrangement", *(f"axis_{number}" for number in range(1, NUM_AXES + 1))):
            self.fields[name].widget.attrs["class"] = "select"
        for name in ("num_repeats", *(f"values_{number}" for number in range(1, NUM_AXES + 1))):
            self.fields[name].widget.attrs["class"] = "input"
        self.configurations: list[Configuration] = []
        self.plan: StudyPlan | None = None

    @property
    def asks_for(self) -> str:
        """The plan of a valid form, as text."""
        return self.study_plan.model_dump_json()

    @property
    def study_plan(self) -> StudyPlan:
        """The plan of a valid form."""
        assert self.plan is not None  # noqa: S101 only asked of a valid form
        return self.plan

    @property
    def axes(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """The rows of what varies."""
        return [(self[f"axis_{number}"], self[f"values_{number}"]) for number in range(1, NUM_AXES + 1)]

    def clean(self) -> dict[str, Any]:
        """The base's own refusals at their fields; what is wrong with an axis beside its values."""
        data = super().clean()
        if self.errors:
            return data
        self.plan = StudyPlan(
            base=self.spec.model_dump(mode="json"),
            arrangement=data["arrangement"],
            axes=self._read_axes(),
            num_repeats=data["num_repeats"],
        )
        try:
            self.configurations = expand(self.plan)
        except InvalidSpec as error:
            for finding in error.findings:
                self.add_error(self._place_of(finding.field), translate(finding))
        return data

    def _read_axes(self) -> list[Axis]:
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

    def _place_of(self, field: str) -> str | None:
        """The row of an axis by the field that it varies; the first row for what is about all of them."""
        chosen = {self.cleaned_data.get(f"axis_{number}"): f"values_{number}" for number in range(1, NUM_AXES + 1)}
        return chosen.get(field, "values_1")


def _read_value(field: str, text: str) -> Any:
    """A value as the spec's field takes it; what cannot be read is left to the contract's own sentence."""
    if text.lower() in ("none", "not set"):
        return None
    return _TRUTH.get(text.lower(), text) if plain_type(field) is bool else text


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
