import json
from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.contract.findings import Finding
from jobs.contract.plan import Arrangement, Axis, Extension, StudyPlan
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.equal_loss import LossVerdict
from jobs.figures.study import study_figures
from jobs.models import Attempt, Job, Queue, Study, User, Workload
from jobs.selectors.hosts import Abilities, mildest_findings
from jobs.selectors.studies import view_study, visible_studies
from jobs.selectors.study_words import headline, row_words
from jobs.services.errors import SpecRefused
from jobs.services.finish import finish_attempt
from jobs.services.studies import cancel_study, create_study, extend_study
from jobs.statistics import Verdict
from tests.jobs.factories import make_spec, make_summary, make_worker, start

pytestmark = pytest.mark.django_db

BASE = make_spec(model="gpt-tiny", dataset="stdlib-text").model_dump(mode="json")


def plan(num_repeats: int = 5, base: dict[str, object] | None = None, **axes: list[object]) -> StudyPlan:
    asked = [Axis(field=field, values=values) for field, values in axes.items()]
    return StudyPlan(base=base or BASE, axes=asked, num_repeats=num_repeats, arrangement=Arrangement.ONE_AT_A_TIME)


def submit(alice: User, queue: Queue, asked: StudyPlan) -> Study:
    return create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=asked)


def run(study: Study, place: int, step_time_ms: float, loss: float, outcome: Outcome = Outcome.SUCCEEDED) -> None:
    """End all runs of a configuration; figures scatter a little with the seed, alike for all configurations."""
    for job in study.jobs.filter(study_place=place):
        noise = 1 + 0.002 * (job.spec["seed"] % 3)
        worker = make_worker()
        summary = make_summary(steady_step_time_ms=noise * step_time_ms, final_eval_loss=noise * loss)
        finish_attempt(start(job, worker), outcome, summary)


def test_a_gpus_memory_is_not_held_against_a_processs(alice: User, queue: Queue) -> None:
    make_worker(num_gpus=1)
    study = submit(alice, queue, plan(3, base=BASE | {"device": "cpu"}, device=["cuda"]))
    for job in study.jobs.all():
        on_gpu = {"peak_allocated_bytes": 2**28, "peak_reserved_bytes": 2**28} if job.study_place else {}
        started = start(job, make_worker(num_gpus=1), device_name="Fast GPU" if job.study_place else "Fast CPU")
        finish_attempt(started, Outcome.SUCCEEDED, make_summary(steady_step_time_ms=5 + job.spec["seed"], **on_gpu))
    row = next(row for row in view_study(study).rows if not row.is_baseline)
    assert row.time
    assert row.memory is None, "a quarter of a GiB of tensors is not half of what a process of half a GiB holds"
    assert "memory" not in row_words(row)


def test_runs_enter_in_turns_with_paired_seeds(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(2, optimizer=["sgd"]))
    line = Job.objects.filter(study=study).order_by("-priority", "order_key", "id")
    assert [(job.study_place, job.spec["seed"] - BASE["seed"]) for job in line] == [(0, 0), (1, 0), (1, 1), (0, 1)]


