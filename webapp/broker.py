"""Where Redis is: a server of the team's own, or the embedded one whose address `manage.py run` records under var."""

from pathlib import Path


def recorded_url_path(var: Path) -> Path:
    """The file that holds the embedded server's address while it runs."""
    return var / "redis_url"


def redis_url(configured: str, var: Path) -> str:
    """redis-py's address of the broker; for a server that is not running, one that refuses connections."""
    if configured:
        return configured
    path = recorded_url_path(var)
    return path.read_text().strip() if path.exists() else f"unix://{var / 'redis-is-not-running.sock'}"


def celery_url(url: str) -> str:
    """The same address as Celery spells it: `redis+socket:` where redis-py says `unix:`."""
    return url.replace("unix://", "redis+socket://", 1)
