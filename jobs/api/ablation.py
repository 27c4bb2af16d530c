"""Ablations: made from a job, and read from a study that is one."""

from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema, Status

from jobs.ablation import Together
from jobs.api.auth import asker
from jobs.api.errors import ErrorsOut
from jobs.api.jobs import visible_job
from jobs.api.studies import LossOut, StudyOut
from jobs.selectors.ablation import Ablation, Waterfall, ablation_of
from jobs.selectors.ablation_words import together_words
from jobs.selectors.studies import view_study, visible_studies
from jobs.services.ablation import ablate_job
from jobs.statistics import RatioInterval

router = Router(tags=["studies"])


class FactorOut(Schema):
    """A factor with the half-width of its 95 % interval as a fraction of it."""

    ratio: float
    half_width: float
    n: int


class ContributionOut(Schema):
    """An option's factor alone, on top of all others, and what the others' company changes about it."""

    changes: dict[str, Any]
    alone: FactorOut | None
    on_top: FactorOut | None
    interaction: FactorOut | None
    interacts: bool
    loss: LossOut | None


class WaterfallOut(Schema):
    """One figure from the baseline to all options together; `together` says whether factors multiply or interact."""

    baseline: float | None
    product: float | None
    total: FactorOut | None
    interaction: FactorOut | None
    together: Together
    words: str
    options: list[ContributionOut]

    @classmethod
    def of(cls, waterfall: Waterfall) -> "WaterfallOut":
        """The waterfall as plain values."""
        factors = waterfall.factors
        return cls(
            baseline=waterfall.baseline,
            product=factors.product,
            total=_factor(factors.total),
            interaction=_factor(factors.interaction),
            together=factors.together,
            words=together_words(waterfall),
            options=[
                ContributionOut(
                    changes=one.changes,
                    alone=_factor(one.alone),
                    on_top=_factor(one.on_top),
                    interaction=_factor(one.interaction),
                    interacts=one.interacts,
                    loss=LossOut.of(one.loss) if one.loss else None,
                )
                for one in waterfall.contributions
            ],
        )


class AblationOut(Schema):
    """Time per step and peak memory, taken apart; the loss of all options together."""

    time: WaterfallOut
    memory: WaterfallOut
    loss: LossOut | None

    @classmethod
    def of(cls, ablation: Ablation) -> "AblationOut":
        """The ablation as plain values."""
        loss = LossOut.of(ablation.loss) if ablation.loss else None
        return cls(time=WaterfallOut.of(ablation.time), memory=WaterfallOut.of(ablation.memory), loss=loss)


_REFUSED: dict[int, type[Schema]] = {401: ErrorsOut, 404: ErrorsOut, 409: ErrorsOut, 422: ErrorsOut}


@router.post("/jobs/{int:job_id}/ablation", response={201: StudyOut} | _REFUSED, summary="Take a job's options apart")
def ablate(request: HttpRequest, job_id: int) -> Status[StudyOut]:
    """Queue its options one at a time, all together, and all but one; the study that still runs where there is one."""
    study = ablate_job(visible_job(request, job_id), asker(request))
    return Status(201, StudyOut.of(view_study(study)))


@router.get("/studies/{int:study_id}/ablation", response={200: AblationOut} | _REFUSED, summary="Read an ablation")
def get_ablation(request: HttpRequest, study_id: int) -> AblationOut:
    """What each option is worth; 404 for a study whose configurations make no ablation."""
    found = ablation_of(view_study(get_object_or_404(visible_studies(asker(request)), pk=study_id)))
    if found is None:
        raise Http404
    return AblationOut.of(found)


def _factor(interval: RatioInterval | None) -> FactorOut | None:
    return FactorOut(ratio=interval.ratio, half_width=interval.half_width, n=interval.n) if interval else None
