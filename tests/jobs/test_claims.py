import math
import random
from statistics import fmean

import pytest
from django.test import Client

from jobs.claim_verdict import ClaimVerdict, judge_promise
from jobs.contract.catalog import BUILT_IN
from jobs.contract.claims import CLAIMS, Promise, Quantity, claim_named
from jobs.contract.keys import environment_key
from jobs.contract.plan import Extension, expand
from jobs.contract.rules import check, refusals
from jobs.contract.states import Outcome, State
from jobs.models import Attempt, Job, Study, User
from jobs.selectors.claims import Standing, claim_board
from jobs.services.claims import measure_claim
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt
from jobs.services.studies import clone_study, extend_study
from jobs.statistics import ratio_interval
from tests.jobs.factories import host_facts, make_summary, make_user, make_worker, start


def seen(promise: Promise, speedup: float, noise: float, num_repeats: int, rng: random.Random) -> ClaimVerdict:
    ratios = [math.exp(rng.gauss(-math.log(speedup), noise)) for _repeat in range(num_repeats)]
    measured = judge_promise(promise, ratio_interval(ratios))
    assert measured
    return measured.verdict


@pytest.mark.parametrize(
    ("at_least", "speedup", "verdict"),
    [
        (1.5, 1.8, ClaimVerdict.HOLDS),
        (1.5, 1.2, ClaimVerdict.FAILS),
        (1.0, 1.2, ClaimVerdict.HOLDS),
        (1.0, 0.8, ClaimVerdict.FAILS),
        (1.0, 1.0, ClaimVerdict.FAILS),  # a tie is no speed-up
    ],
)
def test_a_clear_effect_has_a_clear_verdict(at_least: float, speedup: float, verdict: ClaimVerdict) -> None:
    rng = random.Random(1)
    promise = Promise(Quantity.TIME, at_least)
    found = [seen(promise, speedup, 0.005, 5, rng) for _study in range(200)]
    assert fmean(one is verdict for one in found) > 0.97


def test_at_the_promised_factor_itself_noise_decides_in_at_most_one_study_of_a_hundred() -> None:
    rng = random.Random(2)
    found = [seen(Promise(Quantity.TIME, 1.5), 1.5, 0.05, 5, rng) for _study in range(3000)]
    assert fmean(one is ClaimVerdict.HOLDS for one in found) < 0.01  # each side of a 99 % interval is 0.5 %
    assert fmean(one is ClaimVerdict.UNDECIDED for one in found) > 0.98


def test_one_repeat_is_no_evidence() -> None:
    assert judge_promise(Promise(Quantity.TIME, 1.5), ratio_interval([0.5])) is None


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_every_preset_is_a_pair_that_its_device_may_run(claim) -> None:
    assert len({preset.device for preset in claim.presets}) == len(claim.presets)
    for preset in claim.presets:
        baseline, candidate = expand(preset.plan)
        assert baseline.spec.global_batch_size == candidate.spec.global_batch_size
        for configuration in (baseline, candidate):
            facts = host_facts(num_gpus=preset.num_gpus)
            assert not refusals(check(configuration.spec, facts, BUILT_IN)), (configuration.spec, facts)


