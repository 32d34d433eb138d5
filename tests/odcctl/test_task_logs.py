"""logs of an array: the output of every task, labelled."""

from __future__ import annotations

from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import SWEEP, a_job
from tests.odcctl.peer import Peer, Reply


def test_logs_of_an_array_label_each_line_with_its_task(peer: Peer, odcctl: Odcctl) -> None:
    tasks = [
        a_job(7, array_job_id=7, array_tasks="3-9", array_progress=SWEEP),
        a_job(12, "RUNNING", array_job_id=7, array_task_id=10, array_progress=SWEEP),
        a_job(8, "COMPLETED", array_job_id=7, array_task_id=1, array_progress=SWEEP),
        a_job(9, "FAILED", array_job_id=7, array_task_id=2, array_progress=SWEEP,
              end_detail="cannot open the output file"),
    ]  # fmt: skip
    peer.on("GET", "/v1/jobs", {"jobs": tasks, "next": None})
    peer.on("GET", "/v1/jobs/7_10/logs", Reply(pieces=[b"ten"]))
    peer.on("GET", "/v1/jobs/7_1/logs", Reply(pieces=[b"one\ntw", b"o\n"]))
    peer.on("GET", "/v1/jobs/7_2/logs", Reply(pieces=[]))
    done = odcctl("logs", "7")
    assert done.out == "7_1: one\n7_1: two\n7_10: ten\n"
    assert done.err == (
        "odcctl: job 7_2 is FAILED and wrote nothing: cannot open the output file\n"
        "odcctl: 7 tasks of the array have not started\n"
    )


def test_logs_of_a_job_that_is_no_array_are_not_labelled(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [a_job(7, "COMPLETED")], "next": None})
    peer.on("GET", "/v1/jobs/7/logs", Reply(pieces=[b"one\n"]))
    assert odcctl("logs", "7").out == "one\n"


def test_logs_of_one_task_ask_for_no_list(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs/7_3/logs", Reply(pieces=[b"three\n"]))
    assert odcctl("logs", "7_3").out == "three\n"


def test_following_an_array_shows_every_task_and_continues_after_an_outage(
    peer: Peer, odcctl: Odcctl
) -> None:
    row = a_job(7, array_job_id=7, array_tasks="3-9", array_progress=SWEEP)
    tasks = [
        a_job(8, "COMPLETED", array_job_id=7, array_task_id=1),
        a_job(9, "FAILED", array_job_id=7, array_task_id=2, end_detail="no such folder"),
        a_job(7, "COMPLETED", array_job_id=7, array_task_id=10),
    ]
    peer.on("GET", "/v1/jobs/7", {"jobs": [row], "next": None})
    peer.on("GET", "/v1/jobs", {"jobs": tasks, "next": None})
    peer.on(
        "GET", "/v1/jobs/7/logs",
        Reply(pieces=[b"7_1: a\n7_10: b\n7_1: c\n7_"], cut=True),
        Reply(pieces=[b"7_10: b\n7_10: d\n", b"7_1: a\n7_1: c\n7_1: e\n"]),
    )  # fmt: skip
    done = odcctl("logs", "-f", "7")
    assert (done.code, done.out) == (0, "7_1: a\n7_10: b\n7_1: c\n7_10: d\n7_1: e\n")
    assert done.err == (
        "odcctl: the daemon does not answer; waiting for it\n"
        "odcctl: job 7_2 is FAILED and wrote nothing: no such folder\n"
    )
    assert peer.requests_to("/v1/jobs/7/logs")[-1].query["follow"] == "true"
