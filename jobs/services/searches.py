"""Searches: made once, and taken on round by round by any worker's host, whoever finds that their runs have ended."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import Error, transaction
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.plan import Arrangement, StudyPlan
from jobs.contract.rules import refusals
from jobs.contract.rules.parts import NOTHING_TO_CHANGE
from jobs.contract.search_space import axes_of
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import OPEN_STATES, State
from jobs.messages import translate
from jobs.models import AuditAction, Job, Queue, Search, Study, Team, User
from jobs.models.search import OPEN_STAGES, SearchStage
from jobs.search import Costs, finalists, least_screening_runs, next_batch, reference
from jobs.search_points import Point, Space, Trial
from jobs.selectors.hosts import findings_for
from jobs.selectors.searches import costs_of, open_searches, trials_of
from jobs.selectors.study_words import changes_in_short
from jobs.services.actions import Act, Order, Result, perform_all
from jobs.services.audit import clean_reason, note
from jobs.services.errors import NotPossible, SpecRefused
from jobs.services.estimates import want_estimate
from jobs.services.studies import create_study
from jobs.services.submit import submit_job

logger = logging.getLogger(__name__)

_SHORT = 5  # a screening run is a fifth of the full one
_FEWEST_SHORT_STEPS = 40  # the first dozen are not timed
_ESTIMATES_WAIT = timedelta(seconds=30)  # for workers that are busy; then the run itself tells


def possible_axes(spec: TrainSpec, queue: Queue) -> dict[str, list[dict[str, Any]]]:
    """The axes of a spec with the values that the queue's workers take, and that change something there."""
    found = {
        name: [dict(changes) for changes in values if not changes or _makes_sense(spec, changes, queue)]
        for name, values in axes_of(spec).items()
    }
    return {name: values for name, values in found.items() if len(values) > 1}


