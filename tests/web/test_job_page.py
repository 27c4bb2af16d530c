"""One job's page, its points, its log, its end."""

import math
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from jobs.attempt_files import AttemptFiles
from jobs.contract.events import ErrorInfo
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.models import Attempt, Job, User
from jobs.services.finish import finish_attempt
from jobs.services.queues import pause_queue
from jobs.views.log_text import read_log
from tests.jobs.factories import points, record, start


@pytest.fixture
def attempt(job: Job) -> Attempt:
    return start(job)


def test_a_queued_job_says_what_it_waits_for(web: Client, job: Job, boss: User) -> None:
    assert "No worker that serves the queue “default” is online." in web.get(f"/jobs/{job.pk}/").content.decode()
    pause_queue(job.queue, boss, "cooling works")
    assert "cooling works" in web.get(f"/jobs/{job.pk}/parts/").content.decode()


def test_a_running_job_shows_its_phase_and_progress(web: Client, job: Job, attempt: Attempt) -> None:
    Attempt.objects.update(phase="evaluating")
    record(attempt, points(range(1, 41), train_loss=[2.0] * 40))
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert "Evaluating" in page
    assert f'data-job-step="{job.pk}">40<' in page
    assert f'data-live-topics="job:{job.pk}"' in page


def test_an_ended_job_shows_its_figures_and_watches_nothing(web: Client, job: Job, attempt: Attempt) -> None:
    finish_attempt(attempt, Outcome.SUCCEEDED, Summary(steady_step_time_ms=12.345, peak_rss_bytes=3 * 2**30))
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert '12.3 <span class="unit">ms' in page
    assert '3.00 <span class="unit">GiB' in page or '3 <span class="unit">GiB' in page
    assert 'data-live-topics=""' in page
    assert "cancel-dialog" not in page


def test_a_job_shows_the_hardware_that_it_had(web: Client, job: Job) -> None:
    gpu = {"kind": "cuda", "name": "H100", "uuid": "GPU-7", "memory_bytes": 80 * 2**30, "compute_capability": [9, 0]}
    start(job, hardware={"devices": [gpu | {"has_native_bf16": True}], "num_cpu_cores": 52})
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert 'H100, 80 <span class="unit">GiB</span>, compute capability 9.0' in page
    assert "GPU-7" in page
    assert '<th scope="row">CPU cores</th><td>52</td>' in page


def test_a_failed_job_shows_the_sentence_and_the_end_of_its_traceback(web: Client, job: Job, attempt: Attempt) -> None:
    error = ErrorInfo(type="ValueError", message="a <b>bad</b> shape", traceback="File x, line 3", phase="building")
    finish_attempt(attempt, Outcome.FAILED, None, error)
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert "a &lt;b&gt;bad&lt;/b&gt; shape" in page
    assert "File x, line 3" in page


@pytest.mark.parametrize(("outcome", "is_open"), [(Outcome.FAILED, True), (Outcome.TIMED_OUT, False)])
def test_a_traceback_is_folded_away_where_the_sentence_says_it_all(
    web: Client, job: Job, attempt: Attempt, outcome: Outcome, is_open: bool
) -> None:
    finish_attempt(attempt, outcome, None, ErrorInfo(type="TimedOut", message="4 s have passed", traceback="line 3"))
    page = web.get(f"/jobs/{job.pk}/").content.decode()
    assert ('<details id="traceback" open>' in page) is is_open
    assert "line 3" in page


def test_what_was_asked_stands_beside_what_it_came_to(web: Client, job: Job, attempt: Attempt) -> None:
    rows = {row.name: row for row in web.get(f"/jobs/{job.pk}/").context["spec_rows"]}
    assert (rows["device"].asked, rows["device"].ran, rows["device"].is_resolved) == ("auto", "cpu", True)
    assert rows["precision"].is_default
    assert not any(rows[name].is_aside for name in ("device", "precision", "num_steps"))
    assert rows["channels_last"].is_aside


def test_a_queued_job_is_cancelled_with_its_reason(web: Client, job: Job, alice: User) -> None:
    response = web.post(f"/jobs/{job.pk}/cancel/", {"reason": "wrong data"}, follow=True)
    job.refresh_from_db()
    assert (job.state, job.cancel_reason, job.cancel_requested_by) == ("cancelled", "wrong data", alice)
    assert "is cancelled." in response.content.decode()
    assert "wrong data" in response.content.decode()


