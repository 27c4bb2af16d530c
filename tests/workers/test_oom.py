"""Whether the kernel killed for want of memory, read from its counters."""

from pathlib import Path

import pytest

from workers import oom
from workers.oom import OomWatch, read_num_oom_kills


def test_a_kill_since_the_watch_began_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("low 0\noom 3\noom_kill 2\n")
    monkeypatch.setattr(oom, "_COUNTERS", (tmp_path / "absent", counter))
    watch = OomWatch()
    assert not watch.has_killed
    counter.write_text("low 0\noom 4\noom_kill 3\n")
    assert watch.has_killed


def test_this_kernel_has_such_a_counter() -> None:
    assert any(path.exists() for path in oom._COUNTERS)
    assert read_num_oom_kills() >= 0
