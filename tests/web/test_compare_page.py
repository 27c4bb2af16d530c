"""The comparison page and what its charts fetch; all of its state stands in the address."""

import json
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.forms import CompareQuery
from jobs.models import Job, User
from jobs.services.finish import finish_attempt
from tests.jobs.factories import make_job, make_spec, make_worker, points, record, start


def ended_job(owner: User, step_time_ms: float, *, steps: int = 3, **spec: object) -> Job:
    job = make_job(owner, spec=make_spec(**spec))
    attempt = start(job)
    record(attempt, points(range(1, steps + 1), train_loss=[1 + 1 / step for step in range(1, steps + 1)]))
    finish_attempt(attempt, Outcome.SUCCEEDED, Summary(num_steps=100, steady_step_time_ms=step_time_ms))
    return job


def page_of(web: Client, query: str) -> str:
    response = web.get(f"/compare/?{query}")
    assert response.status_code == 200
    return response.content.decode()


def fetched(web: Client, what: str, query: str) -> Any:
    response = web.get(f"/compare/{what}/?{query}")
    assert response.status_code == 200
    return json.loads(response.content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def lines(answer: Any, place: int = 0) -> list[dict[str, Any]]:
    return [trace for trace in answer["figures"][place]["data"] if trace["meta"]["part"] == "line"]


def test_two_jobs_are_compared_in_what_they_differ(web: Client, alice: User) -> None:
    slow, fast = ended_job(alice, 20.0), ended_job(alice, 10.0, precision="bf16-mixed")
    response = web.get(f"/compare/?jobs={slow.pk},{fast.pk}")
    assert [row.field for row in response.context["options"]] == ["precision"]
    [row] = response.context["rows"]
    assert (row.metric.name, [cell.is_best for cell in row.cells]) == ("steady_step_time_ms", [False, True])
    assert [trace["meta"]["jobs"] for trace in lines(fetched(web, "curves", f"jobs={slow.pk},{fast.pk}"))] == [
        [slow.pk],
        [fast.pk],
    ]


def test_no_best_is_marked_among_runs_of_different_work(web: Client, alice: User) -> None:
    base, same, other = ended_job(alice, 20.0), ended_job(alice, 10.0), ended_job(alice, 5.0, learning_rate=0.5)
    assert '<span class="best">' in page_of(web, f"jobs={base.pk},{same.pk}")
    page = page_of(web, f"jobs={base.pk},{other.pk}")
    assert '<span class="best">' not in page
    assert "Learning rate: 0.001 / 0.5" in page


def test_what_is_the_same_is_shown_on_request(web: Client, alice: User) -> None:
    ids = f"jobs={ended_job(alice, 20.0).pk},{ended_job(alice, 10.0).pk}"
    assert 'id="options"' not in page_of(web, ids)
    whole = page_of(web, f"{ids}&all=1")
    assert "Learning rate schedule" in whole.split('id="options"')[1].split("</table>")[0]
    assert "Hide what is the same" in whole


def test_a_pinned_baseline_stands_in_the_address_and_in_every_cell(web: Client, alice: User) -> None:
    slow, fast = ended_job(alice, 20.0), ended_job(alice, 10.0)
    page = page_of(web, f"jobs={slow.pk},{fast.pk}&baseline={slow.pk}")
    assert "against the baseline" in page
    assert "against--better" in page
    assert "0.500×" in page
    assert "One run each: no verdict" in page


def test_groups_of_repeats_have_mean_spread_and_verdict(web: Client, alice: User) -> None:
    jobs = [
        ended_job(alice, time * factor, seed=seed, precision=precision)
        for precision, factor in (("fp32", 1.0), ("bf16-mixed", 0.5))
        for seed, time in enumerate([10.0, 11.0, 9.0])
    ]
    ids = "jobs=" + ",".join(str(job.pk) for job in jobs)
    page = page_of(web, f"{ids}&group=precision&baseline={jobs[0].pk}&band=minmax")
    assert "n=3" in page
    assert "<em>better</em>" in page
    assert "Ratio, seed by seed: 99 % interval 0.500 to 0.500, n = 3." in page
    figures = fetched(web, "curves", f"{ids}&group=precision")
    assert [trace["name"] for trace in lines(figures)] == ["fp32", "bf16-mixed"]
    assert [trace["meta"]["part"] for trace in figures["figures"][0]["data"]][:2] == ["low", "high"]


def test_groups_that_share_no_seed_are_said_to_have_too_few_pairs(web: Client, alice: User) -> None:
    """However far apart their means are, nothing is coloured as better."""
    jobs = [
        ended_job(alice, time, seed=seed, precision=precision)
        for precision, seeds, time in (("fp32", (0, 1), 20.0), ("bf16-mixed", (2, 3), 10.0))
        for seed in seeds
    ]
    page = page_of(web, f"jobs={','.join(str(job.pk) for job in jobs)}&group=precision&baseline={jobs[0].pk}")
    assert "<em>too few pairs</em>" in page
    assert "against--better" not in page


def test_the_curves_come_for_the_range_that_is_seen(web: Client, alice: User) -> None:
    job = ended_job(alice, 10.0, steps=20_000)
    whole = lines(fetched(web, "curves", f"jobs={job.pk}"))[0]["x"]
    part = lines(fetched(web, "curves", f"jobs={job.pk}&from=1000&to=1100"))[0]["x"]
    assert len(whole) < 2500
    assert part == list(range(1000, 1101))


def test_several_charts_axes_logs_and_smoothing(web: Client, alice: User) -> None:
    job = ended_job(alice, 10.0)
    query = f"jobs={job.pk}&series=train_loss,eval_loss&x=wall_s&xlog=1&ylog=1&smooth=gaussian&amount=2"
    answer = fetched(web, "curves", query)
    assert [figure["layout"]["yaxis"]["title"]["text"] for figure in answer["figures"]] == [
        "Training loss",
        "Evaluation loss",
    ]
    assert answer["figures"][0]["layout"]["xaxis"]["type"] == "log"
    assert [trace["meta"]["part"] for trace in answer["figures"][0]["data"]] == ["raw", "line"]
    assert answer["notes"] == [[], [f"Job {job.pk} recorded no points of “eval_loss”."]]
    assert "selected>Gaussian" in page_of(web, query)


def test_the_other_charts_are_fetched_by_name(web: Client, alice: User) -> None:
    jobs = [ended_job(alice, 20.0), ended_job(alice, 10.0, precision="bf16-mixed")]
    ids = "jobs=" + ",".join(str(job.pk) for job in jobs)
    figures = fetched(web, "charts", f"{ids}&across=steady_step_time_ms&up=num_steps")["figures"]
    assert set(figures) == {"time", "scatter", "parallel"}


def test_what_runs_measured_while_the_page_was_open_comes_with_its_choices_and_verdicts(
    web: Client, alice: User
) -> None:
    job = make_job(alice)
    attempt = start(job)
    assert 'id="words-step" hidden' in page_of(web, f"jobs={job.pk}")
    measured = {"num_steps": 3, "steady_step_time_ms": 10.0, "phase_data_wait_ms": 6.0, "phase_forward_ms": 4.0}
    finish_attempt(attempt, Outcome.SUCCEEDED, Summary.model_validate(measured))
    part = web.get(f"/compare/?jobs={job.pk}", headers={"HX-Request": "true"}).content.decode()
    assert 'id="words-step" hx-swap-oob="true">' in part
    assert "data-bound: 60 %" in part
    choices = fetched(web, "charts", f"jobs={job.pk}")["metrics"]
    assert ["steady_step_time_ms", "Step time"] in choices


def test_the_best_step_is_told_with_another_series(web: Client, alice: User) -> None:
    job = make_job(alice)
    attempt = start(job)
    record(attempt, points([1, 2, 3], train_loss=[3, 1, 2]), points([2], eval_loss=[0.75]))
    page = web.get(f"/compare/best/?jobs={job.pk}").content.decode()
    assert "then: Evaluation loss" in page
    assert "0.75000" in page
    assert "No run has recorded both series." in web.get(f"/compare/best/?jobs={make_job(alice).pk}").content.decode()


def test_jobs_that_wait_are_compared_without_points(web: Client, alice: User) -> None:
    first, second = make_job(alice), make_job(alice, spec=make_spec(seed=1))
    query = f"jobs={first.pk}&jobs={second.pk}"
    assert "Nothing is measured yet" in page_of(web, query)
    answer = fetched(web, "curves", query)
    assert answer["notes"] == [[f"Job {first.pk} has not started yet.", f"Job {second.pk} has not started yet."]]
    assert answer["open"] == [first.pk, second.pk]


def test_one_run_alone_is_a_comparison(web: Client, alice: User) -> None:
    page = page_of(web, f"jobs={ended_job(alice, 10.0).pk}")
    assert "One run alone differs from nothing." in page
    assert "Step time" in page


@pytest.mark.parametrize("query", ["", "jobs=", "jobs=nonsense", "jobs=999999999999999999999,-1"])
def test_nothing_to_compare_is_said_in_words_and_fetches_nothing(web: Client, query: str) -> None:
    assert "Choose one job or up to 200" in page_of(web, query)
    assert lines(fetched(web, "curves", query)) == []
    assert fetched(web, "charts", query) == {"figures": {}, "metrics": []}
    assert web.get(f"/compare/best/?{query}").status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "x=nonsense",
        "x=eval_loss&from=nan&to=inf",
        "from=9&to=1",
        "smooth=ema&amount=7",
        "smooth=gaussian&amount=-3&group=seed",
        "smooth=nonsense&group=nonsense&band=nonsense&legend=nonsense&across=nonsense&baseline=nonsense",
        "series=,,&series=" + "x" * 500,
        "group=configuration&band=t95&x=time",
        "group=learning_rate&x=eval_loss&smooth=mean&amount=1e300",
        "legend=owner&x=energy_j",
    ],
)
def test_no_address_breaks_the_page_or_its_charts(web: Client, alice: User, query: str) -> None:
    ids = f"jobs={ended_job(alice, 10.0).pk},{make_job(alice).pk}"
    page_of(web, f"{ids}&{query}")
    for what in ("curves", "charts"):
        fetched(web, what, f"{ids}&{query}")
    assert web.get(f"/compare/best/?{ids}&{query}").status_code == 200