def create_search(
    *,
    owner: User,
    team: Team,
    queue: Queue,
    spec: TrainSpec,
    axes: Mapping[str, list[dict[str, Any]]],
    num_repeats: int = 5,
    memory_budget_bytes: int | None = None,
    loss_margin: float | None = None,
    name: str = "",
    device_names: Mapping[str, str] | None = None,
) -> Search:
    """Begin a search, on one type of device where it is given; its first round is queued by the next host that looks.

    Raises `SpecRefused` where the base cannot run in the queue, `NotPossible` where it has no number of steps, or where
    a fifth of the grid is too little to search it.
    """
    refused = refusals(findings_for(spec, queue))
    if refused:
        raise SpecRefused(refused)
    if spec.num_steps is None:
        raise NotPossible(gettext("Give the length in steps: screening takes a part of them."))
    short_steps = min(spec.num_steps, max(_FEWEST_SHORT_STEPS, spec.num_steps // _SHORT))
    search = Search(
        owner=owner,
        team=team,
        queue=queue,
        name=name.strip() or gettext("Fastest %(model)s that fits") % {"model": spec.model},
        base=spec.model_dump(mode="json"),
        axes=dict(axes),
        short_steps=short_steps,
        num_repeats=num_repeats,
        memory_budget_bytes=memory_budget_bytes,
        loss_margin=loss_margin,
        device_names=dict(device_names or {}),
    )
    _require_room(search.space, Costs(num_repeats, short_steps / spec.num_steps))
    search.full_clean()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner.pk)  # two clicks come one after the other
        if same := _same_open(search):
            return same
        search.save()
    return search


def stop_search(search: Search, by: User, reason: str = "") -> list[Result]:
    """End it: what runs is cancelled, nothing more is queued.

    Raises `NotPossible` where it has ended, or the reason is too long to keep.
    """
    reason = clean_reason(reason)
    with transaction.atomic():
        locked = Search.objects.select_for_update().get(pk=search.pk)
        if not locked.is_open:
            raise NotPossible(gettext("This search has ended already."))
        _end(locked, SearchStage.STOPPED, reason)
        note(by, AuditAction.STOP, search=locked, reason=reason)
        studies = [study for study in (locked.screening_id, locked.finals_id) if study]
        open_runs = Job.objects.filter(study__in=studies, state__in=OPEN_STATES).values_list("pk", flat=True)
        return perform_all(by, list(open_runs), Order(Act.CANCEL, reason))


def advance_open() -> int:
    """Take every search on whose runs have all ended; returns how many there are.

    One that cannot be taken on is stopped with the reason: it must not take the host down with it.
    """
    searches = list(open_searches())
    for search in searches:
        try:
            advance(search)
        except Error:
            raise  # the database is away: the host tries again
        except Exception as error:
            logger.exception("search %s cannot go on", search.pk)
            why = gettext("It could not go on: %(why)s") % {"why": error}
            _commit(search, partial(_end, stage=SearchStage.STOPPED, why=why))
    return len(searches)


def advance(search: Search) -> None:
    """Queue the next round, or judge the last one. What comes next is found first, without holding the database."""
    if why := _reason_to_stop(search):
        _commit(search, lambda locked: _end(locked, SearchStage.STOPPED, why))
    elif search.stage == SearchStage.FINALS:
        _commit(search, lambda locked: _end(locked, SearchStage.DONE))
    else:
        _advance_screening(search)


def _advance_screening(search: Search) -> None:
    trials, costs = trials_of(search), costs_of(search)
    left_out: list[dict[str, Any]] = []
    while True:
        batch = next_batch(search.space, trials, costs.num_screening_runs(search.space), search.pk)
        refused = {point: why for point in batch if point != search.space.base and (why := _refused(search, point))}
        if not refused:
            break
        left_out += [{"point": list(point), "why": why} for point, why in refused.items()]
        trials += [Trial(point, is_out=True) for point in refused]
    if not batch or _estimates_are_in(search, batch):
        _commit(search, lambda locked: _next(locked, batch, left_out, trials, costs))


def _reason_to_stop(search: Search) -> str:
    """Why it cannot go on: somebody cancelled runs of it, or its base may not run any more; empty where it can."""
    studies = [study for study in (search.screening_id, search.finals_id) if study]
    if Job.objects.filter(study__in=studies, state=State.CANCELLED).exists():
        return gettext("Runs of it were cancelled.")
    refused = refusals(findings_for(search.base_spec, search.queue))
    return translate(refused[0]) if refused else ""


def _makes_sense(spec: TrainSpec, changes: Mapping[str, Any], queue: Queue) -> bool:
    findings = findings_for(parse_spec(spec.model_dump(mode="json") | dict(changes)), queue)
    return not refusals(findings) and not any(finding.message == NOTHING_TO_CHANGE for finding in findings)


def _require_room(space: Space, costs: Costs) -> None:
    if costs.num_screening_runs(space) < least_screening_runs(space):
        raise NotPossible(
            gettext(
                "A fifth of the device time of these %(n)s configurations is too little to search them. "
                "Vary more, make the runs longer, or run all of them as a study."
            )
            % {"n": space.num_points}
        )


def _same_open(search: Search) -> Search | None:
    """The same search of the same person, where it still goes on: it is made once."""
    mine = Search.objects.filter(owner=search.owner, team=search.team, queue=search.queue, stage__in=OPEN_STAGES)
    asked = ("base", "axes", "num_repeats", "memory_budget_bytes", "loss_margin", "device_names")
    return next((one for one in mine if all(getattr(one, name) == getattr(search, name) for name in asked)), None)


def _spec(search: Search, point: Point, num_steps: int | None = None) -> TrainSpec:
    changes = search.space.changes(point)
    return parse_spec(search.base | changes | ({"num_steps": num_steps} if num_steps else {}))


def _refused(search: Search, point: Point) -> str:
    """Why a point may not run: the rules, or an estimate above the budget; empty where nothing speaks against it."""
    spec = _spec(search, point, search.short_steps)
    refused = refusals(findings_for(spec, search.queue))
    if refused:
        return translate(refused[0])
    budget = search.memory_budget_bytes  # of what is reserved, which is never less than the tensors of an estimate
    told = want_estimate(spec, search.queue).told if budget else None
    if budget and told and told.peak_bytes > budget:
        return gettext("The estimate says that it needs more memory than there is to be.")
    return ""


def _estimates_are_in(search: Search, batch: Sequence[Point]) -> bool:
    """Whether nothing is left to wait for; workers answer while they measure nothing, and not for ever."""
    if search.memory_budget_bytes is None:
        return True
    asked = [want_estimate(_spec(search, point, search.short_steps), search.queue) for point in batch]
    if all(estimate.is_answered for estimate in asked):
        return True
    if search.estimates_asked_at is None:
        Search.objects.filter(pk=search.pk, num_rounds=search.num_rounds).update(estimates_asked_at=timezone.now())
        return False
    return timezone.now() - search.estimates_asked_at > _ESTIMATES_WAIT


def _commit(search: Search, step: Callable[[Search], None]) -> None:
    """Take the step where nobody else has taken one since; else leave it to them."""
    with transaction.atomic():
        locked = (
            Search.objects.select_for_update(of=("self",)).select_related("owner", "team", "queue").get(pk=search.pk)
        )
        if locked.num_rounds == search.num_rounds and locked.is_open:
            locked.num_rounds += 1
            locked.estimates_asked_at = None
            step(locked)
            locked.save()


def _next(
    search: Search, batch: Sequence[Point], left_out: list[dict[str, Any]], trials: Sequence[Trial], costs: Costs
) -> None:
    search.left_out += left_out
    if batch:
        _screen(search, batch)
        return
    best = finalists(trials, search.space.base, costs.num_finalists)
    beside = reference(trials, search.space.base, best)
    if best and beside is not None:
        _begin_finals(search, best, beside)
    else:
        _end(search, SearchStage.DONE, _why_no_finals(search, best, beside))


def _why_no_finals(search: Search, best: Sequence[Point], beside: Point | None) -> str:
    if best:
        only = changes_in_short(search.space.changes(best[0]))
        return gettext("Only %(only)s ran to its end within the budget: there is nothing to hold it against.") % {
            "only": only
        }
    if beside is None:
        return gettext("No configuration ran to its end within the budget.")
    return gettext("Nothing beside the base ran to its end within the budget.")


def _screen(search: Search, batch: Sequence[Point]) -> None:
    """Queue each point once more, with the seed that comes next for it."""
    search.points += [list(point) for point in batch if list(point) not in search.points]
    study = _screening(search)
    for point in batch:
        place = search.points.index(list(point))
        num_before = Job.objects.filter(study=study, study_place=place).count()
        spec = _spec(search, point, search.short_steps)
        spec = spec.model_copy(update={"seed": spec.seed + num_before})
        try:
            submit_job(
                owner=search.owner, team=search.team, queue=search.queue, spec=spec, study=study, study_place=place,
                name=f"{search.name} · {place}",
            )  # fmt: skip
        except SpecRefused as error:
            _end(search, SearchStage.STOPPED, translate(error.findings[0]))
            return


def _screening(search: Search) -> Study:
    """The study of the short runs, which knows every point that has run so far."""
    plan = StudyPlan(
        base=search.base | {"num_steps": search.short_steps},
        arrangement=Arrangement.LIST,
        configurations=[search.space.changes(tuple(point)) for point in search.points[1:]],
        num_repeats=1,
    )
    if search.screening is None:
        study = Study(owner=search.owner, team=search.team, queue=search.queue, preset=f"search/{search.pk}")
        study.name = gettext("%(name)s, screening") % {"name": search.name}
        study.device_names = search.device_names
        search.screening = study
    search.screening.plan = plan.model_dump(mode="json")
    search.screening.save()
    return search.screening


def _begin_finals(search: Search, best: Sequence[Point], beside: Point) -> None:
    """The finalists at full length beside the base, or beside another where that did not run."""
    changed = search.space.changes(beside)
    as_in_base = {name: search.base[name] for name in changed}
    plan = StudyPlan(
        base=search.base | changed,
        arrangement=Arrangement.LIST,
        configurations=[as_in_base | search.space.changes(point) for point in best],
        num_repeats=search.num_repeats,
    )
    name = gettext("%(name)s, finals") % {"name": search.name}
    about: dict[str, Any] = {"owner": search.owner, "team": search.team, "queue": search.queue, "name": name}
    try:
        study = create_study(plan=plan, like=search.screening, **about)
    except SpecRefused as error:
        _end(search, SearchStage.STOPPED, translate(error.findings[0]))
        return
    study.preset = f"search/{search.pk}"
    study.save(update_fields=["preset"])
    search.finals, search.stage = study, SearchStage.FINALS


def _end(search: Search, stage: SearchStage, why: str = "") -> None:
    search.stage, search.note, search.ended_at = stage, why, timezone.now()
    search.save()
