"""The pages in a real browser: what lives, lives; nothing is lost; nothing is loaded from elsewhere."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import Site

Open = Callable[..., Page]


def wait_for_step(page: Page, step: int) -> None:
    """Wait until the chart has drawn a step; the page's policy forbids the browser to wait for an expression."""
    for _ in range(100):
        if page.evaluate("document.querySelector('#job-chart').data?.[0].x.at(-1)") == step:
            return
        page.wait_for_timeout(50)
    pytest.fail(f"step {step} was not drawn")


LOSE_CONNECTION = """() => {
  window.RealSource = window.EventSource;
  window.EventSource = class {
    constructor() { setTimeout(() => this.onerror()); }
    addEventListener() {}
    close() {}
  };
}"""


def test_curves_grow_on_the_list_and_ticks_outlive_its_refresh(open_page: Open, site: Site) -> None:
    page = open_page()
    running = site.jobs["running"]
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    expect(page.locator(f"[data-spark='{running}'] .spark__line")).to_be_visible()
    page.check(f"#tick-{site.jobs['slow']}")
    page.focus(f"#tick-{site.jobs['fast']}")
    last = site.tell(f"points {running} 20")
    expect(page.locator(f"[data-card='{running}'] [data-job-step]")).to_have_text(str(last))
    page.evaluate("htmx.trigger('#job-rows', 'live-refresh')")
    page.wait_for_timeout(500)
    expect(page.locator(f"#tick-{site.jobs['slow']}")).to_be_checked()
    expect(page.locator(f"#tick-{site.jobs['fast']}")).to_be_focused()


def test_ticked_jobs_are_compared(open_page: Open, site: Site) -> None:
    page = open_page()
    page.check(f"#tick-{site.jobs['slow']}")
    expect(page.locator("#compare-go")).to_have_attribute("href", f"/compare/?jobs={site.jobs['slow']}")
    page.check(f"#tick-{site.jobs['fast']}")
    page.click("#compare-go")
    expect(page.locator("#compare-curves .scatterlayer .trace")).to_have_count(2)
    expect(page.locator("[data-figure='time'] .bars .point")).to_have_count(2)
    differ = page.locator("section", has=page.get_by_role("heading", name="Where they differ"))
    expect(differ.locator("tbody th")).to_have_text(["Precision"])
    page.select_option("#view-x", "wall_s")
    expect(page.locator("#compare-curves .xtitle")).to_have_text("Wall time since the first step (s)")
    assert "x=wall_s" in page.url


def test_a_jobs_curve_and_log_grow_without_reload_and_keep_the_zoom(open_page: Open, site: Site) -> None:
    running = site.jobs["running"]
    page = open_page(path=f"/jobs/{running}/")
    page.evaluate("window.wasNotReloaded = true")
    expect(page.locator("#job-chart .scatterlayer .trace")).to_have_count(1)
    page.evaluate("Plotly.relayout('job-chart', {'xaxis.range': [5, 25]})")
    last = site.tell(f"points {running} 30")
    wait_for_step(page, last)
    assert page.evaluate("document.querySelector('#job-chart').layout.xaxis.range") == [5, 25]
    expect(page.locator("#job-log")).to_contain_text(f"step {last} is done")
    expect(page.locator("#job-top [data-job-step]")).to_have_text(str(last))
    assert page.evaluate("window.wasNotReloaded")


def test_points_stored_while_the_connection_was_lost_are_fetched_afterwards(open_page: Open, site: Site) -> None:
    running = site.jobs["running"]
    page = open_page(path=f"/jobs/{running}/")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    page.evaluate(LOSE_CONNECTION)
    page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "lost")
    expect(page.locator("#live-status")).to_contain_text("Connection lost")
    last = site.tell(f"points {running} 10")
    page.evaluate("() => { window.EventSource = window.RealSource; window.dispatchEvent(new Event('online')); }")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    wait_for_step(page, last)
    steps = page.evaluate("document.querySelector('#job-chart').data[0].x")
    assert steps == list(range(1, last + 1))


def test_a_menu_of_filters_is_read_when_it_is_opened_and_narrows_the_list(open_page: Open, site: Site) -> None:
    page = open_page(path="/?q=name~e")
    page.focus("#menu-model > summary")
    page.keyboard.press("Enter")
    page.locator("#menu-model").get_by_role("link", name="mlp", exact=True).click()
    expect(page.locator("#filter-q")).to_have_value("name~e model:mlp")
    page.click("#menu-model > summary")
    chosen = page.locator("#menu-model [aria-current]")
    expect(chosen).to_have_text("mlp")
    chosen.click()
    expect(page.locator("#filter-q")).to_have_value("name~e")


