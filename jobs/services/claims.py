"""A claim is put to the test: one click makes its study."""

from django.db import transaction
from django.utils.translation import gettext

from jobs.contract.claims import Claim, Preset
from jobs.contract.states import OPEN_STATES
from jobs.models import Study, Team, User
from jobs.selectors.claims import preset_name, queue_for
from jobs.services.errors import NotPossible
from jobs.services.studies import create_study


def measure_claim(claim: Claim, preset: Preset, by: User, team: Team) -> Study:
    """Queue the claim's study for the team; the one that still runs where there is one, so that it is made once.

    Raises `NotPossible` where no worker online could run it.
    """
    name = preset_name(claim, preset)
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=team.pk)  # two clicks come one after the other
        running = Study.objects.filter(team=team, preset=name, jobs__state__in=OPEN_STATES).first()
        if running:
            return running
        queue = queue_for(preset)
        if queue is None:
            raise NotPossible(gettext("No worker that is online now could run this study."))
        return create_study(owner=by, team=team, queue=queue, plan=preset.plan, name=gettext(claim.title))
