"""What is wrong, or worth knowing, about a spec: a code, the field it belongs to and a sentence."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jobs.contract.messages import gettext_noop as _


class Severity(StrEnum):
    """Refusals stop a job from being queued or run; warnings are shown and stored."""

    REFUSE = "refuse"
    WARN = "warn"


class Finding(BaseModel):
    """One sentence about one field. `message` is an English message id with `%(name)s` places for `params`."""

    model_config = ConfigDict(frozen=True)

    code: str
    field: str
    severity: Severity
    message: str
    params: dict[str, Any] = {}

    @property
    def sentence(self) -> str:
        """The message in English; the web translates `message` before it fills in `params`."""
        return self.message % self.params


# pydantic's error types that a person can meet here, in our own words; the rest keep pydantic's message.
_SENTENCES = {
    "missing": _("This field is required."),
    "extra_forbidden": _("There is no such option."),
    "greater_than": _("Must be greater than %(gt)s."),
    "greater_than_equal": _("Must be at least %(ge)s."),
    "less_than": _("Must be less than %(lt)s."),
    "less_than_equal": _("Must be at most %(le)s."),
    "enum": _("Must be one of %(expected)s."),
    "int_parsing": _("Must be a whole number."),
    "int_type": _("Must be a whole number."),
    "int_from_float": _("Must be a whole number."),
    "float_parsing": _("Must be a number."),
    "float_type": _("Must be a number."),
    "finite_number": _("Must be a finite number."),
    "bool_parsing": _("Must be true or false."),
    "bool_type": _("Must be true or false."),
    "string_type": _("Must be a text."),
    "string_too_long": _("Must have at most %(max_length)s characters."),
    "json_invalid": _("This is not valid JSON: %(error)s."),
    "model_type": _("A spec is a JSON object of options and their values."),
}


def findings_from_validation(error: ValidationError) -> list[Finding]:
    """One refusal per error that pydantic found, with the field's name (`spec` for the whole)."""
    findings = []
    for item in error.errors(include_url=False, include_input=False):
        message = _SENTENCES.get(item["type"])
        params = {key: str(value) for key, value in item.get("ctx", {}).items()}
        findings.append(
            Finding(
                code=item["type"],
                field=".".join(str(part) for part in item["loc"]) or "spec",
                severity=Severity.REFUSE,
                message=message or "%(text)s",
                params=params if message else {"text": item["msg"]},
            )
        )
    return findings
