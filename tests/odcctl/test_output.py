"""The output of commands, compared with golden files: 100 columns, no colour, UTC."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import (
    a_cluster,
    a_component,
    a_job,
    a_mixed_queue,
    a_node,
    a_node_group,
    a_preemption,
    an_event,
    gang,
    mixed,
    some_fragmentation,
    some_history,
)
from tests.odcctl.peer import Peer, Reply, Request, event_stream


def test_queue_shows_where_jobs_run_and_why_they_wait(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": a_mixed_queue(), "next": None})
    done = odcctl("queue")
    assert (done.code, done.err) == (0, "")
    golden("queue", done.out)


def test_queue_start_orders_by_planned_start(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    pending = [job for job in a_mixed_queue() if job["state"] == "PENDING"]
    peer.on("GET", "/v1/jobs", {"jobs": pending[::-1], "next": None})
    golden("queue-start", odcctl("queue", "--start").out)
    assert peer.requests[0].query["state"] == "PENDING"


def test_a_heterogeneous_job_is_shown_with_its_components(peer: Peer, odcctl: Odcctl) -> None:
    server, train = a_component(1, 0, name="server", cpus_per_node=8), a_component(2, 8)
    job = mixed(7, server, train, state="RUNNING")

    def chosen(request: Request) -> Reply:
        names = request.query["fields"].split(",")
        return Reply({"jobs": [{name: job[name] for name in names}], "next": None})

    peer.on("GET", "/v1/jobs", chosen)
    for command in (("queue",), ("queue", "--long"), ("history",)):
        assert "0+2x8" in odcctl(*command).out
    planned = {**mixed(8, server, train), "detail": "", "moved_by_pass": 1}
    peer.on("GET", "/v1/plan", {"at": "2026-07-01T12:00:00Z", "pass_id": 1, "jobs": [planned]})
    assert "0+2x8" in odcctl("plan").out
    peer.on("GET", "/v1/jobs/7", {"jobs": [job]})
    assert (
        """\
  asks for:   0: server: 8 CPUs, 4 GiB
              1: train: 2 nodes, on each: 8 h100 GPUs, 2 CPUs, 4 GiB
