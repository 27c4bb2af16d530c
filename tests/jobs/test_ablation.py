import math
import random
from statistics import fmean

import pytest
from django.test import Client

from jobs.ablation import Together, take_apart, waterfall
from jobs.contract.ablation import options_of, plan_ablation, read_design
from jobs.contract.plan import Arrangement, Axis, StudyPlan, expand
from jobs.contract.spec import TrainSpec
from jobs.contract.states import Outcome
from jobs.models import Job, Queue, Study, User
from jobs.selectors.ablation import ablation_of
from jobs.selectors.studies import view_study
from jobs.services.ablation import ablate_job
from jobs.services.errors import NotPossible
from jobs.services.finish import finish_attempt
from jobs.statistics import RatioInterval
from tests.jobs.factories import make_job, make_spec, make_summary, make_worker, start

OPTIONS = [{"precision": "bf16-mixed"}, {"compile_mode": "default"}, {"optimizer_impl": "fused"}]
EFFECTS = [0.7, 0.8, 0.95]
NUM_SEEDS = 5


def simulate(rng: random.Random, interaction: float = 1.0, noise: float = 0.01):
    """Runs with known effects: a seed slows all of its runs down alike, and each run has its own noise."""
    seeds = [math.exp(rng.gauss(0, 0.1)) for _seed in range(NUM_SEEDS)]

    def repeats(factor: float) -> dict[int, float]:
        return {seed: 10 * factor * slow * math.exp(rng.gauss(0, noise)) for seed, slow in enumerate(seeds)}

    total = math.prod(EFFECTS) * interaction
    return take_apart(
        repeats(1.0),
        [repeats(effect) for effect in EFFECTS],
        repeats(total),
        [repeats(math.prod(EFFECTS) / effect) for effect in EFFECTS],
    )


def covers(interval: RatioInterval, truth: float) -> bool:
    return abs(math.log(truth / interval.ratio)) <= math.log1p(interval.half_width)


NUM_STUDIES = 1500


@pytest.fixture(scope="module")
def studies():
    rng = random.Random(3)
    return [simulate(rng) for _study in range(NUM_STUDIES)]


class TestTheFactors:
    def test_95_percent_intervals_cover_the_truth_in_95_percent_of_studies(self, studies) -> None:
        error = 4 * math.sqrt(0.95 * 0.05 / NUM_STUDIES)
        total = math.prod(EFFECTS)
        for number, effect in enumerate(EFFECTS):
            assert fmean(covers(study.singles[number], effect) for study in studies) == pytest.approx(0.95, abs=error)
            assert fmean(covers(study.on_top[number], effect) for study in studies) == pytest.approx(0.95, abs=error)
        assert fmean(covers(study.total, total) for study in studies) == pytest.approx(0.95, abs=error)
        assert fmean(covers(study.interaction, 1.0) for study in studies) == pytest.approx(0.95, abs=error)

    def test_options_that_do_not_interact_are_said_to_in_one_study_of_a_hundred(self, studies) -> None:
        found = fmean(study.together is Together.INTERACT for study in studies)
        assert found == pytest.approx(0.01, abs=4 * math.sqrt(0.01 * 0.99 / NUM_STUDIES))

    @pytest.mark.parametrize("interaction", [0.8, 1.25])
    def test_options_that_interact_are_found_out(self, interaction: float) -> None:
        rng = random.Random(4)
        found = [simulate(rng, interaction) for _study in range(200)]
        assert fmean(one.together is Together.INTERACT for one in found) > 0.95

    def test_quiet_factors_multiply_and_noise_is_told_as_noise(self) -> None:
        rng = random.Random(5)
        quiet = [simulate(rng, noise=0.002).together for _study in range(100)]
        noisy = [simulate(rng, noise=0.1).together for _study in range(100)]
        assert quiet.count(Together.MULTIPLY) > 90
        assert noisy.count(Together.TOO_NOISY) > 90


def test_the_bars_lead_from_the_baseline_to_the_total() -> None:
    bars = waterfall(10.0, [0.5, 0.8], 5.0)
    assert [(bar.start, bar.end) for bar in bars] == [(0, 10), (10, 5), (5, 4), (4, 5), (0, 5)]


def test_a_spec_is_taken_apart_into_what_belongs_together() -> None:
    spec = make_spec(
        precision="bf16-mixed", data_loading="dataloader", num_workers=2, persistent_workers=True, micro_batch_size=8,
        time_limit_s=60, optimizer_impl="fused",
    )  # fmt: skip
    assert options_of(spec) == [
        {"precision": "bf16-mixed"},
        {"optimizer_impl": "fused"},
        {"data_loading": "dataloader", "num_workers": 2, "persistent_workers": True},
    ]


