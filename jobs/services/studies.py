"""Studies enter as one: runs are jobs in the order A B B A; what the rules refuse is left out with its sentence."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from jobs.contract.plan import Configuration, StudyPlan, expand, interleaved, repeat_of
from jobs.contract.rules import refusals
from jobs.contract.states import OPEN_STATES
from jobs.models import Job, Queue, Study, Team, User
from jobs.selectors.hosts import findings_for
from jobs.services.actions import Act, Order, Result, perform_all
from jobs.services.errors import SpecRefused
from jobs.services.submit import submit_job


def create_study(
    *, owner: User, team: Team, queue: Queue, plan: StudyPlan, name: str = "", tags: Iterable[str] = ()
) -> Study:
    """Queue all runs of a plan, each with the tags.

    Raises `InvalidSpec` where it cannot be read, and `SpecRefused` where its baseline, or every configuration beside
    it, can run nowhere in the queue.
    """
    baseline, *others = expand(plan)
    allowed, left_out = _sort_out(others, queue)
    if not allowed:
        raise SpecRefused([finding for place in left_out for finding in place[1]])
    study = Study(owner=owner, team=team, queue=queue, plan=plan.model_dump(mode="json"))
    study.name = name.strip() or f"{baseline.spec.model} / {baseline.spec.dataset}"
    study.left_out = [
        {"place": configuration.place, "changes": configuration.changes, "findings": [f.model_dump() for f in findings]}
        for configuration, findings in left_out
    ]
    with transaction.atomic():
        study.full_clean()
        study.save()
        _submit(study, [baseline, *allowed], plan.num_repeats, list(tags))
    return study


def _sort_out(
    configurations: Iterable[Configuration], queue: Queue
) -> tuple[list[Configuration], list[tuple[Configuration, list[Any]]]]:
    allowed, left_out = [], []
    for configuration in configurations:
        refused = refusals(findings_for(configuration.spec, queue))
        if refused:
            left_out.append((configuration, refused))
        else:
            allowed.append(configuration)
    return allowed, left_out


def _submit(study: Study, configurations: list[Configuration], num_repeats: int, tags: list[str]) -> None:
    about: dict[str, Any] = {
        "tags": tags,
        "owner": study.owner,
        "team": study.team,
        "queue": study.queue,
        "study": study,
    }
    for index, repeat in interleaved(len(configurations), num_repeats):
        configuration = configurations[index]
        name = f"{study.name} · {_title(configuration)} · {repeat + 1}"
        submit_job(spec=repeat_of(configuration, repeat), name=name[:200], study_place=configuration.place, **about)


def _title(configuration: Configuration) -> str:
    return ", ".join(f"{name}={value}" for name, value in configuration.changes.items()) or "baseline"


def cancel_study(study: Study, by: User, reason: str = "") -> list[Result]:
    """Cancel every run that has not ended; what came of it for each."""
    open_runs = Job.objects.filter(study=study, state__in=OPEN_STATES).values_list("pk", flat=True)
    return perform_all(by, list(open_runs), Order(Act.CANCEL, reason))
