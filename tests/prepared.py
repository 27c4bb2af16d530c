"""State folders as a start leaves them: made once in a process and copied, for bringing a database up to date takes
seconds. That a start makes them from nothing is what `tests/system/test_start_and_stop.py` looks at.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

PROJECT_ROOT = Path(__file__).resolve().parent.parent


def copy_migrated(var: Path) -> None:
    """A database without a row, and the static files."""
    shutil.copytree(_migrated(), var, dirs_exist_ok=True)


def copy_with_an_admin(var: Path) -> str:
    """The same after a first start, but for the jobs that this one queues for a first look; the admin's token."""
    prepared, token = _with_an_admin()
    shutil.copytree(prepared, var, dirs_exist_ok=True)
    return token


@cache
def _migrated() -> Path:
    folder = _new_folder()
    _manage(folder, "migrate", "-v0")
    _manage(folder, "collectstatic", "--noinput", "-v0")
    return folder


@cache
def _with_an_admin() -> tuple[Path, str]:
    folder = _new_folder()
    copy_migrated(folder)
    _manage(folder, "setup")
    return folder, _manage(folder, "create_token", "admin").strip()


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pitwall-prepared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _manage(var: Path, *arguments: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PITWALL_")}
    command = [sys.executable, "manage.py", *arguments]
    environment = inherited | {"PITWALL_VAR": str(var), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    options: dict[str, Any] = {"check": True, "capture_output": True, "text": True, "timeout": 120}
    return str(subprocess.run(command, cwd=PROJECT_ROOT, env=environment, **options).stdout)
