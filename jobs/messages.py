"""The contract's sentences in the reader's language."""

from django.utils.translation import gettext

from jobs.contract.findings import Finding


def translate(finding: Finding) -> str:
    """The finding's sentence: its message is translated first, then its parameters are filled in."""
    return gettext(finding.message) % finding.params
