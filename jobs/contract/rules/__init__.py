"""Which combinations of options are refused and which only warned about, each with its sentence.

One table for the form, the API, the command line and the engine. A file per topic; importing it here puts its rules
into the table.
"""

from jobs.contract.rules import acceleration, general, optimization, parallelism, parts, precision, work  # noqa: F401
from jobs.contract.rules.table import RULES, Situation, check, refusals, resolve_device_kind

__all__ = ["RULES", "Situation", "check", "refusals", "resolve_device_kind"]
