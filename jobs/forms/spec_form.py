"""The form of a new job, built from `TrainSpec`: a field added there appears here, in its group, with its help."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.contract.catalog import Catalog
from jobs.contract.options import Group, metadata
from jobs.contract.spec import TrainSpec
from jobs.forms.annotations import choices_of, limits_of, may_be_empty, plain_type
from jobs.forms.verdict import Verdict, judge
from jobs.messages import translate
from jobs.models import Queue, Team, User
from jobs.selectors.hosts import known_catalog
from jobs.selectors.jobs import teams_of
from jobs.services.errors import NotPossible
from jobs.services.tags import clean_tags, split_tags

# A new form starts from the defaults, and a length that shows a curve within a minute.
_START_STEPS = 300

GROUP_TITLES: dict[str, tuple[Promise, Promise]] = {
    Group.WORK: (_("Work"), _("What is trained, on which data.")),
    Group.HARDWARE: (_("Hardware and arithmetic"), _("What it runs on and how a step is computed.")),
    Group.BATCH: (_("Batch and length"), _("How much each step sees and how long the run is.")),
    Group.OPTIMIZATION: (_("Optimization"), _("How the weights are updated.")),
    Group.DATA: (_("Data loading"), _("How batches reach the device.")),
    Group.MEASUREMENT: (_("Measuring and keeping"), _("What is measured and kept beside the training itself.")),
}


def start_spec() -> dict[str, Any]:
    """The options that a new form starts from."""
    return TrainSpec(num_steps=_START_STEPS).model_dump(mode="json")


@dataclass(frozen=True)
class Section:
    """One group of the form."""

    title: str
    text: str
    fields: list[BoundField]
    more: list[BoundField]  # advanced ones, shown on request

    @property
    def is_open(self) -> bool:
        """Whether an advanced option has to be seen: it was set, or something is wrong with it."""
        return any(field.errors or not _stands_at_default(field) for field in self.more)


class SpecForm(forms.Form):
    """A job: what to train (every field of `TrainSpec`), its name, its queue and its team."""

    job_name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=200,
        help_text=_("Empty names it after its model and data set."),
    )
    queue = forms.ModelChoiceField(Queue.objects.all(), label=_("Queue"), empty_label=None)
    team = forms.ModelChoiceField(Team.objects.none(), label=_("Team"), empty_label=None)
    tags = forms.CharField(
        label=_("Tags"),
        required=False,
        max_length=1000,
        help_text=_("Labels to find it by, separated by commas."),
    )
    submission = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, data: QueryDict | None = None, *, user: User, **kwargs: Any) -> None:
        super().__init__(data if data is None else _with_defaults(data), auto_id="id_%s", **kwargs)
        catalog = known_catalog()
        for name in TrainSpec.model_fields:
            self.fields[name] = _form_field(name, catalog)
        teams = self.fields["team"]
        assert isinstance(teams, forms.ModelChoiceField)  # noqa: S101 declared above
        teams.queryset = teams_of(user)
        self.verdict: Verdict | None = None
        _dress(self)

    def asked(self) -> dict[str, Any]:
        """The values for `parse_spec`."""
        values: dict[str, Any] = {}
        for name in TrainSpec.model_fields:
            field = self.fields[name]
            raw = field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
            values[name] = raw.strip() or None if isinstance(raw, str) else raw
        return values

    def initial_spec(self) -> dict[str, Any]:
        """The values that an unsent form begins with."""
        return {name: self.initial[name] for name in TrainSpec.model_fields if name in self.initial}

    def clean_tags(self) -> list[str]:
        """The labels, each once."""
        try:
            return clean_tags(split_tags(self.cleaned_data["tags"]))
        except NotPossible as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Every refusal stands at its field, in the words of the contract."""
        self.verdict = judge(self.asked(), self.cleaned_data.get("queue"))
        for finding in self.verdict.refused:
            self.add_error(finding.field if finding.field in self.fields else None, translate(finding))
        return self.cleaned_data

    @property
    def spec(self) -> TrainSpec:
        """The spec of a valid form."""
        assert self.verdict is not None  # noqa: S101 only asked of a valid form
        assert self.verdict.spec is not None  # noqa: S101
        return self.verdict.spec

    @property
    def asks_for(self) -> str:
        """All that a valid form asks to be run, as text."""
        return self.spec.model_dump_json()

    @property
    def sections(self) -> list[Section]:
        """The visible fields of the spec by group."""
        groups: dict[str, list[BoundField]] = {}
        for name, info in TrainSpec.model_fields.items():
            if not self.fields[name].widget.is_hidden:
                groups.setdefault(metadata(info).get("group", ""), []).append(self[name])
        return [_section(key, fields) for key, fields in groups.items()]

    @property
    def noted_fields(self) -> list[BoundField]:
        """The fields beside which notes are renewed while the form is filled in."""
        return self.visible_fields()

    @property
    def hidden_spec_fields(self) -> list[BoundField]:
        """Options with only one value: sent, not shown."""
        return [self[name] for name in TrainSpec.model_fields if self.fields[name].widget.is_hidden]

    @property
    def own_fields(self) -> list[BoundField]:
        """What a job has beside its spec."""
        return [self["job_name"], self["tags"], self["queue"], self["team"]]


