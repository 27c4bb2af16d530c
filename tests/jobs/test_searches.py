import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.test import Client

from jobs.contract.estimates import Estimate
from jobs.contract.search_space import axes_of
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome, State
from jobs.models import AuditEntry, Board, Job, Queue, Search, SpecEstimate, User
from jobs.models.search import SearchStage
from jobs.selectors.audit import visible_entries
from jobs.selectors.search_words import search_words
from jobs.selectors.searches import trials_of, view_search
from jobs.services.boards import rebuild_boards
from jobs.services.errors import NotPossible
from jobs.services.estimates import store_answer
from jobs.services.finish import finish_attempt
from jobs.services.searches import advance, advance_open, create_search, possible_axes, stop_search
from jobs.statistics import Verdict
from tests.jobs.factories import make_ended_job, make_job, make_spec, make_summary, make_worker, start

FACTORS = {"precision": 0.7, "compile_mode": 0.8, "optimizer_impl": 0.95, "grad_accum_steps": 1.3}
AXES = ["precision", "compile", "optimizer", "batch"]
FEW_AXES = ["precision", "optimizer", "batch"]
FASTEST = {
    "precision",
    "compile_mode",
    "optimizer_impl",
    "micro_batch_size",
    "grad_accum_steps",
}  # what is not split is large


def test_axes_keep_the_work_and_begin_with_what_the_spec_has() -> None:
    spec = make_spec(micro_batch_size=8, grad_accum_steps=2, precision="bf16-mixed")
    axes = axes_of(spec)
    assert all(values[0] == {} for values in axes.values())
    assert {"precision": "bf16-mixed"} not in axes["precision"]
    for changes in axes["batch"]:
        changed = TrainSpec.model_validate(spec.model_dump(mode="json") | changes)
        assert changed.global_batch_size == spec.global_batch_size


