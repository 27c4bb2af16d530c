"""Studies: submit one, see what it has found, end it."""

from typing import Any

import ninja
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Router, Schema, Status

from jobs.api.auth import asker
from jobs.api.choices import choose_queue, choose_team
from jobs.api.errors import ErrorsOut
from jobs.api.jobs import SubmitQuery, read_tags
from jobs.api.serializers import FindingOut
from jobs.contract.plan import Extension, StudyPlan
from jobs.equal_loss import LossComparison
from jobs.models import Study
from jobs.selectors.studies import StudyRow, StudyView, view_study, visible_studies
from jobs.selectors.study_estimates import StudyEstimate, estimate_extension, estimate_study
from jobs.selectors.study_words import headline, row_words
from jobs.services.studies import (
    as_entries,
    cancel_study,
    clone_study,
    create_study,
    extend_study,
    pause_study,
    resume_study,
)
from jobs.services.study_shares import share_study, unshare_study
from jobs.statistics import RatioInterval, Verdict

router = Router(tags=["studies"])


class RatioOut(Schema):
    """A ratio to the baseline, paired by seed: its geometric mean, its 99 % interval, and what they say."""

    ratio: float | None
    low: float | None
    high: float | None
    n: int
    verdict: Verdict

    @classmethod
    def of(cls, interval: RatioInterval | None, verdict: Verdict) -> "RatioOut":
        """The ratio; all null where too few pairs are there."""
        if interval is None:
            return cls(ratio=None, low=None, high=None, n=0, verdict=verdict)
        return cls(ratio=interval.ratio, low=interval.low, high=interval.high, n=interval.n, verdict=verdict)


class LossOut(Schema):
    """The mean difference of the final evaluation loss to the baseline, its 90 % interval, and the margin."""

    difference: float
    low: float
    high: float
    margin: float
    n: int
    verdict: str
    num_diverged: int  # runs that diverged where the baseline did not; with any, no equality is shown

    @classmethod
    def of(cls, loss: LossComparison) -> "LossOut":
        """The comparison as plain values."""
        return cls(**(loss.__dict__ | {"verdict": loss.verdict.value}))


class StudyRowOut(Schema):
    """One configuration; figures are medians over its repeats, null where none has ended well."""

    place: int
    changes: dict[str, Any]
    jobs: list[int]
    num_done: int
    ranks: bool
    step_time_ms: float | None
    samples_per_s: float | None
    peak_bytes: int | None
    eval_loss: float | None
    time: RatioOut
    memory: RatioOut
    loss: LossOut | None
    words: str

    @classmethod
    def of(cls, row: StudyRow) -> "StudyRowOut":
        """The row as it stands now."""
        return cls(
            place=row.configuration.place,
            changes=row.configuration.changes,
            jobs=[job.pk for job in row.jobs],
            num_done=row.num_done,
            ranks=row.ranks,
            step_time_ms=row.step_time_ms,
            samples_per_s=row.samples_per_s,
            peak_bytes=row.peak_bytes,
            eval_loss=row.eval_loss,
            time=RatioOut.of(row.time, row.time_verdict),
            memory=RatioOut.of(row.memory, row.memory_verdict),
            loss=LossOut.of(row.loss) if row.loss else None,
            words=row_words(row),
        )


class StudyOut(Schema):
    """A study: what was asked, what the rules refused, what it has found."""

    id: int
    name: str
    plan: StudyPlan
    unread: list[FindingOut]  # what an earlier version stored and this one cannot read; the plan is without it
    left_out: list[dict[str, Any]]
    num_runs: int
    num_done: int
    adds_repeats: bool
    is_paused: bool
    pause_reason: str
    devices: list[str]  # the types that its runs keep to; empty before the first one has started
    loss_margin: float | None
    headline: str
    rows: list[StudyRowOut]

    @classmethod
    def of(cls, view: StudyView) -> "StudyOut":
        """The study as it stands now."""
        return cls(
            id=view.study.pk,
            name=view.study.name,
            plan=view.plan,
            unread=[FindingOut.of(finding) for finding in view.unread],
            left_out=view.study.left_out,
            num_runs=view.num_runs,
            num_done=view.num_done,
            adds_repeats=view.study.adds_repeats,
            is_paused=view.study.is_paused,
            pause_reason=view.study.pause_reason,
            devices=view.study.devices,
            loss_margin=view.margin,
            headline=headline(view),
            rows=[StudyRowOut.of(row) for row in view.rows],
        )


class StudyEstimateOut(Schema):
    """What a study would take; sums are over the configurations of which it is known, null where of none."""

    num_configurations: int
    num_runs: int
    device_minutes: float | None
    num_untimed: int
    peak_bytes: int | None
    num_unweighed: int
    left_out: list[dict[str, Any]]

    @classmethod
    def of(cls, told: StudyEstimate) -> "StudyEstimateOut":
        """The estimate as plain values."""
        return cls(
            num_configurations=told.num_configurations,
            num_runs=told.num_runs,
            device_minutes=told.device_minutes,
            num_untimed=told.num_untimed,
            peak_bytes=told.peak_bytes,
            num_unweighed=told.num_unweighed,
            left_out=as_entries(told.left_out),
        )


class ShareOut(Schema):
    """Where a report can be read."""

    url: str


class StudyLine(Schema):
    """A study in a list."""

    id: int
    name: str
    num_runs: int
    num_open: int
    is_paused: bool


