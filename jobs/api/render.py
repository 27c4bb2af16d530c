"""JSON as the standard has it: a number that is not finite travels as a string."""

import json
import math
from typing import Any

from django.http import HttpRequest
from ninja.renderers import BaseRenderer
from ninja.responses import NinjaJSONEncoder


def json_safe(value: Any) -> Any:
    """The same value with NaN and the infinities spelt "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return value


def render_json(value: Any, indent: int | None = None) -> str:
    """A JSON text that every parser reads."""
    return json.dumps(json_safe(value), cls=NinjaJSONEncoder, allow_nan=False, indent=indent)


class StrictJSONRenderer(BaseRenderer):
    """Renders every answer of the API."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:
        """The answer's body."""
        return render_json(data)
