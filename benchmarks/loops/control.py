"""The plain loop once more: where it differs from the plain loop, it is noise of the machine and of the method."""

from benchmarks.loops.plain import train

__all__ = ["train"]
