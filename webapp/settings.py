"""Django's settings: one file; what differs between machines comes from `webapp.environment`."""

import secrets
from pathlib import Path
from typing import Any

import dj_database_url
import plotly
from csp.constants import SELF

from webapp.administration import UNFOLD  # noqa: F401 - a setting
from webapp.broker import redis_url
from webapp.environment import PROJECT_ROOT, Environment, split_names

ENVIRONMENT = Environment()
PRODUCTION = ENVIRONMENT.env == "production"
VAR = ENVIRONMENT.var.resolve()
VAR.mkdir(parents=True, exist_ok=True)


def _local_secret_key() -> str:
    """A key of this installation's own, made once and readable by its owner only."""
    path = VAR / "secret_key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(50))
    return path.read_text()


SECRET_KEY = ENVIRONMENT.secret_key or _local_secret_key()
DEBUG = False
ALLOWED_HOSTS = split_names(ENVIRONMENT.allowed_hosts) or ["127.0.0.1", "localhost", "[::1]"]

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "webapp.administration.AdministrationConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "webapp.administration.SignInAttemptsConfig",
    "ninja",
    "jobs",
    "webapp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT_ROOT / "webapp" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# SQLite with one writer at a time and no deadlocks: IMMEDIATE takes the write lock when a transaction begins.
_SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": VAR / "db.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
DATABASES: dict[str, Any] = {
    "default": dict(dj_database_url.parse(ENVIRONMENT.database_url)) if ENVIRONMENT.database_url else _SQLITE
}
# The broker, and the queues that this host's worker serves.
REDIS_URL = redis_url(ENVIRONMENT.redis_url, VAR)
WORKER_QUEUES = split_names(ENVIRONMENT.queues)

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "jobs.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "job-list"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"
AXES_VERBOSE = False

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
LOCALE_PATHS = [PROJECT_ROOT / "webapp" / "locale"]

# Plotly's own file comes from the installed package: served here, compressed, cached for ever, loaded where a chart is.
STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [
    ("plotly", Path(plotly.__file__).parent / "package_data"),
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "webapp.storage.StaticStorage"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF, "'unsafe-inline'"],  # Plotly sets styles inline
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": [SELF],
        "object-src": ["'none'"],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = PRODUCTION
CSRF_COOKIE_SECURE = PRODUCTION
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^healthz$", r"^metrics$"]  # probes speak plain HTTP from inside
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = PRODUCTION
SECURE_HSTS_PRELOAD = PRODUCTION
if ENVIRONMENT.behind_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
if PRODUCTION:
    CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host != "*"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"fields": {"()": "jobs.logs.AddFields"}},
    "formatters": {"lines": {"()": "jobs.logs.Lines"}, "json": {"()": "jobs.logs.JsonLines"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": ENVIRONMENT.log_format, "filters": ["fields"]}
    },
    "root": {"handlers": ["console"], "level": ENVIRONMENT.log_level},
    "loggers": {
        "axes": {"level": "WARNING"},
        # uvicorn brings handlers of its own, in a format of its own.
        "uvicorn": {"handlers": ["console"], "propagate": False},
        "uvicorn.access": {"handlers": ["console"], "propagate": False},
    },
}