def test_the_verdict_is_faster_at_equal_loss_only_where_both_are_shown(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(5, num_threads=[1, 2, 3]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=5.0, loss=2.0)
    run(study, 2, step_time_ms=4.0, loss=2.5)
    run(study, 3, step_time_ms=10.0, loss=2.0)
    view = view_study(study)
    found = {row.configuration.place: (row.time_verdict, row.loss and row.loss.verdict, row.ranks) for row in view.rows}
    assert found == {
        0: (Verdict.TOO_FEW, None, True),
        1: (Verdict.BETTER, LossVerdict.EQUAL, True),
        2: (Verdict.BETTER, LossVerdict.WORSE, False),
        3: (Verdict.TIE, LossVerdict.EQUAL, True),
    }
    assert view.rows[0].configuration.place == 1
    assert view.rows[-1].configuration.place == 2
    assert headline(view) == "CPU threads 1 is 2.00 times faster (95 % interval 2.00 to 2.00, n = 5) at equal loss."


def test_the_margin_is_one_percent_of_the_first_runs_loss_and_stays(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(2, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    [workload] = Workload.objects.all()
    assert workload.loss_margin == pytest.approx(0.02, rel=0.01)
    run(study, 1, step_time_ms=10.0, loss=4.0)
    assert Workload.objects.get() == workload
    assert Workload.objects.get().loss_margin == workload.loss_margin


def test_a_margin_wider_than_the_baselines_loss_bears_does_not_count(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(3, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    Workload.objects.update(loss_margin=0.5)  # as of a first run that ended at a loss of 50
    run(study, 1, step_time_ms=5.0, loss=2.2)
    view = view_study(study)
    row = next(row for row in view.rows if not row.is_baseline)
    assert (view.is_margin_capped, row.loss and row.loss.verdict, view.winner) == (True, LossVerdict.WORSE, None)
    page = Client()
    page.force_login(alice)
    assert "the first run of this work ended far worse" in page.get(f"/studies/{study.pk}/").content.decode()


def test_charts_name_each_configuration_whole(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(2, optimizer_impl=["foreach"]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=5.0, loss=2.0)
    figures = study_figures(view_study(study))
    assert set(figures) == {"speed", "runs", "loss", "memory"}
    for figure in figures.values():
        go.Figure(figure)  # refuses what Plotly does not know
        assert figure["layout"]["yaxis"]["ticktext"] == ["Baseline", "optimizer implementation<br>foreach"]


def test_the_newest_study_is_listed_first(alice: User, queue: Queue) -> None:
    made = [submit(alice, queue, plan(1, num_threads=[number])) for number in (1, 2, 3)]
    assert list(visible_studies(alice)) == made[::-1]


def test_one_repeat_is_too_few_for_a_verdict(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(1, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=1.0, loss=2.0)
    view = view_study(study)
    assert view.winner is None
    assert view.is_over


def test_what_the_rules_refuse_is_left_out_with_its_sentence(alice: User, queue: Queue) -> None:
    make_worker()
    study = submit(alice, queue, plan(2, precision=["fp8", "bf16-mixed"]))
    [left_out] = study.left_out
    assert left_out["changes"] == {"precision": "fp8"}
    assert left_out["findings"]
    assert Job.objects.filter(study=study).count() == 4
    assert [row.configuration.changes for row in view_study(study).rows] == [{}, {"precision": "bf16-mixed"}]


def test_where_all_is_refused_nothing_is_queued(alice: User, queue: Queue) -> None:
    make_worker()
    with pytest.raises(SpecRefused):
        submit(alice, queue, plan(2, precision=["fp8"]))
    with pytest.raises(SpecRefused):
        submit(alice, queue, plan(2, base=BASE | {"precision": "fp8"}, num_threads=[1]))
    assert not Job.objects.exists()
    assert not Study.objects.exists()


def test_what_diverged_stays_what_it_is(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(2, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=1.0, loss=2.0, outcome=Outcome.DIVERGED)
    last = view_study(study).rows[-1]
    assert (last.outcomes, last.ranks, last.time) == ({"diverged": 2}, False, None)


def test_runs_that_came_through_where_others_diverged_show_no_equal_loss(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(3, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=5.0, loss=2.0)
    Job.objects.filter(study=study, study_place=1, spec__seed=2).update(state="diverged", outcome="diverged")
    view = view_study(study)
    row = next(row for row in view.rows if not row.is_baseline)
    assert (view.winner, row.ranks, row.loss.n, row.loss.num_diverged) == (None, False, 2, 1)
    assert row_words(row).endswith(
        "Whether its loss is equal is not shown. 1 of its 3 runs diverged and are not in these figures."
    )


def test_its_sentence_tells_of_runs_that_diverged_with_the_baselines(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(3, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=5.0, loss=2.0)
    Job.objects.filter(study=study, spec__seed=2).update(state="diverged", outcome="diverged")
    assert headline(view_study(study)).endswith("at equal loss. 1 of its 3 runs diverged and are not in these figures.")


def test_only_runs_on_the_same_ground_are_paired(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(3, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    run(study, 1, step_time_ms=5.0, loss=2.0)
    runs = Attempt.objects.filter(job__study=study, job__study_place=1)
    runs.filter(job__spec__seed=2).update(environment_key="elsewhere", steady_step_time_ms=1000.0)
    row = view_study(study).rows[0]
    assert row.time is not None
    assert (row.time.n, row.time.ratio) == (2, pytest.approx(0.5))
    runs.update(environment_key="elsewhere")
    view = view_study(study)
    assert [row.time for row in view.rows] == [None, None]
    assert "only those on the same are held against each other" in headline(view)


def test_a_study_is_cancelled_as_one(alice: User, queue: Queue) -> None:
    study = submit(alice, queue, plan(2, num_threads=[1]))
    run(study, 0, step_time_ms=10.0, loss=2.0)
    results = cancel_study(study, alice, "a typing error")
    assert len(results) == 2
    assert set(study.jobs.filter(study_place=1).values_list("state", "cancel_reason")) == {
        ("cancelled", "a typing error")
    }
    assert study.jobs.filter(state="succeeded").count() == 2


def test_the_api_submits_shows_and_cancels(api: Client, alice: User, queue: Queue) -> None:
    asked = {"base": BASE, "axes": [{"field": "num_threads", "values": [1]}], "num_repeats": 2}
    answer = api.post("/api/v1/studies?tags=night", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 201
    assert Job.objects.filter(tags__name="night").count() == 4
    study = answer.json()
    assert [(row["changes"], len(row["jobs"])) for row in study["rows"]] == [({}, 2), ({"num_threads": 1}, 2)]
    assert api.get(f"/api/v1/studies/{study['id']}").json()["num_runs"] == 4
    assert [line["num_open"] for line in api.get("/api/v1/studies").json()] == [4]
    ended = api.post(f"/api/v1/studies/{study['id']}/cancel").json()
    assert ended["num_done"] == 4


def test_the_api_says_what_is_wrong_with_a_plan(api: Client, alice: User, queue: Queue) -> None:
    asked = {"base": BASE, "axes": [{"field": "precision", "values": ["fp31"]}]}
    answer = api.post("/api/v1/studies", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["precision"]


def test_a_study_of_another_team_is_not_there(alice: User, stranger: User, queue: Queue, api: Client) -> None:
    study = create_study(owner=stranger, team=stranger.teams.get(), queue=queue, plan=plan(2, num_threads=[1]))
    assert api.get(f"/api/v1/studies/{study.pk}").status_code == 404
    assert api.post(f"/api/v1/studies/{study.pk}/cancel").status_code == 404


def test_each_configuration_is_put_to_the_rules_once_however_often_it_runs(
    alice: User, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[TrainSpec] = []

    def remember(spec: TrainSpec, hosts: Sequence[Abilities]) -> list[Finding]:
        asked.append(spec)
        return mildest_findings(spec, hosts)

    monkeypatch.setattr("jobs.selectors.studies.mildest_findings", remember)
    study = submit(alice, queue, plan(15, optimizer=["sgd", "rmsprop"]))
    assert len(asked) == 3
    extend_study(study, alice, Extension(configurations=[{"optimizer": "adagrad"}]))
    assert [spec.optimizer for spec in asked[3:]] == ["adagrad"]
    assert Job.objects.filter(study=study).count() == 4 * 15


def test_more_runs_cost_no_more_questions(alice: User, queue: Queue) -> None:
    submit(alice, queue, plan(1, optimizer=["sgd"]))  # what is asked once in a process has been asked
    counts = []
    for repeats in (2, 8):
        with CaptureQueriesContext(connection) as queries:
            create_study(
                owner=alice, team=alice.teams.get(), queue=queue, plan=plan(repeats, optimizer=["sgd"]), tags=["night"]
            )
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert Job.objects.filter(tags__name="night").count() == 20


def test_a_baseline_that_no_worker_takes_is_refused_and_nothing_is_stored(alice: User, queue: Queue) -> None:
    make_worker()
    with pytest.raises(SpecRefused):
        submit(alice, queue, plan(2, base=BASE | {"device": "cuda"}, device=["cpu"]))
    assert not Study.objects.exists()
    assert not Job.objects.exists()


def test_runs_that_enter_together_stand_apart_in_the_line(alice: User, queue: Queue) -> None:
    submit(alice, queue, plan(15, optimizer=["sgd"]))
    keys = list(Job.objects.order_by("id").values_list("order_key", flat=True))
    assert keys == sorted(set(keys))
    assert min(after - before for before, after in pairwise(keys)) > 5e-5  # others can be placed between them


def test_a_study_sends_a_few_wake_ups_and_none_after_one_that_was_not_sent(
    alice: User,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    for is_sent in (True, False):
        woken: list[str] = []
        monkeypatch.setattr("jobs.services.wake.wake", lambda name, to=woken, sent=is_sent: to.append(name) or sent)
        with django_capture_on_commit_callbacks(execute=True):
            submit(alice, queue, plan(15, optimizer=["sgd"]))
        assert len(woken) == (8 if is_sent else 1)