def test_its_plan_has_each_option_alone_all_together_and_all_but_one() -> None:
    on = make_spec(**{name: value for option in OPTIONS for name, value in option.items()})
    found = expand(plan_ablation(on, OPTIONS, 2))
    changed = [sorted(one.changes) for one in found]
    a, b, c = "precision", "compile_mode", "optimizer_impl"
    assert changed == [[], [a], [b], [c], sorted([a, b, c]), sorted([b, c]), sorted([a, c]), sorted([a, b])]
    design = read_design(found)
    assert (design.options, design.singles, design.together, design.without) == (OPTIONS, [1, 2, 3], 4, [5, 6, 7])


def test_of_two_options_each_is_what_is_left_without_the_other() -> None:
    design = read_design(expand(plan_ablation(make_spec(), OPTIONS[:2], 2)))
    assert (design.singles, design.together, design.without) == ([1, 2], 3, [2, 1])


def test_other_studies_are_no_ablation() -> None:
    base = make_spec().model_dump(mode="json")
    axes = [Axis(field="precision", values=["bf16-mixed"]), Axis(field="num_threads", values=[1])]
    alone = StudyPlan(base=base, arrangement=Arrangement.ONE_AT_A_TIME, axes=axes)
    assert read_design(expand(alone)) is None


@pytest.mark.django_db
class TestAStudyOfAJob:
    def job(self, alice: User, queue: Queue, **spec: object) -> Job:
        make_worker()
        options = {"precision": "bf16-mixed", "optimizer_impl": "fused"}
        return make_job(alice, queue=queue, spec=make_spec(**(options | spec)), state="cancelled", outcome="cancelled")

    def run(self, study: Study, factors: dict[int, float]) -> None:
        for job in study.jobs.all():
            factor = factors[job.study_place] * (1 + 0.01 * (job.spec["seed"] % 3))
            summary = make_summary(steady_step_time_ms=10 * factor, peak_rss_bytes=round(2**30 * factor))
            finish_attempt(start(job, make_worker()), Outcome.SUCCEEDED, summary)

    def test_one_click_queues_it_once(self, alice: User, queue: Queue) -> None:
        job = self.job(alice, queue)
        study = ablate_job(job, alice)
        assert ablate_job(job, alice) == study
        assert Job.objects.filter(study=study).count() == 4 * 5
        base = TrainSpec.model_validate(study.plan["base"])
        assert options_of(base) == []

    def test_a_job_without_options_is_the_baseline_of_the_usual_ones(self, alice: User, queue: Queue) -> None:
        study = ablate_job(self.job(alice, queue, precision="fp32", optimizer_impl="default"), alice)
        design = read_design(expand(study.study_plan))
        assert design.options == OPTIONS  # nothing that needs a GPU or convolutions

    def test_a_single_option_is_a_study_of_another_kind(self, alice: User, queue: Queue) -> None:
        with pytest.raises(NotPossible):
            ablate_job(self.job(alice, queue, optimizer_impl="default"), alice)
        assert not Study.objects.exists()

    def test_its_page_tells_what_each_is_worth(self, alice: User, queue: Queue, api: Client) -> None:
        job = self.job(alice, queue)
        web = Client()
        web.force_login(alice)
        sent = web.post(f"/jobs/{job.pk}/ablation/", follow=True)
        study = Study.objects.get()
        assert sent.redirect_chain[-1][0] == f"/studies/{study.pk}/"
        assert "Too few repeats to tell whether" in sent.content.decode()
        self.run(study, {0: 1.0, 1: 0.5, 2: 0.8, 3: 0.6})
        found = ablation_of(view_study(study))
        assert [one.alone.ratio for one in found.time.contributions] == pytest.approx([0.5, 0.8])
        assert [one.on_top.ratio for one in found.time.contributions] == pytest.approx([0.75, 1.2])
        page = web.get(f"/studies/{study.pk}/").content.decode()
        assert "The options interact: their factors multiply to 0.400, and all together make 0.600" in page
        told = api.get(f"/api/v1/studies/{study.pk}/ablation").json()
        assert told["time"]["together"] == "interact"
        assert told["memory"]["interaction"]["ratio"] == pytest.approx(1.5, rel=1e-3)
        assert [option["loss"]["verdict"] for option in told["time"]["options"]] == ["equal", "equal"]

    def test_the_api_makes_one_and_tells_no_other_study_as_one(self, api: Client, alice: User, queue: Queue) -> None:
        job = self.job(alice, queue)
        answer = api.post(f"/api/v1/jobs/{job.pk}/ablation")
        assert answer.status_code == 201
        assert len(answer.json()["rows"]) == 4
        Study.objects.update(plan=Study.objects.get().plan | {"configurations": [{"num_threads": 1}]})
        assert api.get(f"/api/v1/studies/{answer.json()['id']}/ablation").status_code == 404