@pytest.mark.django_db
class TestTheBoard:
    @pytest.fixture(autouse=True)
    def _queue(self, queue: object) -> None:
        """The default queue is there."""

    def row(self, user: User, key: str):
        return next(row for row in claim_board(user) if row.claim.key == key)

    def measure(self, alice: User, key: str = "amp", device: str = "cpu") -> Study:
        claim = claim_named(key)
        return measure_claim(claim, claim.preset(device), alice, alice.teams.get())

    def run(self, study: Study, *step_times_ms: float) -> None:
        for job in study.jobs.filter(state="queued"):
            noise = 1 + 0.002 * (job.spec["seed"] % 3)
            summary = make_summary(steady_step_time_ms=noise * step_times_ms[job.study_place])
            finish_attempt(start(job, make_worker()), Outcome.SUCCEEDED, summary)

    def test_before_anything_is_measured_it_says_what_can_be(self, alice: User) -> None:
        make_worker()
        standings = {row.claim.key: row.standing for row in claim_board(alice)}
        on_a_cpu = {key for key, standing in standings.items() if standing is Standing.NOT_MEASURED}
        assert on_a_cpu == {"amp", "data-loading", "accumulation", "compile"}
        assert {standings[key] for key in standings if key not in on_a_cpu} == {Standing.NEEDS_GPU}

    def test_one_click_makes_its_study_once(self, alice: User) -> None:
        make_worker()
        study = self.measure(alice)
        assert self.measure(alice) == study
        assert (study.preset, study.jobs.count()) == ("amp/cpu", 10)
        assert self.row(alice, "amp").standing is Standing.MEASURING

    def test_where_nothing_could_run_it_nothing_is_queued(self, alice: User) -> None:
        make_worker()
        with pytest.raises(NotPossible):
            self.measure(alice, "ddp", "cuda")
        assert not Study.objects.exists()
        assert not Job.objects.exists()

    @pytest.mark.parametrize(
        ("candidate_ms", "standing"),
        [(5.0, Standing.HOLDS), (9.0, Standing.FAILS), (10.0, Standing.FAILS)],
    )
    def test_its_verdict_follows_from_the_runs(self, alice: User, candidate_ms: float, standing: Standing) -> None:
        make_worker()
        study = self.measure(alice)
        self.run(study, 10.0, candidate_ms)
        row = self.row(alice, "amp")
        [evidence] = row.evidence
        assert (row.standing, evidence.study, evidence.device_name) == (standing, study, "Fast CPU")
        assert evidence.promises[0][1].factor == pytest.approx(10 / candidate_ms)

    def test_the_api_and_the_page_tell_the_same(self, api: Client, alice: User) -> None:
        make_worker()
        answer = api.post("/api/v1/claims/amp/cpu")
        assert answer.status_code == 201
        self.run(Study.objects.get(), 10.0, 5.0)
        told = {claim["key"]: claim for claim in api.get("/api/v1/claims").json()}
        assert told["amp"]["standing"] == "holds"
        assert (told["ddp"]["standing"], told["ddp"]["can_measure"]) == ("needs_gpu", [])
        assert api.post("/api/v1/claims/amp/tpu").status_code == 404
        assert api.post("/api/v1/claims/ddp/cuda").status_code == 409
        web = Client()
        web.force_login(alice)
        page = web.get("/claims/").content.decode()
        assert "2.00 times as fast (99 % interval 2.00 to 2.00, n = 5)" in page
        assert "Needs a worker with 2 GPUs." in page
        sent = web.post("/claims/accumulation/cpu/", follow=True)
        assert sent.redirect_chain[-1][0] == f"/studies/{Study.objects.order_by('-pk').first().pk}/"
        assert web.post("/claims/nonsense/cpu/").status_code == 404

    def test_a_clone_is_evidence_while_it_asks_for_the_same(self, alice: User) -> None:
        make_worker()
        study = self.measure(alice)
        Job.objects.update(state=State.CANCELLED, outcome=Outcome.CANCELLED)
        web = Client()
        web.force_login(alice)
        form = web.get(f"/studies/new/?study={study.pk}").context["form"]
        shown = {name: form[name].value() for name in form.fields}
        sent = {name: value for name, value in shown.items() if value is not None and value is not False}
        sent |= {"team": alice.teams.get().pk, "queue": study.queue_id}
        web.post("/studies/new/", sent | {"num_steps": 77})
        assert Study.objects.first().preset == "", "it does other work"
        web.post("/studies/new/", sent)
        clones = [Study.objects.first(), clone_study(study, alice)]
        assert [clone.preset for clone in clones] == ["amp/cpu"] * 2
        self.run(clones[0], 10.0, 5.0)
        [evidence] = self.row(alice, "amp").evidence
        assert evidence.study == clones[0]

    def test_evidence_of_older_versions_gives_way_and_each_says_its_versions(self, alice: User) -> None:
        make_worker()
        old = self.measure(alice)
        self.run(old, 10.0, 5.0)
        extend_study(old, alice, Extension(num_repeats=9))
        self.run(old, 10.0, 5.0)
        older = {"torch": "2.12.0", "engine": "0.1.0"}
        Attempt.objects.update(versions=older, environment_key=environment_key("Fast CPU", older))
        new = self.measure(alice)
        self.run(new, 10.0, 9.0)
        row = self.row(alice, "amp")
        assert ([one.study for one in row.evidence], row.standing) == ([new], Standing.FAILS)
        web = Client()
        web.force_login(alice)
        assert "Fast CPU, PyTorch 2.13.0, engine 0.1.0" in web.get("/claims/").content.decode()

    def test_another_teams_studies_are_no_evidence(self, alice: User, stranger: User) -> None:
        make_worker()
        self.run(self.measure(alice), 10.0, 5.0)
        assert self.row(stranger, "amp").standing is Standing.NOT_MEASURED
        assert self.row(make_user("boss", is_staff=True), "amp").standing is Standing.HOLDS
