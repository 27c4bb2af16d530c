"""The comparison in a real browser: groups of repeats against a baseline, zoomed, live, as a link and as files."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

Open = Callable[..., Page]

RANGE = "document.querySelector('#compare-curves').layout.xaxis.range"


def end_of_line(page: Page, name: str) -> float:
    """The last step that is drawn of a line."""
    return page.evaluate(
        "name => document.querySelector('#compare-curves').data"
        ".find((trace) => trace.name.includes(name) && trace.meta.part === 'line')?.x.at(-1) ?? 0",
        name,
    )


def wait_for_end(page: Page, name: str, step: int) -> None:
    for _ in range(200):
        if end_of_line(page, name) == step:
            return
        page.wait_for_timeout(50)
    pytest.fail(f"step {step} of {name} was not drawn")


def download(page: Page, panel: str, kind: str) -> str:
    place = page.locator(panel)
    place.locator(".chart-files summary").click()
    with page.expect_download() as found:
        place.locator(f"[data-chart-file='{kind}']").click()
    return Path(found.value.path()).read_text()


def test_groups_of_repeats_are_compared_zoomed_followed_shared_and_downloaded(open_page: Open, site: Site) -> None:
    running, jobs = site.jobs["running"], site.tell("repeats")
    page = open_page()
    page.goto(f"/compare/?jobs={','.join(map(str, [*jobs, running]))}&group=learning_rate&baseline={jobs[0]}&all=1")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    expect(page.locator(".key__name")).to_have_text(["0.001", "0.002", "0.004"])
    cells = page.locator("tr[data-metric='steady_step_time_ms'] td")
    expect(cells.nth(1)).to_contain_text("tie")
    expect(cells.nth(2)).to_contain_text("better")

    page.select_option("#view-group", "")
    expect(page.locator(".key__name")).to_have_count(13)
    page.evaluate("Plotly.relayout('compare-curves', {'xaxis.range': [20, 200]})")
    expect(page).to_have_url(re.compile("from=20&to=200"))
    last = site.tell(f"points {running} 30")
    wait_for_end(page, "the live one", last)
    assert page.evaluate(RANGE) == [20, 200]

    colleague = open_page("noor")
    colleague.goto(page.url)
    expect(colleague.locator(".key__name")).to_have_count(13)
    wait_for_end(colleague, "the live one", last)
    assert colleague.evaluate(RANGE) == [20, 200]
    expect(colleague.locator("#measured thead")).to_contain_text("baseline")

    table = download(page, "[data-series='train_loss']", "csv")
    assert table.startswith("line,part,Optimizer step,Training loss")
    assert f"#{running} the live one,line,{last}," in table
    assert download(page, "[data-chart-panel='time']", "svg").startswith("<svg")


def test_a_job_that_goes_while_it_is_shown_is_missed_in_words(open_page: Open, site: Site) -> None:
    waiting, running = site.tell("wait soon gone"), site.jobs["running"]
    page = open_page()
    page.goto(f"/compare/?jobs={site.jobs['slow']},{running},{waiting}")
    expect(page.locator(".key__name")).to_have_count(3)
    site.tell(f"delete {waiting}")
    site.tell(f"points {running} 5")
    expect(page.locator("#compare-remarks")).to_contain_text(f"#{waiting}")
    expect(page.locator(".key__name")).to_have_count(2)