"""
        in odcctl("show", "7").out
    )


def test_a_range_of_nodes_is_told_until_it_has_some(peer: Peer, odcctl: Odcctl) -> None:
    waits = gang(7, 2, 8, node_count_max=4, switches=1, switches_wait_s=300)
    runs = gang(8, 3, 8, state="RUNNING", node_count_max=4, switches=1, node_names=["n1"])
    peer.on("GET", "/v1/jobs", {"jobs": [runs, waits], "next": None})
    gpus = [line.split()[5] for line in odcctl("queue", "--no-header").out.splitlines()]
    assert gpus == ["3x8", "2-4x8"]
    peer.on("GET", "/v1/jobs/7", {"jobs": [waits]})
    peer.on("GET", "/v1/jobs/8", {"jobs": [runs]})
    output = odcctl("show", "7").out
    assert "2 to 4 nodes, on each: 8 h100 GPUs" in output
    assert "at most 1 topology block; waits for up to 5:00" in output
    output = odcctl("show", "8").out
    assert "3 nodes, on each: 8 h100 GPUs" in output
    assert "topology" not in output


def test_all_pages_of_a_long_array_are_shown(peer: Peer, odcctl: Odcctl) -> None:
    def page(request: Request) -> Reply:
        at = int(request.query.get("cursor", "7"))
        return Reply({"jobs": [gang(at, 2, 8)], "next": str(at + 1) if at < 9 else None})

    peer.on("GET", "/v1/jobs/7", page)
    assert odcctl("show", "7", "--output", "quiet").out == "7\n8\n9\n"
    answer = json.loads(odcctl("show", "7", "--json").out)
    assert ([job["id"] for job in answer["jobs"]], answer["next"]) == ([7, 8, 9], None)


def test_times_are_told_in_the_local_zone(peer: Peer, odcctl: Odcctl) -> None:
    job = gang(1, 2, 8, planned_start_at="2026-07-01T14:20:00Z")
    peer.on("GET", "/v1/jobs", {"jobs": [job], "next": None})
    assert "  16:20  " in odcctl("queue", TZ="Europe/Zurich").out


def test_show_tells_all_there_is_of_a_job(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    running = gang(
        4127, 2, 8, state="RUNNING", node_names=["gpu-03", "gpu-04"], attempt=3, restarts=2,
        dependency="afterok:12:13", comment="second\x1b[31m try", nice=100, stdout="logs/%j.out",
    )  # fmt: skip
    task = a_job(
        4121, "FAILED", array_job_id=4120, array_task_id=0, exit_code=3, array_throttle=2,
        reason="NonZeroExitCode", node_names=["cpu-2"], time_limit_s=None, mem_per_node_mib=0,
        end_detail="the container left early",
    )  # fmt: skip
    peer.on("GET", "/v1/jobs/4120", {"jobs": [running, a_mixed_queue()[3], task]})
    golden("show", odcctl("show", "4120").out)


def test_show_tells_by_whom_a_job_was_preempted(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    waits = gang(7, 1, 8, attempt=2, restarts=1, preemption=a_preemption())
    text = a_preemption()["text"]
    ended = gang(8, 1, 8, state="PREEMPTED", reason="Preempted", end_detail=text,
                 preemption=a_preemption(mode="cancel"))  # fmt: skip
    runs = gang(9, 1, 8, state="RUNNING", checkpoint_at="2026-07-01T11:20:00Z")
    peer.on("GET", "/v1/jobs/7", {"jobs": [waits, ended, runs]})
    golden("show-preempted", odcctl("show", "7").out)


def test_why_lists_every_cause_and_when_it_ends(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    job = a_mixed_queue()[3]
    answer = {
        "job_id": 4130, "state": "PENDING", "reason": "Resources", "why": job["why"],
        "planned_start_at": job["planned_start_at"],
        "eta": {"p10": "2026-07-01T13:50:00Z", "p50": "2026-07-01T14:10:00Z",
                "p90": "2026-07-01T14:20:00Z", "exact": False},
    }  # fmt: skip
    peer.on("GET", "/v1/jobs/4130/why", answer)
    golden("why", odcctl("why", "4130").out)


def test_history_shows_how_jobs_ended_newest_last(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": some_history(), "next": None})
    golden("history", odcctl("history").out)
    assert peer.requests[0].query["limit"] == "50"


def test_nodes_shows_what_is_used(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    nodes = [
        a_node("gpu-01", "MIXED", gpus_used=3, cpus_used=24, mem_used_mib=65536, jobs=[4127, 4128]),
        a_node("gpu-02", "DRAINING", gpus_used=8, jobs=[4127], reason="new driver"),
        a_node(
            "ws1",
            gpu_type="cpu-x86",
            gpus=0,
            cpus=2,
            mem_mib=7900,
            mem_used_mib=512,
            booking={
                "id": 4,
                "name": "course",
                "kind": "use",
                "starts_at": "2026-07-01T09:00:00Z",
                "ends_at": "2026-07-01T13:00:00Z",
            },
        ),
        a_node(
            "ws2",
            jobs=[4131],
            next_booking={
                "id": 3,
                "name": "driver",
                "kind": "maintenance",
                "starts_at": "2026-07-02T18:00:00Z",
                "ends_at": "2026-07-02T20:00:00Z",
            },
        ),
    ]
    peer.on("GET", "/v1/nodes", {"nodes": nodes})
    golden("nodes", odcctl("nodes").out)
    assert odcctl("nodes", "gpu-[01-02]", "--state", "mixed", "--output", "quiet").out == "gpu-01\n"
    unknown = odcctl("nodes", "gpu-09")
    assert (unknown.code, unknown.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-p", "x"), 1, 'partition "x" does not exist'),
        (("--type", "x"), 1, 'type "x" does not exist'),
        (("-t", "SLEEPY"), 2, '"SLEEPY" is not a state'),
    ],
    ids=["partition", "type", "state"],
)
def test_nodes_refuses_what_does_not_exist(
    peer: Peer, odcctl: Odcctl, arguments: tuple[str, ...], code: int, message: str
) -> None:
    peer.on("GET", "/v1/nodes", {"nodes": []})
    peer.on("GET", "/v1/partitions", {"partitions": [{"name": "main"}]})
    run = odcctl("nodes", *arguments)
    assert (run.code, run.out) == (code, "")
    assert message in run.err
    assert odcctl("nodes", "-p", "main", "--no-header").code == 0


def test_nodes_shows_where_they_lie(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    nodes = [
        a_node("gpu-01", "MIXED", gpus_used=3, zone="us-east-2a", efa_domain="pg-1",
               topology=["nn-1", "nn-4", "nn-9"]),
        a_node("ws1", gpu_type="cpu-x86", gpus=0),
    ]  # fmt: skip
    peer.on("GET", "/v1/nodes", {"nodes": nodes})
    golden("nodes-topology", odcctl("nodes", "--topology").out)


def test_nodes_shows_how_free_gpus_lie(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    types = {"types": [some_fragmentation("h100"), some_fragmentation("l4", free=0)]}
    peer.on("GET", "/v1/cluster/fragmentation", types)
    golden("nodes-fragmentation", odcctl("nodes", "--fragmentation").out)
    assert json.loads(odcctl("nodes", "--fragmentation", "--json").out) == types
    assert odcctl("nodes", "--fragmentation", "--type", "l4", "--output", "quiet").out == "l4\n"
    assert odcctl("nodes", "--fragmentation", "gpu-01").code == 2
    assert odcctl("nodes", "--fragmentation", "--topology").code == 2


def test_elastic_groups(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    growing = a_node_group("odc-h100", "h100", jobs=[4130, 4131])
    groups = {"groups": [growing, a_node_group("odc-t4", "t4", failure="no capacity")]}
    peer.on("GET", "/v1/node-groups", groups)
    golden("nodes-groups", odcctl("nodes", "--groups").out)
    assert json.loads(odcctl("nodes", "--groups", "--json").out) == groups
    assert odcctl("nodes", "--groups", "--type", "t4", "--output", "quiet").out == "odc-t4\n"
    for wrong in (["gpu-01"], ["--topology"], ["--fragmentation"]):
        assert odcctl("nodes", "--groups", *wrong).code == 2


def test_diag_shows_whatever_the_daemon_tells(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    peer.on("GET", "/v1/cluster", a_cluster())
    golden("diag", odcctl("diag").out)


def test_events_tell_who_did_what(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    events = [
        an_event(1, "submitted", actor="alice"),
        an_event(2, "started", detail={"nodes": ["gpu-01"], "attempt": 1}),
        an_event(
            3, "node_drain", actor="root", job_id=None, node="gpu-01", detail={"reason": "x y"}
        ),
    ]
    peer.on("GET", "/v1/events", lambda _: Reply(pieces=event_stream(events)))
    golden("events", odcctl("events").out)
    assert peer.requests[0].query == {"after": "0", "follow": "false"}
    lines = odcctl("events", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == events


def test_json_is_the_apis_own_object(peer: Peer, odcctl: Odcctl) -> None:
    jobs = {"jobs": a_mixed_queue(), "next": None}
    nodes = {"nodes": [a_node("gpu-01")]}
    peer.on("GET", "/v1/jobs", jobs)
    peer.on("GET", "/v1/jobs/4126", {"jobs": jobs["jobs"][:2]})
    peer.on("GET", "/v1/nodes", nodes)
    peer.on("GET", "/v1/cluster", a_cluster())
    for argv, value in (
        (["queue"], jobs), (["history"], jobs), (["show", "4126"], {"jobs": jobs["jobs"][:2]}),
        (["nodes"], nodes), (["diag"], a_cluster()),
    ):  # fmt: skip
        for form in (["--json"], ["--output", "json"]):
            assert json.loads(odcctl(*argv, *form).out) == value
        assert json.loads(odcctl("--json", *argv).out) == value


def test_quiet_is_an_id_a_line(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": a_mixed_queue()[:3], "next": None})
    assert odcctl("queue", "--output=quiet").out == "4127\n4126_1\n4126_[3-9%2]\n"


def test_a_long_queue_is_fetched_page_by_page(peer: Peer, odcctl: Odcctl) -> None:
    pages = [
        {"jobs": [a_job(1)], "next": "-1"}, {"jobs": [a_job(2)], "next": "-2"},
        {"jobs": [a_job(3)], "next": None},
    ]  # fmt: skip
    peer.on("GET", "/v1/jobs", *pages)
    assert odcctl("queue", "--output", "quiet").out == "1\n2\n3\n"
    assert [request.query.get("cursor") for request in peer.requests] == [None, "-1", "-2"]
    peer.on("GET", "/v1/jobs", *pages)
    jobs = [job for page in pages for job in page["jobs"]]
    assert json.loads(odcctl("queue", "--json").out) == {"jobs": jobs, "next": None}


def test_filters_reach_the_daemon_as_they_are_meant(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [], "next": None})
    odcctl("queue", "-u", "alice,bob", "-u", "carol", "-t", "pd,R", "-p", "a", "-A", "b", "-q", "c",
           "-n", "a b&c=ü", "-j", "7,8_[1-4,9]")  # fmt: skip
    query = peer.requests[-1].query
    assert query.pop("fields")
    assert query == {
        "user": "alice,bob,carol", "state": "PENDING,RUNNING", "partition": "a", "account": "b",
        "qos": "c", "name": "a b&c=ü", "job": "7,8_[1-4,9]", "limit": "10000",
    }  # fmt: skip
    odcctl("queue", "-t", "all")
    assert peer.requests[-1].query["ended"] == "true"
    odcctl("history", "--since", "2026-07-01T12:00", "-t", "F")
    query = peer.requests[-1].query
    assert (query["ended_since"], query["state"]) == ("2026-07-01T12:00:00+00:00", "FAILED")
    odcctl("history", "-E", "2026-07-02T12:00", "-X")
    query = peer.requests[-1].query
    assert query["ended_before"] == "2026-07-02T12:00:00+00:00"
    assert query["limit"] == "10000"


def test_an_empty_table_is_its_header(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/jobs", {"jobs": [], "next": None})
    assert odcctl("queue").out.split()[0] == "JOB"
    assert odcctl("queue", "--no-header").out == ""


@pytest.mark.parametrize(
    ("argv", "path", "answer"),
    [
        (["queue"], "/v1/jobs", {"jobs": [], "next": None}),
        (["nodes"], "/v1/nodes", {"nodes": []}),
        (["show", "7"], "/v1/jobs/7", {"jobs": [a_job(7)]}),
        (["why", "7"], "/v1/jobs/7/why", {"job_id": 7, "state": "PENDING"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_as_of_is_a_local_time_and_asked_for_in_utc_or_with_its_zone(
    peer: Peer, odcctl: Odcctl, argv: list[str], path: str, answer: dict[str, Any]
) -> None:
    peer.on("GET", path, answer)
    done = odcctl(*argv, "--as-of", "2026-07-01T12:00", TZ="Europe/Zurich")
    assert (done.code, done.err) == (0, "")
    assert peer.requests[0].query["as_of"] == "2026-07-01T12:00:00+02:00"


def test_show_as_of_counts_the_time_until_then(peer: Peer, odcctl: Odcctl) -> None:
    job = gang(1, 2, 8, state="RUNNING", started_at="2026-07-01T11:00:00Z")
    peer.on("GET", "/v1/jobs/1", {"jobs": [job]})
    assert "0:30:00" in odcctl("show", "1", "--as-of", "2026-07-01T11:30").out.replace(
        " 30:00", " 0:30:00"
    )
