"""The Django app of everything that is asked for and everything that came out."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Jobs, attempts, curves, queues, workers, teams."""

    name = "jobs"
    verbose_name = "Pitwall"
