"""A study from its form to its shared report and its winner measured again; the cast writes what runs measured."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site

LONG = 30_000  # milliseconds, on a busy machine

ANSWER = "bf16-mixed is 2.00 times faster (95 % interval 2.00 to 2.00, n = 5) at equal loss."


def test_a_study_is_built_watched_read_shared_and_reproduced(
    site: Site, open_page: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    page = open_page(path="/studies/new/")
    _fill_in(page)
    page.click("#submit")
    page.wait_for_url(re.compile(r"/studies/\d+/$"))
    page.evaluate("window.wasNotReloaded = true")
    expect(page.locator("#study")).to_contain_text("0 of 10 runs ended")
    assert site.tell(f"study {page.url.rstrip('/').rsplit('/', 1)[1]}") == 10
    expect(page.locator("#study")).to_contain_text("10 of 10 runs ended", timeout=LONG)
    expect(page.locator("#study .lead")).to_contain_text(ANSWER)
    expect(page.locator("#study .js-plotly-plot")).to_have_count(4, timeout=LONG)
    assert page.evaluate("window.wasNotReloaded")
    page.click("#share")
    _read_the_report(browser, page.locator("#share-link").inner_text(), tmp_path)
    page.click("#to-board")
    _reproduce_the_winner(page, site)


def _fill_in(page: Page) -> None:
    page.select_option("#id_model", "mlp")
    page.select_option("#id_dataset", "digits")
    page.select_option("#id_axis_1", "precision")
    page.fill("#id_values_1", "bf16-mixed, fp8")
    page.fill("#id_num_repeats", "5")
    estimate = page.locator("#study-estimate")
    expect(estimate).to_contain_text("2 configurations × 5 repeats", timeout=LONG)
    expect(estimate).to_contain_text("1 configuration would be left out")


def _reproduce_the_winner(page: Page, site: Site) -> None:
    winner = page.locator("#board tbody tr").first
    expect(winner).to_contain_text("bf16-mixed", timeout=LONG)
    winner.get_by_role("button", name="Reproduce").click()
    expect(winner).to_contain_text("being reproduced", timeout=LONG)
    assert site.tell("reproductions") == 5
    expect(winner).to_contain_text("verified", timeout=LONG)


def _read_the_report(browser: Browser, link: str, folder: Path) -> None:
    """Signed out, by the link; then from a file, with no network at all."""
    visitor = browser.new_context()
    page = visitor.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(link)
    expect(page.locator(".report__headline")).to_have_text(ANSWER)
    expect(page.locator(".report .js-plotly-plot")).to_have_count(4, timeout=LONG)
    file = folder / "report.html"
    file.write_bytes(visitor.request.get(f"{link}file/").body())
    visitor.set_offline(True)
    page.goto(file.as_uri())
    expect(page.locator(".report__headline")).to_have_text(ANSWER)
    expect(page.locator(".report .js-plotly-plot")).to_have_count(4, timeout=LONG)
    visitor.close()
    assert errors == []
