"""Which columns of the runs list a person wants to see."""

from collections.abc import Sequence

from jobs.models import User


def remember_columns(user: User, names: Sequence[str]) -> None:
    """Show these from now on where an address names none; none of them: as at first."""
    User.objects.filter(pk=user.pk).update(run_columns=",".join(names))
