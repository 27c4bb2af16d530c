"""`make chaos`: faults at random, and a table of what became of the jobs. Exit code 0 only if all is well.

Real workers, supervisors, Redis and database; a stand-in for the engine. The environment is made before it is read.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from tests.system.postgres import NOT_THERE, PostgresServer, find_programs

TIME_SCALE = 0.1  # heartbeat 1 s, lease 6 s, relay 1 s: a supervisor starts within it, however busy the machine


def main() -> int:
    """Run the seeds and print the table; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed-from", type=int, default=1)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--jobs", type=int, default=16, help="jobs of each seed")
    parser.add_argument("--fault-s", type=float, default=12, help="seconds of faults in each seed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pitwall-chaos-") as folder, database(arguments.database) as server:
        prepare_environment(Path(folder), server.create_database("chaos") if server else "")
        django.setup()
        from tests.chaos.run import run_seeds  # its models can be imported only now

        seeds = range(arguments.seed_from, arguments.seed_from + arguments.seeds)
        return run_seeds(seeds, server, num_jobs=arguments.jobs, fault_s=arguments.fault_s)


@contextmanager
def database(kind: str) -> Iterator[PostgresServer | None]:
    """A PostgreSQL server of this run's own; None for SQLite."""
    if kind == "sqlite":
        yield None
        return
    programs = find_programs()
    if programs is None:
        raise SystemExit(NOT_THERE)
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def prepare_environment(folder: Path, database_url: str) -> None:
    """What this process and all that it starts read as their settings."""
    for name in [name for name in os.environ if name.startswith("PITWALL_")]:
        del os.environ[name]
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "PITWALL_VAR": str(folder / "var"),
        "PITWALL_DATABASE_URL": database_url,
        "PITWALL_REDIS_URL": f"unix://{folder / 'redis.sock'}",
        "PITWALL_TIME_SCALE": str(TIME_SCALE),
        "PITWALL_ENGINE_MODULE": "tests.stand_in_engine",
        "PITWALL_LOG_LEVEL": "WARNING",
        "PITWALL_SPARES": "0",  # every supervisor that lives has an attempt
    }


if __name__ == "__main__":
    sys.exit(main())
