"""What the browser sends, checked at the edge and turned into the contract's types."""

from jobs.forms.act import ActForm
from jobs.forms.compare import CompareQuery
from jobs.forms.history import HistoryFilter
from jobs.forms.queue import QueueForm
from jobs.forms.run_list import RunListAddress
from jobs.forms.saved_view import ViewForm, stored_address
from jobs.forms.small import PauseForm, ReasonForm, TokenForm
from jobs.forms.spec_form import SpecForm

__all__ = [
    "ActForm",
    "CompareQuery",
    "HistoryFilter",
    "PauseForm",
    "QueueForm",
    "ReasonForm",
    "RunListAddress",
    "SpecForm",
    "TokenForm",
    "ViewForm",
    "stored_address",
]
