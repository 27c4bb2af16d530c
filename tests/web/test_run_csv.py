"""The list as CSV: all that match, with the list's columns, read back."""

import asyncio
import csv
import io

import pytest
from django.test import Client

from jobs.models import User
from jobs.views import run_csv
from tests.jobs.factories import make_ended_job, make_job, make_spec


def read(client: Client, query: str = "") -> list[dict[str, str]]:
    response = client.get(f"/jobs.csv{query}")
    assert response["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(_whole(response), newline="")))


def _whole(response: object) -> str:
    async def collect() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    return asyncio.run(collect()).decode()


@pytest.mark.django_db(transaction=True)
def test_all_that_match_come_in_the_lists_order_however_many_pieces_they_take(
    web: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_csv, "_AT_ONCE", 2)
    made = [make_job(alice, spec=make_spec(seed=seed)).pk for seed in range(5)]
    make_job(alice, spec=make_spec(seed=1, model="mlp", dataset="digits"))
    rows = read(web, "?q=model:gpt-tiny&sort=-seed&columns=seed,learning_rate")
    assert [(int(row["id"]), row["seed"]) for row in rows] == [(made[seed], str(seed)) for seed in (4, 3, 2, 1, 0)]
    assert set(rows[0]) == {"id", "seed", "learning_rate"}


@pytest.mark.django_db(transaction=True)
def test_values_are_read_back_as_they_are(web: Client, alice: User) -> None:
    job = make_ended_job(alice, name='=cmd "x", y', summary={"steady_step_time_ms": 0.1, "final_eval_loss": None})
    job.tags.create(name="night run")
    make_job(alice, name="-1", spec=make_spec(precision="bf16-mixed", drop_last=False))
    second, first = read(web, "?columns=state,job,config,steady_step_time_ms,final_eval_loss,tag,drop_last,created")
    assert (first["name"], second["name"]) == ('\'=cmd "x", y', "'-1")
    assert float(first["steady_step_time_ms"]) == 0.1
    assert (first["final_eval_loss"], first["tag"], first["drop_last"]) == ("", "night run", "true")
    assert (second["steady_step_time_ms"], second["drop_last"]) == ("", "false")
    assert second["configuration"] == "precision=bf16-mixed num_steps=100 drop_last=false"
    assert first["created"] == job.created_at.isoformat()


@pytest.mark.django_db(transaction=True)
def test_what_is_not_understood_is_no_file(web: Client) -> None:
    response = web.get("/jobs.csv?q=modle:x")
    assert response.status_code == 422
    assert "Did you mean “model”?" in response.content.decode()


@pytest.mark.django_db(transaction=True)
def test_another_teams_runs_are_not_in_it(web: Client, stranger: User) -> None:
    make_job(stranger)
    assert read(web) == []
