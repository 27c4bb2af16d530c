"""The whole road once, in a browser and for real: form, queue, worker, engine, database, curve, comparison."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.system.pitwall import Pitwall, running, wait_until

SignIn = Callable[..., Page]
LONG = 120_000  # milliseconds: a cold start of the engine on a busy machine


@pytest.fixture(scope="module")
def pitwall(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Pitwall]:
    """An installation without its first jobs, so that the worker is free."""
    with running(tmp_path_factory.mktemp("first-light") / "var") as installation:
        yield installation


def password(pitwall: Pitwall) -> str:
    return (pitwall.var / "admin_password").read_text().strip()


def submit_in_browser(page: Page, name: str, **values: str) -> int:
    """Fill in the form and send it; the job's number."""
    page.goto("/jobs/new/")
    page.select_option("#id_model", "mlp")
    page.select_option("#id_dataset", "digits")
    page.fill("#id_job_name", name)
    for field, value in values.items():
        page.fill(f"#id_{field}", value)
    page.click("#submit")
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    return int(page.url.rstrip("/").rsplit("/", 1)[1])


def drawn_points(page: Page) -> int:
    return int(page.evaluate("document.querySelector('#job-chart')?.data?.[0]?.x.length ?? 0"))


def test_a_job_is_submitted_watched_live_and_cancelled_with_a_reason(pitwall: Pitwall, sign_in: SignIn) -> None:
    page = sign_in(pitwall.url, "admin", password(pitwall))
    job_id = submit_in_browser(page, "Endless", num_steps="100000000")
    page.evaluate("window.wasNotReloaded = true")
    expect(page.locator("#job-chart .scatterlayer .trace")).to_have_count(1, timeout=LONG)
    seen = drawn_points(page)
    wait_until(lambda: page.wait_for_timeout(100) or drawn_points(page) > seen, 60, "a growing curve")
    page.click("#cancel")
    page.fill("#cancel-reason", "only a test")
    page.keyboard.press("Enter")
    expect(page.locator("#job-top .pill").first).to_have_text(re.compile("Cancelled"), timeout=LONG)
    assert page.evaluate("window.wasNotReloaded")
    assert pitwall.job(job_id)["cancel_reason"] == "only a test"
    assert not pitwall.processes_running("workers.engine run"), "an idle worker may measure or estimate, never train"


def test_two_jobs_are_submitted_and_compared_and_show_what_the_engine_measured(
    pitwall: Pitwall, sign_in: SignIn
) -> None:
    page = sign_in(pitwall.url, "admin", password(pitwall))
    small = submit_in_browser(page, "Small batch", num_steps="100", micro_batch_size="64")
    expect(page.locator("#job-top .pill").first).to_have_text(re.compile("Succeeded"), timeout=LONG)
    large = submit_in_browser(page, "Large batch", num_steps="200", micro_batch_size="128")
    expect(page.locator("#job-top .pill").first).to_have_text(re.compile("Succeeded"), timeout=LONG)
    summary = pitwall.job(large)["summary"]
    expect(page.locator("[data-tile='eval_accuracy']")).to_contain_text(f"{100 * summary['eval_accuracy']:.2f}")
    expect(page.locator("main")).to_contain_text(summary["device_name"])
    page.goto("/")
    page.check(f"#tick-{small}")
    page.check(f"#tick-{large}")
    page.click("#compare-go")
    expect(page.locator("#compare-curves .scatterlayer .trace")).to_have_count(2)
    differ = page.locator("section", has=page.get_by_role("heading", name="Where they differ"))
    expect(differ.locator("tbody th")).to_contain_text(["Micro-batch size", "Steps"])


def test_an_impossible_choice_is_refused_at_its_field_and_nothing_is_queued(pitwall: Pitwall, sign_in: SignIn) -> None:
    page = sign_in(pitwall.url, "admin", password(pitwall))
    newest = pitwall.client.get("/jobs").json()["jobs"][0]["id"]
    page.goto("/jobs/new/")
    page.select_option("#id_model", "mlp")
    page.select_option("#id_dataset", "digits")
    page.fill("#id_micro_batch_size", "5000")
    page.click("#submit")
    expect(page.locator("#notes-micro_batch_size")).to_contain_text("larger than the training split of digits")
    assert pitwall.client.get("/jobs").json()["jobs"][0]["id"] == newest
