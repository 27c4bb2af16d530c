"""The claims of guides, what was measured of them here, and their studies."""

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from ninja import Router, Schema, Status

from jobs.api.auth import asker
from jobs.api.choices import choose_team
from jobs.api.errors import ErrorsOut
from jobs.api.studies import StudyOut
from jobs.claim_verdict import ClaimVerdict
from jobs.contract.claims import claim_named
from jobs.selectors.claims import ClaimRow, Evidence, Standing, claim_board
from jobs.selectors.studies import view_study, visible_studies
from jobs.services.claims import measure_claim

router = Router(tags=["claims"])


class PromiseOut(Schema):
    """A promised factor, baseline over candidate, and the one that was seen with its 99 % interval."""

    quantity: str
    at_least: float
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class EvidenceOut(Schema):
    """One study on one device."""

    study: int
    device_name: str
    versions: dict[str, str]
    promises: list[PromiseOut]
    verdict: ClaimVerdict

    @classmethod
    def of(cls, evidence: Evidence) -> "EvidenceOut":
        """The evidence as plain values."""
        promises = [
            PromiseOut(
                quantity=promise.quantity.value,
                at_least=promise.at_least,
                **({name: getattr(seen, name) for name in ("factor", "low", "high", "n")} if seen else {}),
            )
            for promise, seen in evidence.promises
        ]
        return cls(
            study=evidence.study.pk,
            device_name=evidence.device_name,
            versions=evidence.versions,
            promises=promises,
            verdict=evidence.verdict,
        )


class ClaimOut(Schema):
    """A claim; `devices` are the kinds that can show it, `can_measure` those of them that a worker online has."""

    key: str
    title: str
    words: str
    source: str
    standing: Standing
    promises: list[PromiseOut]
    evidence: list[EvidenceOut]
    devices: list[str]
    can_measure: list[str]

    @classmethod
    def of(cls, row: ClaimRow) -> "ClaimOut":
        """The claim as it stands now."""
        claim = row.claim
        return cls(
            key=claim.key,
            title=gettext(claim.title),
            words=gettext(claim.words),
            source=gettext(claim.source),
            standing=row.standing,
            promises=[PromiseOut(quantity=one.quantity.value, at_least=one.at_least) for one in claim.promises],
            evidence=[EvidenceOut.of(one) for one in row.evidence],
            devices=[state.preset.device for state in row.presets],
            can_measure=[state.preset.device for state in row.presets if state.queue],
        )


@router.get("/claims", response={200: list[ClaimOut], 401: ErrorsOut}, summary="See which claims hold here")
def list_claims(request: HttpRequest) -> list[ClaimOut]:
    """What guides promise, beside what your teams' studies of it measured."""
    return [ClaimOut.of(row) for row in claim_board(asker(request))]


@router.post(
    "/claims/{key}/{device}",
    response={201: StudyOut, 401: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut},
    summary="Put a claim to the test",
)
def measure(request: HttpRequest, key: str, device: str, team: str = "") -> Status[StudyOut]:
    """Queue the claim's study on `cpu` or `cuda`; the one that still runs where there is one."""
    claim = claim_named(key)
    preset = claim.preset(device) if claim else None
    if claim is None or preset is None:
        raise Http404
    user = asker(request)
    study = measure_claim(claim, preset, user, choose_team(user, team))
    return Status(201, StudyOut.of(view_study(get_object_or_404(visible_studies(user), pk=study.pk))))
