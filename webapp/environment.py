"""The process's environment, typed: every setting is a `PITWALL_*` variable, and this class is their list."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT_ROOT = Path(__file__).resolve().parent.parent


class Environment(BaseSettings):
    """Settings read from `PITWALL_*` variables; docs/settings.md is written from these descriptions."""

    model_config = SettingsConfigDict(env_prefix="PITWALL_")

    env: Literal["local", "production"] = Field("local", description="local or production")
    var: Path = Field(PROJECT_ROOT / "var", description="Folder of all state: database, logs, artifacts")
    secret_key: str = Field("", description="Django's secret key; required in production, else made on first use")
    allowed_hosts: str = Field("", description="Host names that the web answers to, separated by commas")
    database_url: str = Field("", description="postgres://USER:PASSWORD@HOST/NAME; empty selects SQLite under var")
    redis_url: str = Field("", description="redis://:PASSWORD@HOST:6379/0; empty selects the embedded server")
    queues: str = Field("default", description="Queues that this host's worker serves, separated by commas")
    host_name: str = Field("", description="This worker's name; empty is the machine's, two on one machine need two")
    node_address: str = Field(
        "", description="Where other hosts reach this one for a job of several nodes; empty: found"
    )
    time_scale: float = Field(1.0, gt=0, description="Multiplies heartbeat, lease and relay times; for tests")
    log_level: str = Field("INFO", description="Lowest level that is logged")
    log_format: Literal["lines", "json"] = Field("lines", description="lines for people, or json: an object per line")
    metrics_token: str = Field("", description="Token with which Prometheus reads /metrics; empty: staff alone read it")
    engine_module: str = Field("workers.engine", description="Python module that is run as the engine; for tests")
    measure_ceilings: bool = Field(True, description="Measure once, while nothing runs, what the devices really reach")
    keep_points_days: int = Field(
        0, ge=0, description="Drop single points of runs that ended so many days ago, keep levels; 0 keeps all"
    )
    spares: int = Field(1, ge=0, description="Processes kept warm, with some 400 MB each, so that a job starts at once")
    behind_proxy: bool = Field(False, description="Trust X-Forwarded-Proto from a proxy that ends TLS")

    @model_validator(mode="after")
    def production_is_complete(self) -> "Environment":
        """Production never falls back to the embedded parts in silence."""
        needed = ("secret_key", "allowed_hosts", "database_url", "redis_url")
        missing = [f"PITWALL_{name.upper()}" for name in needed if not getattr(self, name)]
        if self.env == "production" and missing:
            raise ValueError(f"PITWALL_ENV=production also needs {', '.join(missing)}.")
        return self


def split_names(text: str) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