def _with_defaults(data: QueryDict) -> QueryDict:
    """What was sent; an option that the page had set aside, and so did not send, has its default."""
    filled = data.copy()
    for name, value in TrainSpec().model_dump(mode="json").items():
        if name not in filled and not isinstance(value, bool):
            filled[name] = "" if value is None else str(value)
    return filled


def _section(key: str, fields: list[BoundField]) -> Section:
    title, text = GROUP_TITLES.get(key, (key, ""))
    more = [field for field in fields if metadata(TrainSpec.model_fields[field.name]).get("advanced")]
    return Section(str(title), str(text), [field for field in fields if field not in more], more)


def _stands_at_default(field: BoundField) -> bool:
    value, default = field.value(), TrainSpec.model_fields[field.name].get_default()
    return str("" if value is None else value) == str("" if default is None else default)


def _form_field(name: str, catalog: Catalog) -> forms.Field:
    """A form field that only carries the value: checking it is pydantic's work."""
    info = TrainSpec.model_fields[name]
    kind = plain_type(name)
    field_class = forms.BooleanField if kind is bool else forms.Field
    field = field_class(
        label=gettext(info.title or name),
        help_text=gettext(info.description) if info.description else "",
        required=False,
        widget=_widget(name, kind, catalog),
    )
    unit = metadata(info).get("unit", "")
    field.unit = gettext(unit) if unit else ""  # type: ignore[attr-defined]
    return field


def _widget(name: str, kind: Any, catalog: Catalog) -> forms.Widget:
    choices = choices_of(name)
    if name == "model":
        return CatalogSelect({info.name: (info.description, " ".join(info.takes)) for info in catalog.models})
    if name == "dataset":
        return CatalogSelect({info.name: (info.description, info.gives.value) for info in catalog.datasets})
    if choices:
        return forms.Select(choices=[(value, value) for value in choices]) if choices[1:] else forms.HiddenInput()
    if kind is bool:
        return forms.CheckboxInput(attrs={"class": "check"})
    return forms.NumberInput(attrs=_number_attributes(name, kind)) if kind in (int, float) else forms.TextInput()


def _number_attributes(name: str, kind: Any) -> dict[str, Any]:
    limits = limits_of(name)
    attributes = {"step": "any" if kind is float else 1, "inputmode": "decimal" if kind is float else "numeric"}
    if "ge" in limits:
        attributes["min"] = limits["ge"]
    if "le" in limits:
        attributes["max"] = limits["le"]
    if may_be_empty(name):
        attributes["placeholder"] = gettext("not set")
    return attributes


class CatalogSelect(forms.Select):
    """A choice of names; each option carries the kinds of data that it takes or gives, for the page's script."""

    def __init__(self, entries: Mapping[str, tuple[str, str]]) -> None:
        self._kinds = {name: kind for name, (_text, kind) in entries.items()}
        super().__init__(choices=[(name, f"{name} · {gettext(text)}") for name, (text, _kind) in entries.items()])

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """An option with its kind of data."""
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        option["attrs"]["data-kind"] = self._kinds.get(str(value), "")
        return option


def _dress(form: SpecForm) -> None:
    """Classes of the stylesheet, and the ids of what explains each field."""
    for name, field in form.fields.items():
        widget = field.widget
        if not isinstance(widget, forms.CheckboxInput):
            widget.attrs["class"] = "select" if isinstance(widget, forms.Select) else "input"
        widget.attrs |= {"aria-describedby": f"help-{name} notes-{name}", "autocomplete": "off"}
