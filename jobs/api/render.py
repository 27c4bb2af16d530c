"""JSON as the standard has it: a number that is not finite travels as a string."""

import json
import math
from typing import Any

import orjson
from django.http import HttpRequest
from ninja.renderers import BaseRenderer
from ninja.responses import NinjaJSONEncoder

# Times are written as Django writes them everywhere else.
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS
_ENCODER = NinjaJSONEncoder()


def json_safe(value: Any) -> Any:
    """The same value with NaN and the infinities spelt "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return value if _are_finite(value) else [json_safe(item) for item in value]
    return value


def _are_finite(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these are finite numbers and nothing else: a sum tells it much sooner than a look at each."""
    try:
        return math.isfinite(sum(items))
    except (TypeError, OverflowError):
        return False


def render_json(value: Any, indent: int | None = None) -> str:
    """A JSON text that every parser reads."""
    return json.dumps(json_safe(value), cls=NinjaJSONEncoder, allow_nan=False, indent=indent)


def render_bytes(value: Any) -> bytes:
    """The same in UTF-8 and in no time, however many numbers there are."""
    safe = json_safe(value)
    try:
        return orjson.dumps(safe, default=_ENCODER.default, option=_OPTIONS)
    except orjson.JSONEncodeError:  # numbers beyond 64 bits and broken characters, which the standard library can write
        return json.dumps(safe, cls=NinjaJSONEncoder, allow_nan=False).encode()


class StrictJSONRenderer(BaseRenderer):
    """Renders every answer of the API."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        """The answer's body."""
        return render_bytes(data)