@pytest.mark.django_db
class TestASearch:
    def begin(self, alice: User, queue: Queue, names: Sequence[str] = AXES, **values: object) -> Search:
        make_worker()
        spec = make_spec(num_steps=1000, micro_batch_size=16)
        axes = {name: values for name, values in possible_axes(spec, queue).items() if name in names}
        about = {"owner": alice, "team": alice.teams.get(), "queue": queue, "spec": spec, "axes": axes}
        begun = create_search(**(about | {"num_repeats": 3} | values))
        return Search.objects.get(pk=begun.pk)  # as hosts read it: PostgreSQL keeps axes in an order of its own

    def run(
        self,
        loss: float = 2.0,
        runs_out: Callable[[dict[str, Any]], bool] = lambda spec: False,
        memory: Callable[[int], dict[str, int]] = lambda size: {"peak_rss_bytes": size},
    ) -> int:
        """End every run that waits, as fast as its options make it, or out of memory."""
        waiting = list(Job.objects.filter(state=State.QUEUED))
        worker = make_worker()
        defaults = make_spec(micro_batch_size=16).model_dump(mode="json")
        for job in waiting:
            factor = 1 + 0.001 * (job.spec["seed"] % 3)
            for name, each in FACTORS.items():
                factor *= each if job.spec[name] != defaults[name] else 1
            is_large = job.spec["grad_accum_steps"] == 1
            summary = make_summary(
                steady_step_time_ms=10 * factor, final_eval_loss=loss, **memory((2 if is_large else 1) * 2**30)
            )
            if runs_out(job.spec):
                finish_attempt(start(job, worker), Outcome.OUT_OF_MEMORY)
            else:
                finish_attempt(start(job, worker), Outcome.SUCCEEDED, summary)
        return len(waiting)

    def to_the_end(self, search: Search, **how: Any) -> tuple[Search, int]:
        num_runs = 0
        for _round in range(60):
            advance_open()
            for estimate in SpecEstimate.objects.filter(answer__isnull=True):
                store_answer(estimate, make_estimate(2**29))
            advance_open()
            num_runs += self.run(**how)
            search.refresh_from_db()
            if not search.is_open:
                return search, num_runs
        raise AssertionError("it goes on for ever")

    def test_it_finds_the_fastest_that_fits_and_says_so_with_the_evidence(self, alice: User, queue: Queue) -> None:
        search, num_runs = self.to_the_end(self.begin(alice, queue, memory_budget_bytes=2**30))
        view = view_search(search)
        assert search.stage == SearchStage.DONE
        assert view.best
        assert view.best.changes.keys() == FASTEST
        assert view.best.row.time.n == 3
        num_short = search.screening.jobs.count()
        assert num_short / 5 + (num_runs - num_short) <= 0.2 * search.space.num_points * 3
        assert "Equal loss." in browser_of(alice).get(f"/searches/{search.pk}/").content.decode()

    def test_from_a_job_it_keeps_to_the_type_of_device_on_which_that_ran(self, alice: User, queue: Queue) -> None:
        job = make_ended_job(alice, spec=make_spec(num_steps=1000, micro_batch_size=16))
        web = browser_of(alice)
        page = web.get(f"/jobs/{job.pk}/search/").content.decode()
        assert "It ran on Fast CPU, and the search keeps to that type of device." in page
        web.post(f"/jobs/{job.pk}/search/", {"axes": list(AXES), "num_steps": 1000, "num_repeats": 3})
        search, _num_runs = self.to_the_end(Search.objects.get())
        kept = {"cpu": "Fast CPU", "auto": "cpu"}
        assert [search.device_names, search.screening.device_names, search.finals.device_names] == [kept] * 3

    def test_the_api_takes_a_type_of_device_that_the_queue_has(self, api: Client, alice: User, queue: Queue) -> None:
        make_worker()
        body = {"base": make_spec(num_steps=1000, micro_batch_size=16).model_dump(mode="json"), "num_repeats": 2}
        for name, status in (("Slow CPU", 422), ("Fast CPU", 201)):
            sent = json.dumps(body | {"device_name": name})
            assert api.post("/api/v1/searches", sent, content_type="application/json").status_code == status
        assert Search.objects.get().device_names == {"cpu": "Fast CPU", "auto": "cpu"}

    def test_only_its_finals_stand_on_boards(self, alice: User, queue: Queue) -> None:
        self.to_the_end(self.begin(alice, queue))
        [board] = Board.objects.all()
        assert board.workload["num_steps"] == 1000
        list(rebuild_boards())
        assert list(Board.objects.all()) == [board]

    def test_a_base_that_runs_out_of_memory_leaves_a_winner_among_the_others(self, alice: User, queue: Queue) -> None:
        begun = self.begin(alice, queue, FEW_AXES)
        search, _runs = self.to_the_end(begun, runs_out=lambda spec: spec["precision"] == "fp32")
        view = view_search(search)
        assert view.best
        assert view.best.changes["precision"] != "fp32"
        assert view.best.row.step_time_ms == min(one.row.step_time_ms for one in view.finalists)
        assert not any(one.is_base for one in view.finalists), "it is not asked to run at full length"
        page = browser_of(alice).get(f"/searches/{search.pk}/").content.decode()
        assert "is the fastest that fits; the base does not run to its end here." in page
        assert "Equal loss." in page

    def test_of_a_gpu_what_was_reserved_must_fit(self, alice: User, queue: Queue) -> None:
        """As on a board: tensors that would fit do not say that the run did with so little."""
        begun = self.begin(alice, queue, memory_budget_bytes=2**30)
        search, _runs = self.to_the_end(
            begun, memory=lambda size: {"peak_allocated_bytes": size // 3, "peak_reserved_bytes": size}
        )
        view = view_search(search)
        assert view.best
        assert view.best.changes["grad_accum_steps"] > 1, "what is not split reserves two GiB"
        assert view.base_is_out
        [base] = [point for point in view.screened if not point.changes]
        assert (base.is_out, base.peak_bytes) == (True, 2**31)
        assert "PyTorch reserved" in browser_of(alice).get(f"/searches/{search.pk}/").content.decode()

    def test_a_base_that_does_not_fit_may_be_faster_than_the_winner(
        self, alice: User, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(FACTORS, "grad_accum_steps", 5.0)  # what is split fits, and is slow
        search, _runs = self.to_the_end(self.begin(alice, queue, FEW_AXES, memory_budget_bytes=2**30))
        view = view_search(search)
        assert view.best
        assert view.best.changes["grad_accum_steps"] > 1
        assert view.best.row.time_verdict is Verdict.WORSE
        assert "is the fastest that fits; the base does not. Beside it: " in search_words(view)

    def test_where_nothing_runs_it_says_so(self, alice: User, queue: Queue) -> None:
        search, num_runs = self.to_the_end(self.begin(alice, queue, FEW_AXES), runs_out=lambda spec: True)
        assert search_words(view_search(search)) == "No configuration ran to its end within the budget."
        assert num_runs / 5 <= 0.2 * search.space.num_points * 3

    def test_what_an_estimate_says_is_too_large_never_runs(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue, memory_budget_bytes=2**30)
        advance(search)
        assert not Job.objects.exists(), "it waits for the estimates"
        large = [estimate for estimate in SpecEstimate.objects.all() if estimate.spec["precision"] != "fp32"]
        for estimate in SpecEstimate.objects.all():
            store_answer(estimate, make_estimate(2**31 if estimate in large else 2**29))
        search.refresh_from_db()
        advance(search)
        for estimate in SpecEstimate.objects.filter(answer__isnull=True):
            store_answer(estimate, make_estimate(2**29))
        search.refresh_from_db()
        advance(search)
        search.refresh_from_db()
        assert large
        assert len(search.left_out) >= len(large)
        assert not Job.objects.exclude(spec__precision="fp32").exists()

    def test_two_hosts_queue_a_round_once_and_a_restart_loses_nothing(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        other = Search.objects.get(pk=search.pk)
        advance(search)
        num_queued = Job.objects.count()
        assert num_queued > 1
        advance(other)
        assert advance_open() == 0, "its runs are open"
        assert Job.objects.count() == num_queued
        self.run()
        assert advance_open() == 1
        assert Job.objects.count() > num_queued

    def test_the_same_search_is_begun_once(self, alice: User, queue: Queue) -> None:
        assert self.begin(alice, queue) == self.begin(alice, queue)

    def test_a_grid_too_small_to_search_is_said_to_be(self, alice: User, queue: Queue) -> None:
        with pytest.raises(NotPossible, match="A fifth of the device time of these 2"):
            self.begin(alice, queue, axes={"precision": [{}, {"precision": "bf16-mixed"}]})
        assert not Search.objects.exists()

    def test_one_that_is_stopped_queues_nothing_more(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        advance(search)
        stop_search(search, alice, "enough")
        search.refresh_from_db()
        assert (search.stage, search.note) == (SearchStage.STOPPED, "enough")
        assert set(Job.objects.values_list("state", flat=True)) == {State.CANCELLED}
        assert advance_open() == 0
        with pytest.raises(NotPossible):
            stop_search(search, alice)

    def test_what_had_not_run_when_it_was_stopped_is_neither_tried_nor_out(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        advance_open()
        first = Job.objects.filter(state=State.QUEUED).order_by("pk")[0]
        finish_attempt(start(first, make_worker()), Outcome.SUCCEEDED, make_summary())
        stop_search(search, alice)
        view = view_search(Search.objects.get(pk=search.pk))
        assert len(view.screened) > 1
        assert (view.num_tried, [point.is_out for point in view.screened if point.is_out]) == (1, [])

    def test_who_stopped_it_and_why_stands_in_the_audit_trail(
        self, alice: User, stranger: User, queue: Queue, api: Client
    ) -> None:
        search = self.begin(alice, queue)
        advance(search)
        browser_of(alice).post(f"/searches/{search.pk}/stop/", {"reason": "the other one won"})
        entry = AuditEntry.objects.get(action="stop")
        assert (entry.actor, entry.search, entry.reason) == (alice, search, "the other one won")
        page = browser_of(alice).get(f"/searches/{search.pk}/").content.decode()
        assert "<b>alice</b> stopped it<q>the other one won</q>" in page
        [told] = api.get(f"/api/v1/audit?search={search.pk}").json()["entries"]
        assert (told["action"], told["subject"], told["search"]) == ("stop", str(search), search.pk)
        assert entry not in visible_entries(stranger)
        browser_of(alice).post(f"/searches/{search.pk}/stop/")
        assert AuditEntry.objects.filter(action="stop").count() == 1, "it had ended"

    def test_a_time_that_is_no_number_puts_one_point_out_and_the_search_goes_on(
        self, alice: User, queue: Queue
    ) -> None:
        search = self.begin(alice, queue)
        for time_ms in (10.0, math.inf, 9.0, 8.0, 7.0, 6.0):
            advance_open()
            job = Job.objects.filter(state=State.QUEUED).order_by("pk")[0]
            finish_attempt(start(job, make_worker()), Outcome.SUCCEEDED, make_summary(steady_step_time_ms=time_ms))
            self.run()
        search.refresh_from_db()
        assert search.stage != SearchStage.STOPPED
        assert [trial.is_out for trial in trials_of(search) if trial.num_failed] == [True]

    def test_a_run_that_is_lost_with_its_host_puts_nothing_out_that_ran_elsewhere(
        self, alice: User, queue: Queue
    ) -> None:
        search = self.begin(alice, queue)
        advance_open()
        self.run()
        search.refresh_from_db()
        lost = {"state": State.LOST, "outcome": Outcome.LOST, "queue": queue, "study": search.screening}
        make_job(alice, study_place=0, **lost)
        base = trials_of(search)[0]
        assert (base.is_out, base.num_failed, len(base.times_ms)) == (False, 1, 1)
        assert not view_search(search).base_is_out
        Job.objects.filter(study_place=1).update(state=State.LOST, outcome=Outcome.LOST)
        assert trials_of(search)[1].is_out, "it never ran"

    def test_a_reason_that_is_too_long_stops_nothing(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        advance_open()
        with pytest.raises(NotPossible):
            stop_search(search, alice, "x" * 501)
        search.refresh_from_db()
        assert search.is_open
        assert not Job.objects.exclude(cancel_requested_at=None).exists()

    def test_nobody_extends_its_screening_while_it_goes_on(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        advance_open()
        search.refresh_from_db()
        num_runs = Job.objects.count()
        page = browser_of(alice).post(f"/studies/{search.screening_id}/extend/", {"num_repeats": 2}, follow=True)
        assert "A search is adding to this study" in page.content.decode()
        assert Job.objects.count() == num_runs

    def test_it_stops_where_somebody_cancels_its_runs(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        advance(search)
        Job.objects.update(state=State.CANCELLED, outcome=Outcome.CANCELLED)
        assert advance_open() == 1
        search.refresh_from_db()
        assert (search.stage, search.note) == (SearchStage.STOPPED, "Runs of it were cancelled.")

    def test_one_that_cannot_go_on_says_why_and_harms_no_host(self, alice: User, queue: Queue) -> None:
        search = self.begin(alice, queue)
        Search.objects.update(base=search.base | {"precision": "fp31"})
        assert advance_open() == 1
        search.refresh_from_db()
        assert search.stage == SearchStage.STOPPED
        assert search.note.startswith("It could not go on: ")

    def test_the_form_begins_one_from_a_job(self, alice: User, stranger: User, queue: Queue) -> None:
        make_worker()
        job = make_job(alice, queue=queue, spec=make_spec(num_steps=1000, micro_batch_size=16))
        web = browser_of(alice)
        page = web.get(f"/jobs/{job.pk}/search/")
        assert "Precision: as it is; bf16-mixed" in page.content.decode()
        refused = web.post(f"/jobs/{job.pk}/search/", {"axes": ["precision"], "num_steps": 1000, "num_repeats": 5})
        assert (refused.status_code, "A fifth of the device time" in refused.content.decode()) == (422, True)
        sent = {"axes": AXES, "num_steps": 1000, "num_repeats": 3, "memory_gib": 4, "loss_margin": 0.1}
        answer = web.post(f"/jobs/{job.pk}/search/", sent, follow=True)
        search = Search.objects.get()
        assert answer.redirect_chain[-1][0] == f"/searches/{search.pk}/"
        assert (search.memory_budget_bytes, search.loss_margin, set(search.axes)) == (4 * 2**30, 0.1, set(AXES))
        assert search.name in web.get("/searches/").content.decode()
        assert browser_of(stranger).get(f"/searches/{search.pk}/").status_code == 404

    def test_the_api_begins_shows_and_stops_one(self, api: Client, alice: User, queue: Queue) -> None:
        make_worker()
        base = make_spec(num_steps=1000, micro_batch_size=16).model_dump(mode="json")
        asked = {"base": base, "axes": AXES, "num_repeats": 3}
        answer = api.post("/api/v1/searches?name=mine", json.dumps(asked), content_type="application/json")
        assert (answer.status_code, answer.json()["stage"]) == (201, "screening")
        path = f"/api/v1/searches/{answer.json()['id']}"
        assert api.get(path).json()["name"] == "mine"
        assert api.post(f"{path}/stop").json()["stage"] == "stopped"
        assert api.post(f"{path}/stop").status_code == 409
        wrong = api.post("/api/v1/searches", json.dumps(asked | {"axes": ["colour"]}), content_type="application/json")
        assert [error["field"] for error in wrong.json()["errors"]] == ["axes"]


def make_estimate(peak_bytes: int) -> Estimate:
    sizes = dict.fromkeys(
        ("weights_bytes", "gradients_bytes", "optimizer_state_bytes", "activations_bytes", "dataset_bytes"), 1
    )
    return Estimate(
        num_parameters=1, flops_per_step=None, num_ranks=1, device_kind="cpu", overhead_bytes=0, peak_bytes=peak_bytes,
        device_memory_bytes=None, **sizes,
    )  # fmt: skip


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
