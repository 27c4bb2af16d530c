"""Forms of one field."""

from django import forms
from django.utils.translation import gettext_lazy as _


class ReasonForm(forms.Form):
    """Why somebody does something; may be left empty."""

    reason = forms.CharField(label=_("Reason (optional)"), required=False, max_length=500)


class PauseForm(forms.Form):
    """Why a queue is paused: everybody whose job waits there reads it."""

    reason = forms.CharField(label=_("Reason"), max_length=200)


class TokenForm(forms.Form):
    """What a token is for."""

    name = forms.CharField(label=_("Name"), max_length=100)
