"""The comparison in a real browser: groups of repeats against a baseline, zoomed, live, as a link and as files."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site

Open = Callable[..., Page]

RANGE = "document.querySelector('#compare-curves').layout.xaxis.range"


def end_of_line(page: Page, name: str) -> float:
    """The last step that is drawn of a line."""
    return page.evaluate(
        "name => document.querySelector('#compare-curves').data"
        "?.find((trace) => trace.name.includes(name) && trace.meta.part === 'line')?.x.at(-1) ?? 0",
        name,
    )


def wait_for_end(page: Page, name: str, step: int) -> None:
    for _ in range(600):
        if end_of_line(page, name) == step:
            return
        page.wait_for_timeout(50)
    pytest.fail(f"step {step} of {name} was not drawn")


def download(page: Page, place: Locator, kind: str) -> bytes:
    place.locator(".chart-files summary").click()
    with page.expect_download() as found:
        place.locator(f"[data-chart-file='{kind}']").click()
    return Path(found.value.path()).read_bytes()


TABLE = """async (box) => {
  const { name } = performance.getEntriesByType("resource").find((each) => each.name.includes("chart_files"));
  return (await import(name)).tableOf(box);
}"""


def check_table(place: Locator) -> None:
    """What would be downloaded of a chart: a row for each point, with whole names."""
    head, *rows = csv.reader(place.locator(".js-plotly-plot").evaluate(TABLE).splitlines())
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    assert not any("…" in cell or "<br>" in cell for row in rows for cell in row)


def heights(page: Page) -> list[float]:
    return page.evaluate("document.querySelector('#compare-curves').layout.yaxis.range")


LOSE_ANSWERS = "() => { window.answers = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost')); }"
FIND_ANSWERS = "() => { window.fetch = window.answers; window.dispatchEvent(new Event('online')); }"


def test_groups_of_repeats_are_compared_zoomed_followed_kept_as_a_view_and_downloaded(
    open_page: Open, site: Site
) -> None:
    running, jobs = site.jobs["running"], site.tell("repeats")
    page = open_page()
    page.goto(f"/compare/?jobs={','.join(map(str, [*jobs, running]))}&group=learning_rate&baseline={jobs[0]}&all=1")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    expect(page.locator(".key__name")).to_have_text(["0.001", "0.002", "0.004"])
    cells = page.locator("tr[data-metric='steady_step_time_ms'] td")
    expect(cells.nth(1)).to_contain_text("tie")
    expect(cells.nth(2)).to_contain_text("better")
    expect(page.locator("[data-over-time='memory'] [data-caption]")).to_contain_text(f"not recorded by #{running}")

    charts = page.locator(".panel:has(.chart-files):visible")
    expect(charts).to_have_count(10)
    for number in range(10):
        check_table(charts.nth(number))

    page.select_option("#view-group", "")
    expect(page.locator(".key__name")).to_have_count(13)
    page.evaluate("Plotly.relayout('compare-curves', {'xaxis.range': [20, 200], 'yaxis.range': [0.25, 1.5]})")
    expect(page).to_have_url(re.compile("from=20&to=200&y=train_loss:0.25:1.5"))
    last = site.tell(f"points {running} 30")
    wait_for_end(page, "the live one", last)
    assert (page.evaluate(RANGE), heights(page)) == ([20, 200], [0.25, 1.5])

    page.click("#views-menu summary")
    page.click("[data-open-dialog='view-dialog']")
    page.fill("#view-name", "Three rates")
    page.check("#view-shared")
    page.click("#view-dialog button[type=submit]")
    expect(page.locator("h1")).to_have_text("Three rates")
    expect(page).to_have_url(re.compile("from=20&to=200&.*y=train_loss:0.25:1.5&view="))

    colleague = open_page("noor", "/compare/")
    colleague.click("#views-menu summary")
    colleague.click("#views-menu >> text=Three rates")
    expect(colleague.locator(".key__name")).to_have_count(13)
    wait_for_end(colleague, "the live one", last)
    assert (colleague.evaluate(RANGE), heights(colleague)) == ([20, 200], [0.25, 1.5])
    expect(colleague.locator("#measured thead")).to_contain_text("baseline")

    table = download(colleague, colleague.locator("[data-series='train_loss']"), "csv").decode()
    assert table.startswith("line,part,Optimizer step,Training loss")
    assert f"#{running} the live one,line,{last}," in table
    drawing = download(colleague, colleague.locator("[data-series='train_loss']"), "svg").decode()
    assert all(text in "".join(ElementTree.fromstring(drawing).itertext()) for text in ("the live one", "0.004 3"))  # noqa: S314 our own


def test_what_was_stored_while_no_answer_came_is_drawn_afterwards(open_page: Open, site: Site) -> None:
    running = site.jobs["running"]
    page = open_page()
    page.goto(f"/compare/?jobs={site.jobs['slow']},{running}")
    expect(page.locator(".key__name")).to_have_count(2)
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    page.evaluate(LOSE_ANSWERS)
    last = site.tell(f"points {running} 20")
    expect(page.locator("#compare-away")).to_contain_text("could not be fetched")
    page.evaluate(FIND_ANSWERS)
    wait_for_end(page, "the live one", last)
    expect(page.locator("#compare-away")).to_be_hidden()


def test_a_chart_is_zoomed_by_keys(open_page: Open, site: Site) -> None:
    page = open_page()
    page.goto(f"/compare/?jobs={site.jobs['slow']},{site.jobs['fast']}&from=10&to=50")
    expect(page.locator("#compare-curves.js-plotly-plot")).to_be_visible()
    page.locator("#compare-curves").focus()
    expect(page.locator(".plot__keys")).to_be_visible()
    for key, ends in (("+", "from=20&to=40"), ("ArrowRight", "from=25&to=45"), ("ArrowLeft", "from=20&to=40")):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(ends))
    page.keyboard.press("-")
    expect(page).to_have_url(re.compile("from=10&to=50"))
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("from="))


def test_jobs_that_wait_are_a_sentence_until_their_first_points(open_page: Open, site: Site) -> None:
    first, second = site.tell("wait one to come"), site.tell("wait another to come")
    page = open_page()
    page.goto(f"/compare/?jobs={first},{second}")
    expect(page.locator("#compare-curves .chart__none")).to_contain_text("no points")
    expect(page.locator(".panel.plot")).to_contain_text(f"Job {first} has not started yet.")
    expect(page.locator("#compare-curves.js-plotly-plot")).to_have_count(0)
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    site.tell(f"start {first}")
    last = site.tell(f"points {first} 10")
    wait_for_end(page, "one to come", last)
    expect(page.locator("#compare-curves .chart__none")).to_have_count(0)


def test_a_job_that_goes_while_it_is_shown_is_missed_in_words(open_page: Open, site: Site) -> None:
    waiting, running = site.tell("wait soon gone"), site.jobs["running"]
    page = open_page()
    page.goto(f"/compare/?jobs={site.jobs['slow']},{running},{waiting}")
    expect(page.locator(".key__name")).to_have_count(3)
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    site.tell(f"delete {waiting}")
    expect(page.locator("#compare-remarks")).to_contain_text(f"#{waiting}")
    expect(page.locator(".key__name")).to_have_count(2)
