"""The contract's rules, asked about the host that a run is on."""

from jobs.contract.catalog import Catalog
from jobs.contract.errors import DataMissing, RefusedSpec
from jobs.contract.facts import HostFacts
from jobs.contract.findings import Finding
from jobs.contract.rules import check, refusals
from jobs.contract.spec import TrainSpec
from workers.engine.folders import PREFIX, open_folder


def require_allowed(spec: TrainSpec, facts: HostFacts, catalog: Catalog) -> list[Finding]:
    """The rules' warnings about this spec on this host; raises `RefusedSpec` with all refusals.

    Where only the data are missing it raises `DataMissing`: then the host is to be changed, not the spec.
    """
    findings = check(spec, facts, catalog)
    if refused := refusals(findings):
        if [finding.field for finding in refused] == ["dataset"]:
            _require_data(spec.dataset, catalog)
        raise RefusedSpec(refused)
    return findings


def _require_data(name: str, catalog: Catalog) -> None:
    known = catalog.dataset(name)
    if known is not None and known.unavailable:
        raise DataMissing(known.unavailable)
    if known is None and name.startswith(PREFIX):
        open_folder(name.removeprefix(PREFIX))  # says what is missing
