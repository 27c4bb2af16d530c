"""Whether the kernel's out-of-memory killer was at work: it leaves no trace in the process that it kills."""

from pathlib import Path

# The counter of this control group, and for a host without one that of the whole machine.
_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))


class OomWatch:
    """Counts the kernel's kills from its making on."""

    def __init__(self) -> None:
        self._before = read_num_oom_kills()

    @property
    def has_killed(self) -> bool:
        """Whether it killed since. It may have been a neighbour, so ask only about a process that SIGKILL ended."""
        return read_num_oom_kills() > self._before


def read_num_oom_kills() -> int:
    """How often the kernel has killed for want of memory; 0 where it does not say."""
    for path in _COUNTERS:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0
