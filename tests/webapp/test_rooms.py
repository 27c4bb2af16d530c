"""Who may import whom: the direction of imports, read from the sources and from what processes really load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from webapp.environment import PROJECT_ROOT

# For each room, the first parts of module names that it must not import.
FORBIDDEN = {
    "jobs/contract": ("django", "celery", "redis", "torch", "workers", "webapp", "jobs.models", "jobs.services"),
    "jobs": ("torch", "workers"),
    "workers/engine": ("django", "celery", "redis", "webapp", "jobs.models", "jobs.services", "jobs.selectors"),
    "webapp": ("torch",),
}


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = list((PROJECT_ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        wrong = [name for name in imports_of(path) if _is_within(name, FORBIDDEN[room])]
        assert not wrong, f"{path} imports {wrong}"


def _is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def loaded_after(statement: str) -> set[str]:
    command = [sys.executable, "-c", f"{statement}\nimport sys; print('\\n'.join(sys.modules))"]
    result = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines())


def test_the_web_application_loads_without_torch() -> None:
    loaded = loaded_after("import webapp.asgi; from django.urls import get_resolver; get_resolver().url_patterns")
    assert "jobs.models" in loaded
    assert "torch" not in loaded
