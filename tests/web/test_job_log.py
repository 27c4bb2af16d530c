"""Searching a job's log: all of it, in bounded time, with line numbers that lead there."""

import re
from pathlib import Path

import pytest
from django.test import Client

from jobs.attempt_files import AttemptFiles
from jobs.models import Job, User
from jobs.views.log_text import find_in_log, read_log, read_log_around
from tests.jobs.factories import start
from tests.web.conftest import browser_of
from workers.disk import give_back


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


def numbered(path: Path, count: int) -> str:
    """A log that is far longer than what a page loads of it."""
    text = "".join(f"line {number}: {'über' if number % 7 == 0 else 'nothing'}\n" for number in range(1, count + 1))
    path.write_text(text)
    return text


def test_every_line_of_a_log_is_found_with_its_number_and_its_byte(path: Path) -> None:
    text = numbered(path, 5000)
    assert read_log(path, None).is_cut
    found = find_in_log(path, "ÜBER")
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if "über" in line]
    assert [number for number, _offset in found.hits] == lines
    assert found.num_found == len(lines) == 714
    data = path.read_bytes()
    assert all(data[offset:].startswith(b"line %d:" % number) for number, offset in found.hits)
    assert (found.has_gap, found.is_whole) == (False, True)


def test_of_very_many_lines_the_last_thousand_are_told_and_all_are_counted(path: Path) -> None:
    numbered(path, 3000)
    found = find_in_log(path, "line")
    assert (found.num_found, len(found.hits), found.hits[0][0], found.hits[-1][0]) == (3000, 1000, 2001, 3000)


def test_a_search_gives_up_when_its_time_is_over_and_says_so(path: Path) -> None:
    numbered(path, 10_000)
    found = find_in_log(path, "line 1:", time_s=0)
    assert (found.hits, found.is_whole) == ([(1, 0)], False)


def test_a_log_whose_middle_was_given_up_is_searched_on_both_sides_of_it(path: Path) -> None:
    numbered(path, 100_000)
    if not give_back(path, 2**19, 2**20):
        pytest.fail("this file system makes no holes")
    first, last = find_in_log(path, "line 3:"), find_in_log(path, "line 100000:")
    assert (first.hits, first.has_gap) == ([(3, len("line 1: nothing\n") * 2)], True)
    around = read_log_around(path, last.hits[0][1])
    assert (around.line, around.after) == ("line 100000: nothing\n", "")
    assert around.before.endswith("line 99999: nothing\n")
    edge = read_log_around(path, 2**20 - 100)
    assert "\0" not in edge.before + edge.line + edge.after


def test_what_stands_around_a_line_is_whole_lines_and_bounded(path: Path) -> None:
    text = numbered(path, 5000)
    [(number, offset)] = find_in_log(path, "line 2500:").hits
    around = read_log_around(path, offset)
    assert (number, around.line) == (2500, "line 2500: nothing\n")
    assert around.before + around.line + around.after in text
    assert re.match(r"line \d+: \w+\n", around.before)
    assert around.after.endswith("\n")
    assert all(0 < len(part.encode()) <= 16 * 1024 for part in (around.before, around.line, around.after))
    assert read_log_around(path, 10**18).line == ""


def test_a_link_is_not_searched(tmp_path: Path, path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    path.symlink_to(tmp_path / "secret")
    assert find_in_log(path, "key").num_found == 0
    assert read_log_around(path, 0).line == ""


def test_the_page_searches_the_whole_log_and_jumps_to_what_was_found(web: Client, job: Job, stranger: User) -> None:
    assert web.get(f"/jobs/{job.pk}/log/search/?q=x").json()["hits"] == []
    attempt = start(job)
    log = AttemptFiles(attempt.pk).log
    log.parent.mkdir(parents=True, exist_ok=True)
    text = numbered(log, 5000)
    found = web.get(f"/jobs/{job.pk}/log/search/", {"q": " Line 12: "}).json()
    offset = text.encode().index(b"line 12:")
    assert found == {"attempt": attempt.pk, "hits": [[12, offset]], "num_found": 1, "has_gap": False, "is_whole": True}
    there = web.get(f"/jobs/{job.pk}/log/?attempt={attempt.pk}&around={offset}").json()
    assert there["line"] == "line 12: nothing\n"
    assert web.get(f"/jobs/{job.pk}/log/search/?q=").json()["num_found"] == 0
    assert browser_of(stranger).get(f"/jobs/{job.pk}/log/search/?q=line").status_code == 404
