"""An ablation: made from a job at one click, and shown as a part of its study's page."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from jobs.ablation import Bar
from jobs.messages import translate
from jobs.selectors.ablation import Ablation, Waterfall, ablation_of
from jobs.selectors.ablation_words import factor_words, loss_words, together_words
from jobs.selectors.studies import StudyView
from jobs.services.ablation import ablate_job
from jobs.services.errors import NotPossible, SpecRefused
from jobs.views.access import person, visible_job
from jobs.views.rows import Chip, change_chips


@dataclass(frozen=True)
class ShownBar:
    """Where a bar stands on its track, in percent of it."""

    left: float
    width: float


@dataclass(frozen=True)
class ShownStep:
    """A line of the waterfall: the baseline, an option, the interaction, or all together."""

    kind: str
    title: str = ""
    chips: list[Chip] = field(default_factory=list)
    alone: str = ""
    on_top: str = ""
    interacts: bool = False
    bar: ShownBar | None = None
    level: float | None = None  # where the bar ends, in ms or bytes
    loss: str = ""


@dataclass(frozen=True)
class ShownPart:
    """The waterfall of one figure."""

    figure: str
    title: str
    rows: list[ShownStep]
    words: str


@dataclass(frozen=True)
class ShownAblation:
    """Time and memory."""

    parts: list[ShownPart]


@require_POST
def job_ablation(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the ablation of a job's options and go there."""
    job = visible_job(request, pk)
    try:
        study = ablate_job(job, person(request))
    except NotPossible as error:
        messages.error(request, str(error))
    except SpecRefused as error:
        messages.error(request, translate(error.findings[0]))
    else:
        return redirect("study", study.pk)
    return redirect("job-detail", pk)


def shown_ablation(view: StudyView) -> ShownAblation | None:
    """A study's ablation as its page and its report show it; None where it is none."""
    ablation = ablation_of(view)
    if ablation is None:
        return None
    titles = {"time": gettext("Step time"), "memory": gettext("Peak memory")}
    return ShownAblation(
        [
            ShownPart(one.figure, titles[one.figure], _steps(one, ablation), together_words(one))
            for one in (ablation.time, ablation.memory)
        ]
    )


def _steps(waterfall: Waterfall, ablation: Ablation) -> list[ShownStep]:
    bars: Sequence[Bar | None] = waterfall.bars or [None] * (len(waterfall.contributions) + 3)
    placed = _placed(waterfall.bars) or [None] * len(bars)
    levels = [bar.end if bar else None for bar in bars]
    factors = waterfall.factors
    options = [
        ShownStep(
            kind=_direction(one.bar),
            chips=change_chips(one.changes),
            alone=factor_words(one.alone),
            on_top=factor_words(one.on_top),
            interacts=one.interacts,
            bar=placed[number],
            level=levels[number],
            loss=loss_words(one.loss),
        )
        for number, one in enumerate(waterfall.contributions, start=1)
    ]
    interaction, total = factor_words(factors.interaction), factor_words(factors.total)
    left = ShownStep(
        _direction(bars[-2]), gettext("Acting together"), [], interaction, bar=placed[-2], level=levels[-2]
    )
    end = ShownStep("end", gettext("All together"), [], total, bar=placed[-1], level=levels[-1])
    return [
        ShownStep("end", gettext("Baseline"), bar=placed[0], level=waterfall.baseline),
        *options,
        left,
        replace(end, loss=loss_words(ablation.loss)),
    ]


def _placed(bars: Sequence[Bar]) -> list[ShownBar | None]:
    """All bars on one scale from zero; a bar of next to nothing stays visible."""
    most = max((max(bar.start, bar.end) for bar in bars), default=0.0)
    return [
        ShownBar(100 * min(bar.start, bar.end) / most, max(100 * abs(bar.end - bar.start) / most, 0.4)) for bar in bars
    ]


def _direction(bar: Bar | None) -> str:
    return "more" if bar and bar.end > bar.start else "less"
