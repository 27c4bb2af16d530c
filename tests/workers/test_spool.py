"""Events on their way into the database: from a file that does not fill the disk, in bounded pieces, each once."""

from pathlib import Path

import pytest

from jobs.contract.events import Event, Finished, Points, Warned
from jobs.contract.findings import Finding, Severity
from jobs.contract.metrics import Summary
from jobs.contract.states import Outcome
from jobs.models import Attempt
from jobs.selectors.curves import read_curve
from tests.jobs.factories import make_job, points, start
from workers import delivery, engine_process
from workers.delivery import Delivery
from workers.engine_process import EventReader, LogKeeper

WARNING = Finding(code="warn_seed", field="seed", severity=Severity.WARN, message="Odd.")


def write(path: Path, *events: Event) -> None:
    with path.open("ab") as file:
        file.writelines(event.model_dump_json().encode() + b"\n" for event in events)


def at(step: int) -> Points:
    return points([step], train_loss=[float(step)])


def disk_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_file_is_read_in_pieces_and_no_line_is_missed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_READ_BYTES", 150)
    write(path, *(at(step) for step in range(1, 51)))
    reader, pieces = EventReader(path), []
    while piece := reader.read_new():
        pieces.append(piece)
    assert len(pieces) > 10
    assert [step for piece in pieces for event in piece for step in event.steps] == list(range(1, 51))
    assert reader.backlog_bytes == 0


def test_a_line_longer_than_a_piece_is_read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_READ_BYTES", 20)
    write(path, points(range(1000), train_loss=range(1000)))
    (event,) = EventReader(path).read_new()
    assert len(event.steps) == 1000


def test_a_line_that_is_not_complete_yet_waits(path: Path) -> None:
    write(path, at(1))
    with path.open("ab") as file:
        file.write(at(2).model_dump_json().encode()[:20])
    reader = EventReader(path)
    assert len(reader.read_new()) == 1
    with path.open("ab") as file:
        file.write(at(2).model_dump_json().encode()[20:] + b"\n")
    assert [event.steps for event in reader.read_new()] == [[2]]


def test_what_was_read_takes_up_no_space_but_for_the_beginning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_KEPT_BYTES", 64 * 1024)
    monkeypatch.setattr(engine_process, "_GIVE_BACK_BYTES", 64 * 1024)
    reader, num_read = EventReader(path), 0
    for begin in range(0, 40_000, 1000):
        write(path, *(at(step) for step in range(begin, begin + 1000)))
        num_read += len(reader.read_new())
    num_read += len(reader.read_new())
    assert num_read == 40_000
    assert path.stat().st_size > 2**21
    assert disk_bytes(path) < 2**19
    assert path.read_bytes().startswith(at(0).model_dump_json().encode())


def test_a_log_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "_KEPT_BYTES", 64 * 1024)
    monkeypatch.setattr(engine_process, "_GIVE_BACK_BYTES", 64 * 1024)
    log = tmp_path / "log.txt"
    keeper = LogKeeper(log)
    keeper.shorten()
    for number in range(40):
        with log.open("a") as file:
            file.write(f"{number:07d}\n" * 8192)
        keeper.shorten()
    assert log.stat().st_size == 40 * 65536
    assert disk_bytes(log) <= 4 * 65536
    assert log.read_bytes()[:8] == b"0000000\n"
    assert log.read_bytes()[-65536:] == b"0000039\n" * 8192


@pytest.fixture
def attempt(db: None) -> Attempt:
    return start(make_job())


def test_points_are_stored_in_order_and_a_flush_has_a_bounded_size(
    attempt: Attempt, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_POINTS_PER_FLUSH", 10)
    write(path, *(at(step) for step in range(1, 96)), Finished(outcome=Outcome.SUCCEEDED, summary=Summary()))
    under_way = Delivery(attempt, path)
    while under_way.take():
        under_way.deliver(flush=True)
    assert read_curve(attempt, "train_loss").x == list(range(1, 96))
    attempt.refresh_from_db()
    assert attempt.num_flushes == 10
    assert under_way.finished is not None


def test_a_full_spool_gives_up_its_oldest_points_and_says_so(
    attempt: Attempt, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "SPOOL_BYTES", 4000)
    monkeypatch.setattr(engine_process, "_READ_BYTES", 500)
    write(path, Warned(finding=WARNING), *(at(step) for step in range(1, 101)))
    under_way = Delivery(attempt, path)
    under_way.shed()  # the database is away
    while under_way.take():
        under_way.deliver(flush=True)
    attempt.refresh_from_db()
    assert {finding["code"] for finding in attempt.findings} == {"warn_seed", "spool_full"}
    kept = read_curve(attempt, "train_loss").x
    assert kept == list(range(kept[0], 101))
    assert 1 < kept[0] < 90


def test_a_spool_that_is_not_full_keeps_everything(attempt: Attempt, path: Path) -> None:
    write(path, *(at(step) for step in range(1, 101)))
    under_way = Delivery(attempt, path)
    under_way.shed()
    while under_way.take():
        under_way.deliver(flush=True)
    attempt.refresh_from_db()
    assert (attempt.num_points, attempt.findings) == (100, [])
