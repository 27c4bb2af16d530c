"""The claims board: what guides promise, beside what was measured here."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from jobs.contract.claims import Claim, Preset, claim_named
from jobs.messages import translate, translate_with_field
from jobs.models import Study
from jobs.selectors.claim_words import (
    ground_words,
    measured_words,
    preset_words,
    promise_words,
    standing_words,
    verdict_words,
)
from jobs.selectors.claims import ClaimRow, PresetState, Standing, claim_board
from jobs.selectors.jobs import teams_of
from jobs.services.claims import measure_claim
from jobs.services.errors import NotPossible, SpecRefused
from jobs.views.access import person

# The pills' looks, which are those of a job's outcomes.
_PILLS = {
    Standing.HOLDS: "succeeded",
    Standing.FAILS: "failed",
    Standing.MIXED: "paused",
    Standing.MEASURING: "running",
}
_NO_PILL = "cancelled"


@dataclass(frozen=True)
class ShownEvidence:
    """A device with its versions, what was seen on it, and in which study."""

    ground: str
    sentences: list[str]
    verdict: str
    pill: str
    study: Study


@dataclass(frozen=True)
class ShownPreset:
    """A study that one click makes, or why it cannot be made now."""

    state: PresetState
    title: str
    missing: str


@dataclass(frozen=True)
class ShownClaim:
    """A claim in the reader's language."""

    claim: Claim
    title: str
    words: str
    source: str
    promises: list[str]
    standing: str
    pill: str
    evidence: list[ShownEvidence]
    presets: list[ShownPreset]


@require_GET
def claims(request: HttpRequest) -> HttpResponse:
    """All claims with their verdicts."""
    return render(request, "claims/claims.html", {"claims": [_shown(row) for row in claim_board(person(request))]})


@require_POST
def claim_measure(request: HttpRequest, key: str, device: str) -> HttpResponse:
    """Make the study of a claim and go there."""
    claim = claim_named(key)
    preset = claim.preset(device) if claim else None
    if claim is None or preset is None:
        raise Http404
    return _measure(request, claim, preset)


def _measure(request: HttpRequest, claim: Claim, preset: Preset) -> HttpResponse:
    teams = teams_of(person(request))
    team = teams.filter(members=person(request)).first() or teams.first()
    try:
        if team is None:
            raise NotPossible(gettext("Join a team first: every job belongs to one."))
        study = measure_claim(claim, preset, person(request), team)
    except NotPossible as error:
        messages.error(request, str(error))
    except SpecRefused as error:
        messages.error(request, translate(error.findings[0]))
    else:
        return redirect("study", study.pk)
    return redirect("claims")


def _shown(row: ClaimRow) -> ShownClaim:
    claim = row.claim
    return ShownClaim(
        claim=claim,
        title=gettext(claim.title),
        words=gettext(claim.words),
        source=gettext(claim.source),
        promises=[promise_words(promise) for promise in claim.promises],
        standing=standing_words(row.standing),
        pill=_PILLS.get(row.standing, _NO_PILL),
        evidence=[
            ShownEvidence(
                ground=ground_words(one),
                sentences=[
                    *(measured_words(promise, measured) for promise, measured in one.promises),
                    *map(translate_with_field, one.unread),
                ],
                verdict=verdict_words(one.verdict),
                pill=_PILLS.get(Standing(one.verdict.value), _NO_PILL),
                study=one.study,
            )
            for one in row.evidence
        ],
        presets=[ShownPreset(state, _device_title(state.preset), preset_words(state)) for state in row.presets],
    )


def _device_title(preset: Preset) -> str:
    if preset.num_gpus > 1:
        return gettext("on %(n)s GPUs") % {"n": preset.num_gpus}
    return gettext("on a GPU") if preset.num_gpus else gettext("on the CPU")
