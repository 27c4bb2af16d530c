"""An admin's day in a real browser: pause, reorder by hand and by keys, drain, cancel with a reason, queue again."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site

Open = Callable[..., Page]


def line(page: Page) -> Locator:
    return page.locator("[data-line] .job-name")


def drag(page: Page, job: int, above: int) -> None:
    """Take a job by its handle and let it go over the upper half of another one."""
    grip, target = page.locator(f"#grip-{job}"), page.locator(f"[data-line] tr[data-job='{above}']")
    grip.scroll_into_view_if_needed()
    start, end = grip.bounding_box(), target.bounding_box()
    assert start
    assert end
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(end["x"] + 30, end["y"] + 20, steps=5)
    page.mouse.move(end["x"] + 30, end["y"] + 4, steps=3)
    page.mouse.up()


def test_an_admins_day(open_page: Open, site: Site) -> None:
    first, second, third = [site.tell(f"wait line-{number}") for number in (1, 2, 3)]
    names = ["the waiting one", "line-1", "line-2", "line-3"]
    page = open_page("boss", "/fleet/queues/default/")
    expect(line(page)).to_have_text(names)

    drag(page, third, above=first)
    expect(line(page)).to_have_text(["the waiting one", "line-3", "line-1", "line-2"])
    expect(page.locator("#toasts")).to_contain_text(f"Job #{third} has another place.")

    page.focus(f"#grip-{third}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#line-status")).to_have_text(f"Job {third} is at place 4 now.")
    expect(page.locator(f"[data-line] tr[data-job='{third}']")).to_have_attribute("data-place", "4")
    expect(page.locator(f"#grip-{third}")).to_be_focused()
    page.reload()
    expect(line(page)).to_have_text(names)

    page.get_by_role("button", name="Pause default").click()
    page.fill("#reason", "tyres are cold")
    page.keyboard.press("Enter")
    expect(page.locator("#queue")).to_contain_text("tyres are cold")

    page.check(f"#tick-{first}")
    page.check(f"#tick-{second}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("#act-heading")).to_have_text("Cancel 2 jobs?")
    page.fill("#act-reason", "wrong tyres")
    page.keyboard.press("Enter")
    expect(line(page)).to_have_text(["the waiting one", "line-3"])
    expect(page.locator("#queue")).to_contain_text("wrong tyres")

    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(line(page)).to_have_text(["the waiting one", "line-3", "line-1", "line-2"])
    expect(page.locator("#toasts")).to_contain_text("2 jobs wait again.")

    page.get_by_role("button", name="Resume default").click()
    expect(page.locator("#queue .note--warn")).to_have_count(0)
    page.goto("/fleet/")
    page.get_by_role("button", name="Drain pit-01").click()
    page.fill("#reason", "new driver")
    page.keyboard.press("Enter")
    expect(page.locator("#fleet article .pill")).to_have_text("Draining")
    page.get_by_role("button", name="Resume pit-01").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#fleet article .pill")).to_have_text("Online")

    page.goto("/fleet/history/")
    acts = page.locator(".history-table tbody tr td:nth-child(4)")
    expect(acts.first).to_have_text("let it take jobs again")
    expect(page.locator(".history-table")).to_contain_text("wrong tyres")


def test_the_line_changes_under_everybodys_eyes_but_not_under_the_hand(open_page: Open, site: Site) -> None:
    waiting, other = site.tell("wait held"), site.tell("wait beside")
    page = open_page("boss", "/fleet/queues/default/")
    expect(page.locator("#live-status")).to_have_attribute("data-live", "on")
    box = page.locator(f"#grip-{waiting}").bounding_box()
    assert box
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    site.tell("wait late")
    page.wait_for_timeout(1500)
    expect(page.locator("[data-line]")).not_to_contain_text("late")
    page.mouse.up()
    expect(page.locator("[data-line]")).to_contain_text("late")
    expect(page.locator(f"#grip-{other}")).to_be_visible()


def test_a_member_acts_on_ticked_jobs_from_the_list(open_page: Open, site: Site) -> None:
    job = site.tell("wait mine to move")
    page = open_page(path="/")
    page.goto("/?q=mine to move")
    page.check(f"#tick-{job}")
    page.locator(".compare-bar summary").click()
    page.get_by_role("button", name="Time limit…").click()
    page.fill("#act-time-limit", "90")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text(f"Job #{job} has another time limit.")
    expect(page.locator("#compare-bar")).to_be_hidden()
    page.check("#tick-all")
    expect(page.locator("#compare-count")).to_have_text("1 job ticked")


def test_the_fleets_pages_fit_a_phone_and_draw_their_charts(open_page: Open, site: Site) -> None:
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
    page = open_page("boss", **options)
    for path in ("/fleet/", "/fleet/queues/default/", "/fleet/use/", "/fleet/history/"):
        page.goto(path)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.goto("/fleet/use/")
    expect(page.locator("[data-use='waits'] .scatterlayer .trace")).to_have_count(2)
    expect(page.locator("[data-use='leased'] .heatmaplayer")).to_have_count(1)
    page.get_by_text("Week").click()
    expect(page.locator("[data-use='outcomes'] .bars .point")).not_to_have_count(0)
