"""queue: rows of arrays, nodes, and a table that fits its terminal."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from odcctl.commands import history
from odcctl.text.tables import MIN_LAST, Narrow, fit
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import SWEEP, a_job, a_mixed_queue
from tests.odcctl.peer import Peer
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]


@pytest.fixture
def mixed(peer: Peer) -> Peer:
    peer.on("GET", "/v1/jobs", {"jobs": a_mixed_queue(), "next": None})
    peer.on("GET", "/v1/nodes", {"nodes": [{"name": f"gpu-h100-0{n}"} for n in range(1, 6)]})
    return peer


def _column(odcctl: Odcctl, name: str, *argv: str) -> list[str]:
    return odcctl("queue", "--no-header", "-o", name, *argv).out.splitlines()


def test_an_array_is_one_row_with_the_numbers_of_its_tasks(mixed: Peer, odcctl: Odcctl) -> None:
    assert _column(odcctl, "job") == ["4127", "4126", "4130", "4131", "4132", "4133"]
    text = _column(odcctl, "nodes_why")[1]
    assert text.startswith("2 of 12 done, 2 running, 1 failed; JobArrayTaskLimit: 2 of its tasks")
    assert _column(odcctl, "state")[1] == "RUNNING"


def test_with_r_every_task_is_a_row(mixed: Peer, odcctl: Odcctl) -> None:
    tasks = [f"4126_{task}" for task in (1, 3, 4, 5, 6, 7, 8, 9)]
    assert _column(odcctl, "job", "-r")[1:9] == tasks


def test_tasks_that_are_named_are_not_combined(mixed: Peer, odcctl: Odcctl) -> None:
    assert "4126_1" in _column(odcctl, "job", "4126_[1-4]")


def test_json_keeps_the_rows_of_the_api(mixed: Peer, odcctl: Odcctl) -> None:
    assert json.loads(odcctl("queue", "--json").out)["jobs"] == a_mixed_queue()


def test_tasks_that_the_daemon_left_out_stay_one_row(peer: Peer, odcctl: Odcctl) -> None:
    job = a_job(7, array_job_id=7, array_tasks="1,4-5,...%2", array_progress=SWEEP)
    peer.on("GET", "/v1/jobs", {"jobs": [job], "next": None})
    assert _column(odcctl, "job", "-r") == ["7_1", "7_4", "7_5", "7_[...%2]"]


def test_w_selects_jobs_by_node(mixed: Peer, odcctl: Odcctl) -> None:
    assert _column(odcctl, "job", "-w", "gpu-h100-[03-04]") == ["4127"]
    listed = json.loads(odcctl("queue", "--json", "-w", "gpu-h100-03").out)
    assert [job["id"] for job in listed["jobs"]] == [4127]
    assert odcctl("queue", "-w", "gpu-[").code == 2
    unknown = odcctl("queue", "-w", "gpu-h100-[03,99]")
    assert (unknown.code, unknown.out) == (1, "")
    assert "node gpu-h100-99 does not exist" in unknown.err
    assert odcctl("queue", "--start", "-w", "gpu-1").code == 2


def test_long_has_more_columns(mixed: Peer, odcctl: Odcctl) -> None:
    head = odcctl("queue", "-l").out.splitlines()[0].split()
    assert head[-7:] == ["ACCOUNT", "CPUS", "MEMORY", "SUBMITTED", "NODES", "/", "WHY"]
    assert odcctl("queue", "-l", "--start").code == 2


def test_columns_are_left_out_until_the_table_fits(
    mixed: Peer, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("queue", cols=80)
    text = screen.until(b"\n4133").decode()
    assert screen.end() == 0
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    head = lines[0].split()
    assert {"JOB", "NAME", "STATE", "TIME", "NODES"} <= set(head)
    assert "QOS" not in head
    assert "PARTITION" not in head


def test_the_least_important_columns_are_left_out_first() -> None:
    header, rows = ("A", "NAME", "B", "LAST"), [("1", "a" * 30, "22", "x" * 40)]
    narrow = Narrow({"NAME": 8}, ("B", "A"))
    assert fit(header, rows, None, narrow) == (header, rows)
    wide, _ = fit(header, rows, 41, narrow)
    assert list(wide) == ["A", "NAME", "B", "LAST"]
    small, cells = fit(header, rows, 38, narrow)
    assert list(small) == ["A", "NAME", "LAST"]
    assert cells[0][1] == "aaaaaaa…"
    assert list(fit(header, rows, 5, narrow)[0]) == ["NAME", "LAST"]


def test_the_history_shows_how_a_job_ended_in_80_columns() -> None:
    row = ("2", "hf-finetune", "alice", "main", "4", "FAILED", "127:0", "0:01", "14:20", "gpu1",
           "cannot open the output file logs/a-2.out: No such file or directory")  # fmt: skip
    header, [cells] = fit(history.HEADER, [row], 80, history.NARROW)
    assert {"JOB", "NAME", "STATE", "EXIT", "WHY"} <= set(header)
    assert sum(map(len, cells[:-1])) + 2 * len(cells) + MIN_LAST <= 80
