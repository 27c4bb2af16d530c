"""Fills the database that the environment names with so many runs, and times pages of the list and of boards.

`python -m benchmarks.runs_measured RUNS REQUESTS` prints its result as a line of JSON. A request goes through the whole
web application, from the address to the last byte of the page, without the network.
"""

import html
import json
import os
import re
import statistics
import sys
import time
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()

from django.core.management import call_command
from django.test import Client

import webapp.asgi  # noqa: F401 loads, and keeps from the garbage collector, what the web process does
from benchmarks.many_runs import fill, make_people
from jobs.models import Board

# What is claimed: an order by a ranked figure, narrowed by what is indexed. Then what else people do, its time stated.
LISTS = {
    "newest first": ("", True),
    "by step time": ("sort=steady_step_time_ms", True),
    "by step time, slowest first": ("sort=-steady_step_time_ms", True),
    "by evaluation loss, one team": ("sort=final_eval_loss&q=team:team-3", True),
    "by step time, the slowest model": ("sort=steady_step_time_ms&q=model:gpt2", True),
    "by throughput, one device": ("sort=-samples_per_s&q=device:cpu", True),
    "by step time, succeeded": ("sort=steady_step_time_ms&q=outcome:succeeded", True),
    "by step time, out of memory": ("sort=steady_step_time_ms&q=outcome:out_of_memory", True),
    "by step time, of the last week": ("sort=steady_step_time_ms&q=age%3C7d", True),
    "by step time, of the last half year": ("sort=steady_step_time_ms&q=age%3C180d", True),
    "newest first, one model": ("q=model:gpt2", True),
    "by step time, one model that ran out of memory": (
        "sort=steady_step_time_ms&q=model:gpt2+outcome:out_of_memory",
        False,
    ),
    "by step time, one owner": ("sort=steady_step_time_ms&q=owner:team-3-1", False),
    "newest first, one tag": ("q=tag:sweep", False),
    "by step time, one tag": ("sort=steady_step_time_ms&q=tag:sweep", False),
    "by step time, one model and precision": ("sort=steady_step_time_ms&q=model:mlp+precision:bf16-mixed", False),
    "newest first, one seed (of ten)": ("q=seed:7", False),
    "by step time, one learning rate (of five)": ("sort=steady_step_time_ms&q=learning_rate:0.003", False),
    "step time below 1 ms": ("q=step_time_ms%3C1", False),
    "a word in the name that few have": ("q=needle", False),
    "by name": ("sort=name", False),
}


BOARDS = {
    "the board used last": "/leaderboard/",
    "a board": "/leaderboard/{board}/",
    "a board by time to target": "/leaderboard/{board}/?metric=time_to_target_s",
    "a board within 8 GB": "/leaderboard/{board}/?budget=8",
    "a board over time": "/leaderboard/{board}/history/",
    "all boards, API": "/api/v1/boards",
    "a board, API": "/api/v1/boards/{board}",
}


def main(num_runs: int, num_requests: int) -> dict[str, Any]:
    """Milliseconds of each list, for a member of all teams."""
    people, began_s = make_people(), time.perf_counter()
    fill(num_runs, people)
    filled_s = time.perf_counter() - began_s
    client = Client(headers={"Host": "localhost"})
    client.force_login(people.member)
    lists = {name: _timed(client, query, num_requests, claimed) for name, (query, claimed) in LISTS.items()}
    boards = {name: _timed_board(client, address, num_requests) for name, address in BOARDS.items()}
    return {"num_runs": num_runs, "filled_s": round(filled_s, 1), "lists": lists, "boards": boards}


def _timed_board(client: Client, address: str, num_requests: int) -> dict[str, Any]:
    """A board after another, the last used ones first."""
    keys, times_ms = list(Board.objects.values_list("pk", flat=True)[:num_requests]), []
    for number in range(num_requests):
        began_s = time.perf_counter()
        response = client.get(address.format(board=keys[number % len(keys)]))
        times_ms.append(1000 * (time.perf_counter() - began_s))
        assert response.status_code == 200, response.content[:500]
    return _percentiles(times_ms)


_NEXT = re.compile(r'id="next-page" href="([^"]+)"')


def _timed(client: Client, query: str, num_requests: int, is_claimed: bool) -> dict[str, Any]:
    """The first page again and again, and the pages behind it in turn: a page is no dearer for lying deep."""
    times_ms, num_rows, address = list[float](), list[int](), f"/?{query}"
    for number in range(num_requests if is_claimed else max(5, num_requests // 10)):
        began_s = time.perf_counter()
        response = client.get(address)
        times_ms.append(1000 * (time.perf_counter() - began_s))
        assert response.status_code == 200, response.content[:500]
        page = response.content.decode()
        num_rows.append(page.count("<tr data-job="))
        following = _NEXT.search(page)
        address = f"/{html.unescape(following[1])}" if following and number % 5 else f"/?{query}"
    return _percentiles(times_ms) | {"is_claimed": is_claimed, "num_rows": max(num_rows)}


def _percentiles(times_ms: list[float]) -> dict[str, Any]:
    cuts = statistics.quantiles(times_ms, n=20)
    return {"p50_ms": cuts[9], "p95_ms": cuts[18], "raw_ms": [round(t, 2) for t in times_ms]}


if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    print(json.dumps(main(*map(int, sys.argv[1:]))))
