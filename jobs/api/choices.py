"""The queue and the team that a submission names, or those that are meant where it names none."""

from jobs.api.errors import refusal
from jobs.contract.messages import gettext_noop as _
from jobs.models import Queue, Team, User
from jobs.selectors.jobs import teams_of

DEFAULT_QUEUE = "default"


def choose_queue(name: str) -> Queue:
    """The queue of that name; raises `InvalidRequest` for the field `queue` where there is none."""
    queue = Queue.objects.filter(name=name).first()
    if queue is None:
        names = ", ".join(Queue.objects.values_list("name", flat=True))
        raise refusal(
            "queue", "unknown_queue", _("There is no queue “%(name)s”. There are: %(names)s."), name=name, names=names
        )
    return queue


def choose_team(user: User, name: str) -> Team:
    """The team of that name, the user's first team where none is named; raises `InvalidRequest` for `team`."""
    if name:
        team = teams_of(user).filter(name=name).first()
        if team is None:
            raise refusal("team", "unknown_team", _("You are in no team “%(name)s”."), name=name)
        return team
    team = Team.objects.filter(members=user).first() or teams_of(user).first()
    if team is None:
        raise refusal("team", "no_team", _("You are in no team yet. Ask staff to add you to one."))
    return team