def test_an_unknown_choice_is_remarked_on(web: Client, alice: User) -> None:
    page = page_of(web, f"jobs={make_job(alice).pk}&group=colour&baseline=12345")
    assert "“colour” is no known choice of “group” and was left out." in page
    assert "The baseline #12345 is not among the jobs" in page


def test_a_job_of_another_team_is_left_out_and_named(web: Client, alice: User, stranger: User) -> None:
    mine, theirs = make_job(alice), make_job(stranger)
    query = f"jobs={mine.pk},{theirs.pk},xyz"
    assert f"#{theirs.pk}, “xyz”" in page_of(web, query)
    assert [trace["meta"]["jobs"] for trace in lines(fetched(web, "curves", query))] == [[mine.pk]]


def test_a_job_that_is_deleted_while_it_is_shown_is_missed_in_words(web: Client, alice: User) -> None:
    kept, gone = ended_job(alice, 10.0), make_job(alice)
    query = f"jobs={kept.pk},{gone.pk}"
    page_of(web, query)
    number = gone.pk
    gone.delete()
    answer = fetched(web, "curves", query)
    assert [trace["meta"]["jobs"] for trace in lines(answer)] == [[kept.pk]]
    assert answer["remarks"] == [f"Left out, because you cannot see it or it does not exist: #{number}."]


