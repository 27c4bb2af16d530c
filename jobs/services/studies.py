"""Studies enter, grow, rest and end as one: runs are jobs in the order A B B A; what the rules refuse is left out."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from jobs.contract.findings import Finding
from jobs.contract.plan import Configuration, Extension, StudyPlan, expand, extend, repeat_of
from jobs.contract.states import OPEN_STATES, State
from jobs.models import AuditAction, Job, Queue, Search, Study, Team, User
from jobs.models.search import OPEN_STAGES
from jobs.selectors.claims import preset_asked
from jobs.selectors.studies import (
    Repeat,
    configurations_of,
    in_turns,
    may_change_study,
    missing_runs,
    refused_by,
)
from jobs.selectors.study_words import changes_in_short
from jobs.services.actions import Act, Order, Result, perform_all
from jobs.services.audit import clean_reason, note
from jobs.services.errors import NotAllowed, NotPossible, SpecRefused
from jobs.services.submit import Run, store_jobs
from jobs.services.wake import wake_on_commit


def create_study(
    *,
    owner: User,
    team: Team,
    queue: Queue,
    plan: StudyPlan,
    name: str = "",
    tags: Iterable[str] = (),
    like: Study | None = None,
) -> Study:
    """Queue all runs of a plan, each with the tags, on the same type of device as those of a study that it is like.

    Raises `InvalidSpec` where it cannot be read, and `SpecRefused` where its baseline, or every configuration beside
    it, can run nowhere in the queue.
    """
    configurations = expand(plan)
    baseline, *others = configurations
    left_out = refused_by(queue, others)
    if len(left_out) == len(others):
        raise SpecRefused([finding for _configuration, findings in left_out for finding in findings])
    out = {one.place for one, _findings in left_out}
    able = [one for one in configurations if one.place not in out]
    study = Study(owner=owner, team=team, queue=queue, plan=plan.model_dump(mode="json"))
    study.name = name.strip() or f"{baseline.spec.model} / {baseline.spec.dataset}"
    study.preset = preset_asked([baseline, *others])
    study.left_out = as_entries(left_out)
    study.adds_repeats = plan.until_sure
    study.device_names = like.device_names if like else {}
    with transaction.atomic():
        study.full_clean()
        study.save()
        submit_runs(study, in_turns(able, plan.num_repeats), tags, checked={one.place for one in others})
    return study


def clone_study(study: Study, by: User) -> Study:
    """The same study once more, of the person who asks. Raises `SpecRefused` as a submission does."""
    about: dict[str, Any] = {"plan": study.study_plan, "name": study.name, "tags": tags_of(study)}
    with transaction.atomic():
        copy = create_study(owner=by, team=study.team, queue=study.queue, **about)
        note(by, AuditAction.CLONE, study=copy, source=study.pk)
    return copy


def extend_study(study: Study, by: User, extension: Extension) -> int:
    """Queue what comes on top, in turns; returns how many runs that are. Said twice, it adds nothing more.

    Raises `InvalidSpec` and `SpecRefused` as a submission does, `NotPossible` for the short runs of a search that goes
    on: it counts them, and gives their places to what it tries next.
    """
    with transaction.atomic():
        locked = Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
        require_change(by, locked)
        if Search.objects.filter(screening=locked, stage__in=OPEN_STAGES).exists():
            raise NotPossible(gettext("A search is adding to this study. Extend it once the search has ended."))
        plan = extend(locked.study_plan, extension)
        new = expand(plan)[len(expand(locked.study_plan)) :]
        locked.plan = plan.model_dump(mode="json")
        locked.left_out = [*locked.left_out, *as_entries(refused_by(locked.queue, new))]
        locked.adds_repeats = plan.until_sure
        locked.save(update_fields=["plan", "left_out", "adds_repeats"])
        missing = missing_runs(locked, configurations_of(locked), plan.num_repeats)
        submit_runs(locked, missing, tags_of(locked), checked={one.place for one in new})
        num_added = len(missing)
        if num_added:
            note(by, AuditAction.EXTEND, study=locked, runs=num_added)
    study.refresh_from_db()
    return num_added


def pause_study(study: Study, by: User, reason: str = "") -> None:
    """Hold the runs that wait; what runs goes on. Where it is paused already, nothing changes."""
    require_change(by, study)
    now = {"paused_at": timezone.now(), "paused_by": by, "pause_reason": clean_reason(reason)}
    with transaction.atomic():
        _lock_lines(study)
        if Study.objects.filter(pk=study.pk, paused_at=None).update(**now):
            note(by, AuditAction.PAUSE, study=study, reason=reason)
    study.refresh_from_db()


def resume_study(study: Study, by: User) -> None:
    """Let its runs be claimed again; where it is not paused, nothing changes."""
    require_change(by, study)
    with transaction.atomic():
        paused = Study.objects.filter(pk=study.pk).exclude(paused_at=None)
        if paused.update(paused_at=None, paused_by=None, pause_reason=""):
            note(by, AuditAction.RESUME, study=study)
            for queue in _lock_lines(study):
                wake_on_commit(queue.name)
    study.refresh_from_db()


def cancel_study(study: Study, by: User, reason: str = "") -> list[Result]:
    """Cancel every run that has not ended, and add no more; what came of it for each."""
    require_change(by, study)
    with transaction.atomic():
        Study.objects.filter(pk=study.pk).update(adds_repeats=False)
        open_runs = Job.objects.filter(study=study, state__in=OPEN_STATES).values_list("pk", flat=True)
        results = perform_all(by, list(open_runs), Order(Act.CANCEL, reason))
        if results:
            note(by, AuditAction.CANCEL, study=study, reason=reason)
    return results


def require_change(by: User, study: Study) -> None:
    """Raises `NotAllowed` where the study is another's."""
    if not may_change_study(by, study):
        raise NotAllowed(gettext("This study is not yours. Its owner or staff can do this."))


def _lock_lines(study: Study) -> list[Queue]:
    """The queues in which its runs wait; a claim locks them too, so that none is taken while the study changes."""
    waiting = Job.objects.filter(study=study, state=State.QUEUED).values("queue")
    return list(Queue.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=waiting).order_by("pk"))


def as_entries(left_out: Iterable[tuple[Configuration, list[Finding]]]) -> list[dict[str, Any]]:
    """Configurations that are left out, as they are stored and told."""
    return [
        {"place": one.place, "changes": one.changes, "findings": [finding.model_dump() for finding in findings]}
        for one, findings in left_out
    ]


def submit_runs(study: Study, runs: Sequence[Repeat], tags: Iterable[str], *, checked: Collection[int] = ()) -> None:
    """Queue runs of a study. Each configuration is put to the rules once, for its repeats differ in their seeds only.

    Raises `SpecRefused` where one can run nowhere in the queue; places that were `checked` are not asked about again.
    """
    asked = {one.place: one for one, _repeat in runs if one.place not in checked}
    if refused := refused_by(study.queue, asked.values()):
        raise SpecRefused(refused[0][1])
    jobs = [_run(study, *each) for each in runs]
    store_jobs(jobs, tags, owner=study.owner, team=study.team, queue=study.queue, study=study)


def _run(study: Study, configuration: Configuration, repeat: int) -> Run:
    title = changes_in_short(configuration.changes) or gettext("baseline")
    name = f"{study.name} · {title} · {repeat + 1}"
    return Run(repeat_of(configuration, repeat), name[:200], configuration.place)


def tags_of(study: Study) -> list[str]:
    """The tags of its first run: a submission puts the same ones on every run."""
    first = Job.objects.filter(study=study).order_by("pk").first()
    return first.tag_names() if first else []
