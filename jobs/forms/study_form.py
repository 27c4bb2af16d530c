"""The form of a new study: a job's form for the base, and beside it what varies and how often each is repeated."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from jobs.contract.errors import InvalidSpec
from jobs.contract.plan import Arrangement, Configuration, StudyPlan, expand
from jobs.contract.spec import TrainSpec
from jobs.forms.spec_form import SpecForm
from jobs.forms.variation import VariationForm

_ARRANGEMENTS = [
    (Arrangement.GRID.value, _("Grid: every value with every other")),
    (Arrangement.ONE_AT_A_TIME.value, _("One at a time: each value by itself")),
    (Arrangement.LIST.value, _("List: only the configurations below, line by line")),
]


class StudyForm(VariationForm, SpecForm):
    """A base spec and what varies about it."""

    arrangement = forms.ChoiceField(label=_("Arrangement"), choices=_ARRANGEMENTS)
    until_sure = forms.BooleanField(
        label=_("Add repeats until sure"),
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "check"}),
        help_text=_(
            "Until the 95 % interval of every time reaches no further than 2 %; after 15 repeats it is too noisy here."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["job_name"].label = _("Name")
        self.fields["job_name"].help_text = _("Empty names it after its model and data set.")
        self.fields["arrangement"].widget.attrs["class"] = "select"
        self.found: list[Configuration] = []
        self.plan: StudyPlan | None = None

    @property
    def noted_fields(self) -> list[forms.BoundField]:
        """Those of the base; what is wrong with what varies stands in the preview until the form is sent."""
        return [field for field in super().noted_fields if field.name in TrainSpec.model_fields]

    @property
    def asks_for(self) -> str:
        """The plan of a valid form, as text."""
        return self.study_plan.model_dump_json()

    @property
    def study_plan(self) -> StudyPlan:
        """The plan of a valid form."""
        assert self.plan is not None  # noqa: S101 only asked of a valid form
        return self.plan

    def clean(self) -> dict[str, Any]:
        """The base's own refusals at their fields; what is wrong with an axis beside its values."""
        data = super().clean()
        if self.errors:
            return data
        self.plan = StudyPlan(
            base=self.spec.model_dump(mode="json"),
            arrangement=data["arrangement"],
            axes=self.read_axes(),
            configurations=self.read_configurations(),
            num_repeats=data["num_repeats"],
            until_sure=data["until_sure"],
        )
        try:
            self.found = expand(self.plan)
        except InvalidSpec as error:
            self.tell(error.findings)
        return data
