"""`python -m benchmarks.loops NAME SPEC_JSON`: one loop in a process of its own, which trains until it is ended."""

import json
import sys
from importlib import import_module


def main() -> None:
    """Train as the spec says."""
    name, spec = sys.argv[1], json.loads(sys.argv[2])
    import_module(f"benchmarks.loops.{name}").train(spec)


if __name__ == "__main__":
    main()
