"""A saved view's name, whom it is for, and what of an address it keeps."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from jobs.forms.compare import CompareQuery
from jobs.forms.run_list import RunListAddress
from jobs.models import Team, User, ViewPage
from jobs.selectors.jobs import teams_of

# What is read of an address at all; a view keeps less.
_MOST_CHARACTERS = 8000


def stored_address(page: str, text: str) -> str:
    """Only what belongs into this page's address, as a view of it keeps it."""
    query = QueryDict(text[:_MOST_CHARACTERS].removeprefix("?"))
    return (
        CompareQuery.from_query(query).stored
        if page == ViewPage.COMPARISON
        else RunListAddress.from_query(query).stored
    )


class ViewForm(forms.Form):
    """What a new view is called, and whether the team sees it."""

    name = forms.CharField(label=_("Name"), max_length=100)
    team = forms.ModelChoiceField(Team.objects.none(), label=_("Team"), required=False)
    is_shared = forms.BooleanField(label=_("Shared with the team"), required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        teams = self.fields["team"]
        assert isinstance(teams, forms.ModelChoiceField)  # noqa: S101 declared above
        teams.queryset = teams_of(user)
        self._own = teams_of(user).filter(members=user).first() or teams_of(user).first()

    def clean_team(self) -> Team:
        """The person's first team where none is named."""
        team: Team | None = self.cleaned_data["team"] or self._own
        if team is None:
            raise forms.ValidationError(_("You are in no team yet, and every view belongs to one."))
        return team