def test_the_form_answers_while_it_is_filled_in_and_keeps_focus_and_input(open_page: Open, site: Site) -> None:
    page = open_page(path="/jobs/new/")
    expect(page.locator("#id_num_workers")).to_be_disabled()
    expect(page.locator("#notes-num_workers")).to_contain_text("The data set lives on the device")
    page.select_option("#id_data_loading", "dataloader")
    expect(page.locator("#id_num_workers")).to_be_enabled()
    page.select_option("#id_model", "convnet")
    expect(page.locator("#id_dataset")).to_have_value("digits")
    page.fill("#id_micro_batch_size", "5000")
    expect(page.locator("#notes-micro_batch_size")).to_contain_text("is larger than the training split of digits")
    expect(page.locator("#id_micro_batch_size")).to_be_focused()
    page.fill("#id_micro_batch_size", "16")
    page.fill("#id_grad_accum_steps", "4")
    expect(page.locator("#summary .summary__big")).to_contain_text("64")
    expect(page.locator("#notes-micro_batch_size")).to_be_empty()


def test_a_wrong_form_comes_back_whole_with_the_focus_on_its_first_error(open_page: Open, site: Site) -> None:
    page = open_page(path="/jobs/new/")
    page.fill("#id_job_name", "not lost")
    page.fill("#id_learning_rate", "-1")
    page.click("#submit")
    expect(page.locator("#form-errors")).to_contain_text("Must be greater than 0")
    expect(page.locator("#id_learning_rate")).to_be_focused()
    expect(page.locator("#id_job_name")).to_have_value("not lost")