def test_a_double_and_too_many_are_borne(web: Client, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(202)]
    ids = ",".join(str(job.pk) for job in [*jobs, jobs[0]])
    response = web.get(f"/compare/?jobs={ids}")
    assert len(response.context["runs"]) == 200
    assert "Only the first 200 jobs are compared." in response.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    web: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    ids = [ended_job(alice, 10.0 + number, seed=number).pk for number in range(12)]
    with django_assert_max_num_queries(25):
        web.get("/compare/?jobs=" + ",".join(map(str, ids)))
    with django_assert_max_num_queries(15):
        web.get("/compare/curves/?group=configuration&jobs=" + ",".join(map(str, ids)))


def test_htmx_gets_the_tables_alone(web: Client, alice: User) -> None:
    job = make_job(alice)
    start(job, make_worker())
    part = web.get(f"/compare/?jobs={job.pk}", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert 'hx-swap-oob="true"' in part
    assert f'data-live-topics="job:{job.pk}"' in part


def test_an_address_comes_back_as_it_was() -> None:
    text = (
        "jobs=3,1,2&series=train_loss,eval_loss&x=wall_s&from=1.5&to=20&xlog=1&ylog=1&smooth=ema&amount=0.95"
        "&group=precision&band=t95&baseline=3&all=1&other=eval_loss&across=energy_j&up=final_train_loss&y=train_loss:0.5:2,eval_loss:-1e-05:1&off=1,2&view=7"
    )
    assert CompareQuery.from_query(QueryDict(text)).address() == text
    assert CompareQuery.from_query(QueryDict(text)).stored == text.removesuffix("&view=7")
    assert CompareQuery.from_query(QueryDict("jobs=1&jobs=2&legend=owner")).address() == "jobs=1,2&legend=owner"


@pytest.mark.parametrize(
    "part", ["train_loss", "train_loss:1", "train_loss:2:1", "train_loss:nan:1", "other:0:1", ":::"]
)
def test_a_height_that_is_none_is_left_out(part: str) -> None:
    assert CompareQuery.from_query(QueryDict(f"jobs=1&y={part}")).address() == "jobs=1"


def test_a_zoom_by_the_time_of_day_is_kept_to_the_millisecond() -> None:
    text = "jobs=1&x=time&from=1763750000123&to=1763750004567"
    assert CompareQuery.from_query(QueryDict(text)).address() == text


def empty(web: Client, query: str) -> str:
    """The sentence in the first plot's place."""
    return str(fetched(web, "curves", query)["figures"][0]["layout"]["meta"]["empty"])


def test_jobs_that_have_not_started_are_a_sentence_and_no_chart(web: Client, alice: User) -> None:
    jobs = [make_job(alice), make_job(alice)]
    ids = ",".join(str(job.pk) for job in jobs)
    assert empty(web, f"jobs={ids}") == "There are no points of “Training loss” to draw."
    assert fetched(web, "curves", f"jobs={ids}")["notes"] == [[f"Job {job.pk} has not started yet." for job in jobs]]
    assert empty(web, f"jobs={ids},{ended_job(alice, 10.0).pk}") == ""


def test_a_range_without_points_says_how_to_leave_it(web: Client, alice: User) -> None:
    job = ended_job(alice, 10.0)
    assert "Whole range" in empty(web, f"jobs={job.pk}&from=500&to=600")


def make_measuring_job(owner: User) -> Job:
    """Its accuracy is 0 all along."""
    job = make_job(owner)
    record(start(job, make_worker("other")), points([1, 2], train_loss=[2, 1], eval_accuracy=[0.0, 0.0]))
    return job


def test_what_no_axis_can_show_is_said(web: Client, alice: User) -> None:
    job = make_job(alice)
    record(start(job), points([1, 2], train_loss=[float("nan"), float("inf")], eval_accuracy=[0.0, 0.0]))
    assert "NaN and infinity" in empty(web, f"jobs={job.pk}")
    [[note]] = fetched(web, "curves", f"jobs={job.pk}")["notes"]
    assert note == f"Job {job.pk} recorded only NaN and infinity of “train_loss”."
    assert "logarithmic" in empty(web, f"jobs={job.pk}&series=eval_accuracy&ylog=1")
    assert empty(web, f"jobs={job.pk}&series=eval_accuracy") == ""
    over = f"jobs={make_measuring_job(alice).pk}&series=train_loss&x=eval_accuracy"
    assert empty(web, over) == ""
    assert "logarithmic" in empty(web, f"{over}&xlog=1")


def test_a_comparison_whose_jobs_are_all_gone_is_a_sentence(web: Client, alice: User) -> None:
    job = ended_job(alice, 10.0)
    query = f"jobs={job.pk}"
    job.delete()
    assert empty(web, query) == "None of these jobs is there any more."
    for what in ("charts", "over-time"):
        assert fetched(web, what, query)["figures"] == {}
    part = web.get(f"/compare/?{query}", headers={"HX-Request": "true"})
    assert part.status_code == 200
