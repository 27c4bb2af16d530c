"""The contract's sentences in the reader's language."""

from django.utils.translation import gettext

from jobs.contract.findings import Finding
from jobs.contract.spec import TrainSpec


def translate(finding: Finding) -> str:
    """The finding's sentence: its message is translated first, then its parameters are filled in."""
    return gettext(finding.message) % finding.params


def translate_with_field(finding: Finding) -> str:
    """The same with the name of its field in front, where no field stands beside it."""
    return f"{finding.field}: {translate(finding)}"


def option_title(name: str) -> str:
    """An option as people read it; one that exists no more is called as it was stored."""
    field = TrainSpec.model_fields.get(name)
    return gettext(field.title) if field and field.title else name
