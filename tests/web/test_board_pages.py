"""The leaderboard's pages."""

import csv
import io

import pytest
from django.http import QueryDict
from django.test import Client

from jobs.contract.states import Outcome
from jobs.forms.board_address import BoardAddress
from jobs.models import AuditEntry, Board, BoardEntry, Job, User
from jobs.selectors.audit import audit_line, visible_entries
from jobs.selectors.measured import already_measured
from tests.jobs.factories import VERSIONS, make_ended_job, make_job, make_spec
from tests.web.conftest import browser_of

FAST = {"precision": "bf16-mixed"}


@pytest.fixture
def runs(alice: User) -> list[Job]:
    """A baseline and a faster configuration, two seeds each."""
    return [
        make_ended_job(
            alice,
            spec=make_spec(seed=seed, **spec),
            summary={"steady_step_time_ms": step_time_ms + 0.01 * seed, "final_eval_loss": 2.6 + 0.001 * seed},
        )
        for spec, step_time_ms in (({}, 20.0), (FAST, 10.0))
        for seed in (0, 1)
    ]


def page_of(web: Client, query: str = "") -> str:
    return web.get(f"/leaderboard/{query}").content.decode()


def test_an_empty_board_says_how_one_begins(web: Client) -> None:
    assert "A board begins with the first job that succeeds." in page_of(web)


def test_the_board_leads_to_its_runs_and_to_a_form_with_the_configuration(web: Client, runs: list[Job]) -> None:
    page = page_of(web)
    slow, fast = runs[1], runs[3]
    assert page.index(f"/jobs/new/?from={fast.pk}") < page.index(f"/jobs/new/?from={slow.pk}")
    assert f"?q=id%3A{fast.pk}%2C{fast.pk - 1}" in page
    assert f"/compare/?jobs={fast.pk},{slow.pk}" in page
    listed = web.get(f"/?q=id:{fast.pk},{fast.pk - 1}").content.decode()
    assert f"job-link-{fast.pk}" in listed
    assert f"job-link-{slow.pk}" not in listed


def test_a_board_of_one_run_is_a_baseline(web: Client, alice: User) -> None:
    make_ended_job(alice)
    page = page_of(web)
    assert "The baseline is first" in page
    assert "n=1" in page


def test_runs_that_wait_for_this_board_are_told(web: Client, runs: list[Job], alice: User) -> None:
    make_job(alice)
    make_job(alice, spec=make_spec(learning_rate=0.5))
    assert "1 run of this work waits or runs." in page_of(web)


def test_what_does_not_rank_says_why(web: Client, runs: list[Job], alice: User) -> None:
    make_ended_job(alice, spec=make_spec(seed=0, channels_last=True))
    make_ended_job(alice, spec=make_spec(compile_mode="default"), outcome=Outcome.OUT_OF_MEMORY)
    page = page_of(web)
    assert "insufficient evidence: 1 of 5 seeds" in page
    assert "no run ended well" in page
    assert "Out of memory" in page


@pytest.mark.parametrize(
    "query",
    [
        "?metric=peak_bytes&budget=8",
        "?metric=time_to_target_s&target=1.5",
        "?metric=nothing&budget=x&target=nan&baseline=²",
        "?rank=all&rows=all&q=owner:me",
        "?budget=0.0001",
        "?budget=1e308",
    ],
)
def test_every_address_has_a_page(web: Client, runs: list[Job], query: str) -> None:
    response = web.get(f"/leaderboard/{Board.objects.get().pk}/{query}")
    assert response.status_code == 200


@pytest.mark.parametrize("query", ["budget=7.1234567&target=1.23456789", "budget=8&target=-2", "budget=1e-05"])
def test_links_of_a_board_hold_the_very_numbers_of_its_address(query: str) -> None:
    address = BoardAddress.from_query(QueryDict(query))
    assert address.link() == f"?{query}"
    assert BoardAddress.from_query(QueryDict(address.link()[1:])) == address


def test_the_form_of_a_board_holds_them_too(web: Client, runs: list[Job]) -> None:
    page = page_of(web, f"{Board.objects.get().pk}/?budget=7.1234567&target=1.23456789")
    assert 'value="7.1234567"' in page
    assert 'name="target" value="1.23456789"' in page


def test_a_filter_that_is_not_understood_says_so(web: Client, runs: list[Job]) -> None:
    page = page_of(web, "?q=model:mlp")
    assert "A board is narrowed by its options" in page
    assert "No configuration is left" in page


def test_the_csv_has_a_line_for_each_configuration(web: Client, runs: list[Job]) -> None:
    response = web.get(f"/leaderboard/{Board.objects.get().pk}.csv")
    lines = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [(line["rank"], line["precision"], line["steady_step_time_ms_n"]) for line in lines] == [
        ("1", "bf16-mixed", "2"),
        ("2", "fp32", "2"),
    ]
    assert web.get(f"/leaderboard/{Board.objects.get().pk}.csv?q=nonsense:1").status_code == 422
    entry = BoardEntry.objects.get(configuration__precision="fp32")
    entry.runs = [run | {"owner": "@SUM(A1)"} for run in entry.runs]
    entry.save()
    text = web.get(f"/leaderboard/{Board.objects.get().pk}.csv").content.decode()
    assert ",'@SUM(A1)," in text, "a spreadsheet would take it for a formula"


def test_another_teams_board_is_not_there(stranger: User, runs: list[Job]) -> None:
    client, pk = browser_of(stranger), Board.objects.get().pk
    assert client.get(f"/leaderboard/{pk}/").status_code == 404
    assert client.get(f"/leaderboard/{pk}.csv").status_code == 404
    assert client.get(f"/leaderboard/{pk}/history/").status_code == 404
    assert "No board yet" in client.get("/leaderboard/").content.decode()