def test_a_double_click_makes_one_job_which_can_be_cancelled_and_cloned(open_page: Open, site: Site) -> None:
    before = site.tell("count")
    page = open_page(path="/jobs/new/")
    page.fill("#id_job_name", "clicked twice")
    page.fill("#id_seed", "7")
    page.dblclick("#submit")
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    assert site.tell("count") == before + 1
    page.click("#cancel")
    page.fill("#cancel-reason", "only a test")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("clicked twice")
    expect(page.locator("#job-top .pill").first).to_have_text("Cancelled")
    expect(page.locator("#job-top")).to_contain_text("only a test")
    page.focus("#job-menu > summary")
    page.keyboard.press("Enter")
    expect(page.locator("#run-again")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#run-again")).to_be_hidden()
    page.click("#clone")
    expect(page.locator("#id_seed")).to_have_value("7")
    expect(page.locator("#id_job_name")).to_have_value("clicked twice")


def test_staff_pause_and_resume_a_queue_and_the_waiting_jobs_page_says_why(open_page: Open, site: Site) -> None:
    waiting = open_page(path=f"/jobs/{site.jobs['waiting']}/")
    fleet = open_page("boss", "/fleet/")
    fleet.get_by_role("button", name="Pause default").click()
    fleet.fill("#reason", "tyres are cold")
    fleet.keyboard.press("Enter")
    expect(fleet.locator("#fleet")).to_contain_text("tyres are cold")
    waiting.reload()
    expect(waiting.locator("#job-top")).to_contain_text("tyres are cold")
    fleet.get_by_role("button", name="Resume default").click()
    expect(fleet.locator("#fleet")).not_to_contain_text("tyres are cold")


PAGES = ["/", "/jobs/new/", "/jobs/{fast}/", "/compare/?jobs={slow},{fast}", "/leaderboard/", "/fleet/", "/account/"]


def test_an_older_answer_never_replaces_a_newer_one_on_a_waiting_jobs_page(open_page: Open, site: Site) -> None:
    job = site.tell("wait one that is asked about twice")
    page = open_page(path=f"/jobs/{job}/")
    page.clock.install()
    page.reload()
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    asked: list[str] = []
    held: list[tuple[Route, APIResponse]] = []

    def hold_the_first(route: Route) -> None:
        asked.append(route.request.method)
        if held:
            return route.continue_()
        return held.append((route, route.fetch()))

    page.route(re.compile(rf"/jobs/{job}/(parts|cancel)/$"), hold_the_first)
    page.evaluate("htmx.trigger('#job-top-loader', 'live-refresh')")
    page.clock.fast_forward(11_000)
    page.click("#cancel")
    page.click("#cancel-dialog button[type=submit]")
    page.wait_for_timeout(500)
    assert asked == ["GET"]  # whoever asks next waits for its answer
    route, old = held[0]
    assert "Waiting at place" in old.text()
    route.fulfill(response=old)
    expect(page.locator("#job-top .pill").first).to_have_text("Cancelled")
    assert asked.count("POST") == 1
    page.wait_for_timeout(500)
    expect(page.locator("#job-top .pill").first).to_have_text("Cancelled")


def test_a_waiting_jobs_page_asks_now_and_then_without_news(open_page: Open, site: Site) -> None:
    job = site.tell("wait one without news")
    page = open_page(path=f"/jobs/{job}/")
    page.clock.install()
    page.reload()
    with page.expect_response(re.compile(rf"/jobs/{job}/parts/$")):
        page.clock.fast_forward(11_000)


def test_the_whole_log_is_searched_by_keyboard(open_page: Open, site: Site) -> None:
    job = site.tell("wait one that prints much")
    site.tell(f"start {job}")
    site.tell(f"points {job} 3")
    site.tell(f"print {job} 12345")
    page = open_page(path=f"/jobs/{job}/")
    log, told = page.locator("#job-log"), page.locator("#log-found")
    expect(log).to_contain_text("printed 12345")
    expect(log).not_to_contain_text(re.compile(r"printed 123\b"))
    page.keyboard.press("/")
    page.keyboard.type("Printed 123")
    expect(told).to_have_text("57 of 57, line 12,346")
    expect(log.locator("mark")).to_have_text("printed 12345\n")
    page.keyboard.press("Enter")
    expect(told).to_have_text("1 of 57, line 124")
    expect(log.locator("mark")).to_have_text("printed 123\n")
    expect(log.locator("mark")).to_be_in_viewport()
    page.keyboard.press("Shift+Enter")
    expect(told).to_have_text("57 of 57, line 12,346")
    site.tell(f"print {job} 123")
    expect(told).to_have_text("57 of 58, line 12,346")
    page.get_by_role("button", name="The next one").click()
    expect(told).to_have_text("58 of 58, line 12,469")
    page.fill("#log-search", "nowhere")
    expect(told).to_have_text("Not in the log")
    page.keyboard.press("Escape")
    expect(told).to_be_empty()
    expect(log).to_contain_text("printed 12345")


def debiased_mean(values: list[float], weight: float) -> list[float]:
    """The exponential mean by its definition, point by point."""
    means, mean = [], 0.0
    for number, value in enumerate(values, start=1):
        mean = weight * mean + (1 - weight) * value
        means.append(mean / (1 - weight**number))
    return means


def wait_for_lines(page: Page, count: int, step: int) -> list[list[float]]:
    """The values of the lines that are drawn, once there are so many and the last one has reached a step."""
    for _ in range(200):
        lines = page.evaluate("(document.querySelector('#job-chart').data ?? []).map(line => [line.x, line.y])")
        if len(lines) == count and lines[-1][0][-1] == step:
            return [y for _x, y in lines]
        page.wait_for_timeout(50)
    return pytest.fail(f"{count} lines up to step {step} were not drawn")


def test_a_jobs_curve_is_smoothed_as_in_the_comparison_and_the_address_remembers_it(
    open_page: Open, site: Site
) -> None:
    job = site.tell("wait one that is smoothed")
    site.tell(f"start {job}")
    site.tell(f"points {job} 60")
    page = open_page(path=f"/jobs/{job}/")
    [recorded] = wait_for_lines(page, 1, 60)
    page.select_option("#view-smooth", "ema")
    raw, line = wait_for_lines(page, 2, 60)
    assert raw == recorded
    assert line == pytest.approx(debiased_mean(recorded, 0.9))
    expect(page.locator("#job-caption")).to_contain_text("debiased, weight of the past 0.9.")
    assert page.url.endswith("?smooth=ema&amount=0.9")
    page.fill("#view-amount", "0.5")
    page.keyboard.press("Enter")
    expect(page.locator("#job-caption")).to_contain_text("weight of the past 0.5.")
    site.tell(f"points {job} 20")
    raw, line = wait_for_lines(page, 2, 80)
    assert line == pytest.approx(debiased_mean(raw, 0.5))
    page.reload()
    expect(page.locator("#view-amount")).to_have_value("0.5")
    assert wait_for_lines(page, 2, 80)[1] == pytest.approx(line)
    page.evaluate("Plotly.relayout('job-chart', {'xaxis.range': [40, 50]})")
    page.wait_for_timeout(500)
    shown = page.evaluate("document.querySelector('#job-chart').data[1]")
    assert dict(zip(shown["x"], shown["y"], strict=True))[45] == pytest.approx(line[44])
    page.select_option("#view-smooth", "none")
    assert wait_for_lines(page, 1, 80) == [raw]
    assert page.url.endswith(f"/jobs/{job}/")
    expect(page.locator("#job-caption")).not_to_contain_text("Smoothed")


@pytest.mark.parametrize("width", [1440, 390])
def test_no_tile_is_cut(open_page: Open, site: Site, width: int) -> None:
    page = open_page(path=f"/jobs/{site.tell('ended')}/", viewport={"width": width, "height": 900})
    expect(page.locator(".tile dt")).to_have_count(9)
    cut = "tiles => tiles.filter(tile => tile.scrollWidth > tile.clientWidth).map(tile => tile.textContent)"
    assert page.locator(".tile dt, .tile dd").evaluate_all(cut) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(open_page: Open, site: Site, scheme: str) -> None:
    page = open_page("boss", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    for path in PAGES:
        page.goto(path.format(**site.jobs))
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.evaluate("document.documentElement.dataset.theme") == scheme


def test_nothing_is_loaded_from_another_host(open_page: Open, site: Site) -> None:
    page = open_page("boss")
    hosts = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    for path in [*PAGES, "/admin/", "/api/v1/docs"]:
        page.goto(path.format(**site.jobs))
        page.wait_for_timeout(200)
    assert hosts <= {urlsplit(site.address).netloc, ""}  # "" are images inside the page


def test_the_theme_is_switched_and_remembered_and_charts_follow(open_page: Open, site: Site) -> None:
    page = open_page(path=f"/jobs/{site.jobs['fast']}/", color_scheme="light")
    expect(page.locator("#job-chart .scatterlayer .trace")).to_have_count(1)
    colour = "document.querySelector('#job-chart').layout.font.color"
    before = page.evaluate(colour)
    page.click("#theme-toggle")
    assert page.evaluate(colour) != before
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_list_is_used_by_keyboard_alone(open_page: Open, site: Site) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#filter-q")).to_be_focused()
    page.keyboard.type("slow")
    page.keyboard.press("Enter")
    expect(page.locator(".job-name")).to_have_text(["slow one"])
    page.focus(f"#tick-{site.jobs['slow']}")
    page.keyboard.press("Space")
    expect(page.locator("#compare-bar")).to_be_visible()


def test_the_end_of_a_job_arrives_without_reload(open_page: Open, site: Site) -> None:
    running = site.jobs["running"]
    page, listed = open_page(path=f"/jobs/{running}/"), open_page()
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    expect(listed.locator("#live-status")).to_have_attribute("data-live", "on")
    site.tell(f"finish {running}")
    expect(page.locator("#job-top .pill").first).to_have_text("Succeeded")
    expect(page.locator("[data-tile='steady_step_time_ms']")).to_contain_text("7.5")
    expect(page.locator("#job-chart .scatterlayer .trace")).to_have_count(1)
    expect(listed.locator(f"tr[data-job='{running}'] .pill")).to_have_text("Succeeded")


def test_zooming_a_long_curve_fetches_every_point_there(open_page: Open, site: Site) -> None:
    job = site.tell("wait a long one")
    site.tell(f"start {job}")
    site.tell(f"points {job} 9000")
    page = open_page(path=f"/jobs/{job}/")
    expect(page.locator("#job-chart .scatterlayer .trace")).to_have_count(1)
    page.evaluate("Plotly.relayout('job-chart', {'xaxis.range': [5000, 5100]})")
    for _ in range(400):
        steps = page.evaluate("document.querySelector('#job-chart').data[0].x")
        if [step for step in steps if 5000 <= step <= 5100] == list(range(5000, 5101)):
            assert len(steps) < 9000
            return
        page.wait_for_timeout(50)
    pytest.fail("the points were not fetched")
