"""Series carry their unit in their names; this is how to read it."""

_UNITS = {
    "_percent": "%",
    "_bytes": "bytes",
    "_ms": "ms",
    "_mhz": "MHz",
    "_s": "s",
    "_w": "W",
    "_j": "J",
    "_c": "°C",
}


def unit_of(series: str) -> str:
    """The unit that a series' name ends with: "ms" of `step_time_ms`, "samples/s" of `samples_per_s`; "" of a loss."""
    name = series.rsplit(".", 1)[-1]
    if name.endswith("_per_s"):
        return f"{name.removesuffix('_per_s')}/s"
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