def test_htmx_gets_the_changed_parts_of_a_cancelled_job(web: Client, job: Job) -> None:
    page = web.post(f"/jobs/{job.pk}/cancel/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert "Cancelled" in page
    assert 'id="toasts" hx-swap-oob' in page


def test_an_ended_job_cannot_be_cancelled_and_the_page_says_so(web: Client, job: Job, attempt: Attempt) -> None:
    finish_attempt(attempt, Outcome.SUCCEEDED)
    response = web.post(f"/jobs/{job.pk}/cancel/", follow=True)
    assert "has already ended" in response.content.decode()


def test_points_come_whole_and_then_only_what_is_new(web: Client, job: Job, attempt: Attempt) -> None:
    record(attempt, points([1, 2], train_loss=[3.0, 2.0]))
    first = web.get(f"/jobs/{job.pk}/points/").json()
    assert first["series"]["train_loss"]["y"] == [3.0, 2.0]
    record(attempt, points([3], train_loss=[1.0]))
    query = f"?attempt={first['attempt']}&after={first['sequence']}"
    later = web.get(f"/jobs/{job.pk}/points/{query}").json()
    assert (later["series"]["train_loss"]["step"], later["sequence"]) == ([3], first["sequence"] + 1)


def test_numbers_that_are_not_finite_break_the_line(web: Client, job: Job, attempt: Attempt) -> None:
    record(attempt, points([1, 2, 3], train_loss=[1.0, math.nan, math.inf]))
    assert web.get(f"/jobs/{job.pk}/points/").json()["series"]["train_loss"]["y"] == [1.0, None, None]


def test_a_job_without_points_answers_with_none(web: Client, job: Job) -> None:
    assert web.get(f"/jobs/{job.pk}/points/").json()["series"] == {}


def test_the_log_is_read_from_where_the_page_stopped(web: Client, job: Job, attempt: Attempt) -> None:
    log = AttemptFiles(attempt.pk).log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("one\n")
    first = web.get(f"/jobs/{job.pk}/log/").json()
    log.write_text("one\ntwo\n")
    second = web.get(f"/jobs/{job.pk}/log/?attempt={attempt.pk}&offset={first['offset']}").json()
    assert (first["text"], second["text"]) == ("one\n", "two\n")


def test_a_long_log_is_cut_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("ä line of the log\n" * 10_000)
    part = read_log(path, None)
    assert part.is_cut
    assert len(part.text) <= 64 * 1024
    assert part.text.startswith("ä line")


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    (tmp_path / "log.txt").symlink_to(secret)
    assert read_log(tmp_path / "log.txt", None).text == ""


def test_the_address_tells_how_the_curve_is_smoothed(web: Client, job: Job) -> None:
    page = web.get(f"/jobs/{job.pk}/?smooth=gaussian&amount=3").content.decode()
    assert '<option value="gaussian" selected>Gaussian</option>' in page
    assert 'name="amount" id="view-amount" data-view value="3"' in page
    assert '<option value="none" selected>' in web.get(f"/jobs/{job.pk}/").content.decode()


def test_a_range_of_steps_is_fetched_by_itself(web: Client, job: Job) -> None:
    record(start(job), points([1, 2, 3, 4], train_loss=[4, 3, 2, 1]))
    part = web.get(f"/jobs/{job.pk}/points/?from=2&to=3").json()
    assert part["series"]["train_loss"]["step"] == [2, 3]
    assert web.get(f"/jobs/{job.pk}/points/?from=²&to=x").json()["series"]["train_loss"]["step"] == [1, 2, 3, 4]


def test_a_character_of_the_log_that_is_half_written_comes_whole_with_the_next_piece(tmp_path: Path) -> None:
    path, text = tmp_path / "log.txt", "größer\n".encode()
    path.write_bytes(text[:3])
    first = read_log(path, None)
    path.write_bytes(text)
    assert (first.text, first.offset, read_log(path, first.offset).text) == ("gr", 2, "ößer\n")


@pytest.mark.parametrize(("part", "name"), [("points", "after"), ("log", "offset")])
@pytest.mark.parametrize("value", ["²", "9" * 5000, "-1"])
def test_a_place_that_is_no_number_is_not_known(web: Client, job: Job, part: str, name: str, value: str) -> None:
    attempt = start(job)
    assert web.get(f"/jobs/{job.pk}/{part}/", {"attempt": attempt.pk, name: value}).status_code == 200


def test_the_page_costs_a_bounded_number_of_queries(
    web: Client, job: Job, attempt: Attempt, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    record(attempt, *(points([step], train_loss=[1.0]) for step in range(1, 20)))
    with django_assert_max_num_queries(12):
        web.get(f"/jobs/{job.pk}/")
