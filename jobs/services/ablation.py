"""A job's options are taken apart: one click makes the study."""

from django.db import transaction
from django.utils.translation import gettext

from jobs.contract.ablation import MOST_OPTIONS, USUAL_OPTIONS, Option, options_of, plan_ablation
from jobs.contract.rules import refusals
from jobs.contract.rules.parts import NOTHING_TO_CHANGE
from jobs.contract.spec import TrainSpec, parse_spec
from jobs.contract.states import OPEN_STATES
from jobs.models import Job, Queue, Study, User
from jobs.selectors.hosts import findings_for
from jobs.services.clone import spec_to_repeat
from jobs.services.errors import NotPossible
from jobs.services.studies import create_study

NUM_REPEATS = 5


def ablate_job(job: Job, by: User) -> Study:
    """Queue the ablation of a job's options; the one that still runs where there is one, so that it is made once.

    A job without options is the baseline of the usual ones. Raises `NotPossible` where fewer than two can run in its
    queue, `SpecRefused` where its baseline cannot.
    """
    preset = f"ablation/{job.pk}"
    spec = spec_to_repeat(job)
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=job.pk)  # two clicks come one after the other
        running = Study.objects.filter(team=job.team, preset=preset, jobs__state__in=OPEN_STATES).first()
        if running:
            return running
        options = options_of(spec) or _usual(spec, job.queue)
        if not 2 <= len(options) <= MOST_OPTIONS:
            raise NotPossible(
                gettext("An ablation takes 2 to %(most)s options apart; job %(job)s has %(n)s that can run here.")
                % {"most": MOST_OPTIONS, "job": job.pk, "n": len(options)}
            )
        plan = plan_ablation(spec, options, NUM_REPEATS)
        name = gettext("Ablation of #%(job)s") % {"job": job.pk}
        study = create_study(owner=by, team=job.team, queue=job.queue, plan=plan, name=name)
        study.preset = preset
        study.save(update_fields=["preset"])
    return study


def _usual(spec: TrainSpec, queue: Queue) -> list[Option]:
    """The usual options that the queue's workers take one on top of the other, and that change something here."""
    chosen: list[Option] = []
    for option in USUAL_OPTIONS:
        together = {name: value for one in [*chosen, option] for name, value in one.items()}
        candidate = parse_spec(spec.model_dump(mode="json") | together)
        findings = findings_for(candidate, queue)
        if not refusals(findings) and not any(finding.message == NOTHING_TO_CHANGE for finding in findings):
            chosen.append(option)
    return chosen
