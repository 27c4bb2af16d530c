"""Two tensors met on different devices: which, and where, read from the frames that the error came through.

torch names the devices but not the tensors. Nothing is moved silently: a copy in every step would only be slow.
Free of torch until a run has imported it, because a launcher's side needs this room too.
"""

import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from types import FrameType, TracebackType
from typing import Any

from jobs.contract.errors import DeviceMismatch

# How torch's operators word it: those of CPUs and GPUs, those of the meta device, attention, and the compiler.
_PHRASES = ("on the same device", "is not on the expected device", "to have the same device", "two different devices")
_DEVICE = re.compile(r"\b(cpu|meta|cuda(?::\d+)?)\b")


def is_device_mismatch(error: BaseException) -> bool:
    """Whether torch refused to compute with tensors of different devices."""
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in _PHRASES)


def as_sentence(error: BaseException) -> DeviceMismatch:
    """What a user reads: the innermost place whose tensors are on two devices, with both; else the devices alone."""
    places = [place for place in _places_of(error) if place.is_of_interest]
    for place in reversed(places):
        first_on: dict[str, str] = {}  # device -> the first tensor there
        for name, device in place.tensors:
            first_on.setdefault(device, name)
        if len(first_on) > 1:
            (one_device, one), (other_device, other) = list(first_on.items())[:2]
            return DeviceMismatch(_describe(place, places), (one, one_device), (other, other_device))
    return _without_names(error, places)


@dataclass(frozen=True)
class _Place:
    """A call that the error came through. `line` is the source of what it was doing, empty where there is none."""

    frame: FrameType
    line: str

    @property
    def is_of_interest(self) -> bool:
        """Of torch's own code only its modules and functions: below them tensors have names that nobody gave them."""
        room: str = self.frame.f_globals.get("__name__", "")
        return not room.startswith("torch.") or room.startswith("torch.nn.")

    @property
    def module(self) -> Any:
        """The module whose method this is; None of a function."""
        torch: Any = sys.modules["torch"]
        found = self.frame.f_locals.get("self")
        return found if isinstance(found, torch.nn.Module) else None

    @property
    def tensors(self) -> list[tuple[str, str]]:
        """Names and devices of its variables and of its module's tensors, first those that its line speaks of."""
        torch: Any = sys.modules["torch"]
        named = [(name, f"“{name}”", value) for name, value in self.frame.f_locals.items()]
        if self.module is not None:
            of_module = self.module
            own = chain(of_module.named_parameters(recurse=False), of_module.named_buffers(recurse=False))
            named += [(name, f"its “{name}”", value) for name, value in chain(own, vars(of_module).items())]
        spoken_of = set(re.findall(r"\w+", self.line))
        named.sort(key=lambda each: each[0] not in spoken_of)
        return [(text, str(value.device)) for _name, text, value in named if isinstance(value, torch.Tensor)]


def _places_of(error: BaseException) -> Iterator[_Place]:
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        first, last, *_columns = list(code.co_positions())[step.tb_lasti // 2]
        lines = range(first or step.tb_lineno, (last or step.tb_lineno) + 1)
        yield _Place(step.tb_frame, " ".join(linecache.getline(code.co_filename, number) for number in lines))
        step = step.tb_next


def _without_names(error: BaseException, places: list[_Place]) -> DeviceMismatch:
    """Where one of the two was never given a name, the other one still has one."""
    devices = list(dict.fromkeys(_DEVICE.findall(str(error))))
    for place in reversed(places):
        for name, device in place.tensors:
            others = [other for other in devices if other != device]
            if others:
                where = _describe(place, places)
                return DeviceMismatch(where, (name, device), ("a tensor without a name", others[0]))
    one, other = [*devices, "an unknown device", "another one"][:2]
    return DeviceMismatch("the step", ("one tensor", one), ("another", other))


def _describe(place: _Place, places: list[_Place]) -> str:
    """The module by its kind and its path in the model, or the function by its name."""
    if place.module is None:
        return f"{place.frame.f_code.co_name}()"
    root = next(outer.module for outer in places if outer.module is not None)
    path = next((name for name, inner in root.named_modules() if inner is place.module and name), None)
    kind = type(place.module).__name__
    return f"{kind} “{path}”" if path else kind
