"""Why a write was refused."""

from jobs.contract.findings import Finding


class StaleFence(Exception):
    """The attempt no longer owns its job: somebody else ended or requeued it."""


class SpecRefused(Exception):
    """The spec cannot be queued; `findings` say why, per field."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(" ".join(f"{finding.field}: {finding.sentence}" for finding in findings))


class NotPossible(Exception):
    """The job's state does not allow this; the text is a sentence for the person who asked."""


class NotAllowed(Exception):
    """This person may not do that; the text is a sentence for them."""