def test_the_menu_leads_to_another_board(web: Client, runs: list[Job], alice: User) -> None:
    make_ended_job(alice, spec=make_spec(learning_rate=0.1))
    first = Board.objects.order_by("pk")[0]
    assert "All boards" in page_of(web)
    assert web.get(f"/leaderboard/?board={first.pk}").headers["Location"] == f"/leaderboard/{first.pk}/"


def test_reproducing_repeating_and_another_baseline(web: Client, runs: list[Job], alice: User) -> None:
    board = Board.objects.get()
    fast = board.entries.order_by("-pk")[0]
    assert f"entries/{fast.pk}/reproduce" not in page_of(web), "of two seeds nothing could be verified"
    assert "3 repeats are queued." in web.post(f"/leaderboard/entries/{fast.pk}/repeat/", follow=True).content.decode()
    for seed in (2, 3, 4):
        make_ended_job(alice, spec=make_spec(seed=seed, **FAST), summary={"steady_step_time_ms": 10.0})
    page = web.post(f"/leaderboard/entries/{fast.pk}/reproduce/", {"next": f"/leaderboard/{board.pk}/"}, follow=True)
    assert "5 runs are queued again." in page.content.decode()
    assert "0 of 5 runs ended" in page.content.decode()
    again = web.post(f"/leaderboard/entries/{fast.pk}/reproduce/", follow=True).content.decode()
    assert "being reproduced already" in again
    web.post(f"/leaderboard/{board.pk}/baseline/", {"entry": fast.pk})
    board.refresh_from_db()
    assert board.baseline == fast


def test_a_change_of_the_baseline_is_in_the_audit_trail(
    web: Client, runs: list[Job], alice: User, stranger: User
) -> None:
    board = Board.objects.get()
    fast = board.entries.order_by("-pk")[0]
    for _twice in range(2):
        web.post(f"/leaderboard/{board.pk}/baseline/", {"entry": fast.pk})
    [entry] = AuditEntry.objects.all()
    assert (entry.actor, entry.board, entry.subject) == (alice, board, str(board))
    assert audit_line(entry).text == "made bf16-mixed its baseline instead of fp32"
    assert list(visible_entries(alice)) == [entry]
    assert not visible_entries(stranger).exists()
    Board.objects.all().delete()
    entry = AuditEntry.objects.get()
    assert (entry.board, entry.subject) == (None, str(board)), "it outlives the board"


def test_strangers_do_nothing_to_a_board(stranger: User, runs: list[Job]) -> None:
    board, client = Board.objects.get(), browser_of(stranger)
    for address in (
        f"{board.pk}/baseline",
        f"entries/{board.baseline_id}/reproduce",
        f"entries/{board.baseline_id}/repeat",
    ):
        assert client.post(f"/leaderboard/{address}/", {"entry": board.baseline_id}).status_code == 404


def test_a_comparison_says_what_keeps_runs_apart(web: Client, alice: User) -> None:
    one, other = make_ended_job(alice), make_ended_job(alice, spec=make_spec(learning_rate=0.1))
    page = web.get(f"/compare/?jobs={one.pk},{other.pk}").content.decode()
    assert "Not to be ranked against each other." in page
    assert "Learning rate: 0.001 / 0.1" in page
    alike = make_ended_job(alice, spec=make_spec(precision="bf16-mixed"))
    assert "the same work on the same ground" in web.get(f"/compare/?jobs={one.pk},{alike.pk}").content.decode()


def test_the_form_tells_what_was_measured_already(web: Client, runs: list[Job]) -> None:
    page = web.get(f"/jobs/new/?from={runs[0].pk}").content.decode()
    assert "Already measured 2 times: reuse or repeat?" in page


def test_the_same_work_asked_for_in_epochs_was_measured_too(alice: User, stranger: User) -> None:
    make_ended_job(
        alice, spec=make_spec(model="mlp", dataset="digits", num_steps=2 * (1437 // 32), micro_batch_size=32)
    )
    asked = make_spec(model="mlp", dataset="digits", num_steps=None, num_epochs=2, micro_batch_size=32)
    measured = already_measured(asked, alice)
    assert measured
    assert measured.num_runs == 1
    assert already_measured(asked, stranger) is None
    assert already_measured(asked.model_copy(update={"num_epochs": 3}), alice) is None, "it is longer"
    assert already_measured(asked.model_copy(update={"drop_last": False}), alice) is None, "it has more steps"
    assert already_measured(asked.model_copy(update={"dataset": "folder:unknown"}), alice) is None


def test_a_regression_across_versions_is_told_beside_the_history(web: Client, alice: User) -> None:
    for torch, step_time_ms in (("2.12.1", 10.0), ("2.13.0", 12.0)):
        for seed in (0, 1):
            make_ended_job(
                alice,
                spec=make_spec(seed=seed),
                summary={"steady_step_time_ms": step_time_ms + 0.01 * seed},
                started={"versions": VERSIONS | {"torch": torch}},
            )
    newest = Board.objects.get(versions__torch="2.13.0")
    page = web.get(f"/leaderboard/{newest.pk}/history/").content.decode()
    assert "1 configuration got slower with torch 2.12.1 → 2.13.0" in page
    assert "<b>defaults</b> 1.20 times the step time" in page
    assert "Over time" in page
    assert "got slower" not in web.get(f"/leaderboard/{newest.pk - 1}/history/").content.decode()