_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 404: ErrorsOut, 422: ErrorsOut}
_NOT_NOW = _REFUSED | {403: ErrorsOut, 409: ErrorsOut}


@router.post("/studies", response={201: StudyOut, 400: ErrorsOut} | _REFUSED, summary="Submit a study")
def submit_study(request: HttpRequest, plan: StudyPlan, query: ninja.Query[SubmitQuery]) -> Status[StudyOut]:
    """Queue all runs of a plan; configurations that the rules refuse are left out and told."""
    user = asker(request)
    queue, team = choose_queue(query.queue), choose_team(user, query.team)
    study = create_study(owner=user, team=team, queue=queue, plan=plan, name=query.name, tags=read_tags(query.tags))
    return Status(201, StudyOut.of(view_study(study)))


@router.post(
    "/studies/estimate", response={200: StudyEstimateOut, 400: ErrorsOut} | _REFUSED, summary="Estimate a study"
)
def weigh_study(request: HttpRequest, plan: StudyPlan, query: ninja.Query[SubmitQuery]) -> StudyEstimateOut:
    """How many runs a plan makes, what they take as far as that was measured, and what the rules leave out."""
    queue, team = choose_queue(query.queue), choose_team(asker(request), query.team)
    return StudyEstimateOut.of(estimate_study(plan, queue, team))


@router.get("/studies", response={200: list[StudyLine], 401: ErrorsOut}, summary="List studies")
def list_studies(request: HttpRequest) -> list[StudyLine]:
    """The newest 200 studies of your teams."""
    found = visible_studies(asker(request))[:200]
    return [
        StudyLine(
            id=one.pk,
            name=one.name,
            num_runs=one.num_runs,  # type: ignore[attr-defined]
            num_open=one.num_open,  # type: ignore[attr-defined]
            is_paused=one.is_paused,
        )
        for one in found
    ]


@router.get("/studies/{int:study_id}", response={200: StudyOut} | _REFUSED, summary="Look at a study")
def get_study(request: HttpRequest, study_id: int) -> StudyOut:
    """Each configuration beside the baseline."""
    return StudyOut.of(view_study(_visible(request, study_id)))


@router.post("/studies/{int:study_id}/cancel", response={200: StudyOut} | _NOT_NOW, summary="Cancel a study")
def end_study(request: HttpRequest, study_id: int, reason: str = "") -> StudyOut:
    """End every run that has not ended."""
    study = _visible(request, study_id)
    cancel_study(study, asker(request), reason)
    return StudyOut.of(view_study(study))


@router.post("/studies/{int:study_id}/pause", response={200: StudyOut} | _NOT_NOW, summary="Pause a study")
def hold_study(request: HttpRequest, study_id: int, reason: str = "") -> StudyOut:
    """Hold the runs that wait; what runs goes on."""
    study = _visible(request, study_id)
    pause_study(study, asker(request), reason)
    return StudyOut.of(view_study(study))


@router.post("/studies/{int:study_id}/resume", response={200: StudyOut} | _NOT_NOW, summary="Resume a study")
def release_study(request: HttpRequest, study_id: int) -> StudyOut:
    """Let its runs start again."""
    study = _visible(request, study_id)
    resume_study(study, asker(request))
    return StudyOut.of(view_study(study))


@router.post(
    "/studies/{int:study_id}/extend/estimate",
    response={200: StudyEstimateOut, 400: ErrorsOut} | _REFUSED,
    summary="Estimate an extension",
)
def weigh_extension(request: HttpRequest, study_id: int, extension: Extension) -> StudyEstimateOut:
    """What an extension would queue on top, and what that takes as far as it was measured."""
    return StudyEstimateOut.of(estimate_extension(_visible(request, study_id), extension))


@router.post(
    "/studies/{int:study_id}/extend", response={200: StudyOut, 400: ErrorsOut} | _NOT_NOW, summary="Extend a study"
)
def add_to_study(request: HttpRequest, study_id: int, extension: Extension) -> StudyOut:
    """Queue more repeats (`num_repeats` in all), further values or configurations; said twice, it adds nothing more."""
    study = _visible(request, study_id)
    extend_study(study, asker(request), extension)
    return StudyOut.of(view_study(study))


@router.post("/studies/{int:study_id}/clone", response={201: StudyOut} | _REFUSED, summary="Submit a study once more")
def copy_study(request: HttpRequest, study_id: int) -> Status[StudyOut]:
    """The same study of your own."""
    return Status(201, StudyOut.of(view_study(clone_study(_visible(request, study_id), asker(request)))))


@router.post(
    "/studies/{int:study_id}/share", response={200: ShareOut} | _NOT_NOW, summary="Share a study's report by a link"
)
def share_report(request: HttpRequest, study_id: int) -> ShareOut:
    """Whoever has the link reads the report without signing in, and nothing else."""
    token = share_study(_visible(request, study_id), asker(request))
    return ShareOut(url=request.build_absolute_uri(reverse("report", args=[token])))


@router.post(
    "/studies/{int:study_id}/unshare", response={200: StudyOut} | _NOT_NOW, summary="Take back the link to a report"
)
def unshare_report(request: HttpRequest, study_id: int) -> StudyOut:
    """The link leads nowhere from now on."""
    study = _visible(request, study_id)
    unshare_study(study, asker(request))
    return StudyOut.of(view_study(study))


def _visible(request: HttpRequest, study_id: int) -> Study:
    return get_object_or_404(visible_studies(asker(request)), pk=study_id)
