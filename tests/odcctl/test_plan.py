"""odcctl plan and replay: what they ask, and what they show."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from odcd.api.answers.plan import Plan, PlanDiff, Replayed
from odcd.api.answers.submit import WhatIf
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import Object
from tests.odcctl.peer import Peer, problem


def planned(job_id: int, **fields: Any) -> Object:
    return {
        "id": job_id, "array_job_id": None, "array_task_id": None, "array_tasks": None,
        "name": "train", "user": "ann", "account": "default", "partition": "main",
        "node_count": 4, "node_count_max": None, "gpus_per_node": 8, "gpu_type": "h100",
        "components": None, "time_limit_s": 14400, "planned_start_at": "2026-07-01T14:20:00Z",
        "node_names": [f"gpu-{n:02}" for n in range(1, 5)], "detail": "needs 4 nodes",
        "moved_by_pass": 38,
        "eta": {"p10": "2026-07-01T13:20:00Z", "p50": "2026-07-01T14:00:00Z",
                "p90": "2026-07-01T14:20:00Z", "exact": True}, **fields,
    }  # fmt: skip


PLAN: Object = {
    "at": "2026-07-01T12:00:00Z",
    "pass_id": 38,
    "jobs": [
        planned(4130),
        planned(
            4140, array_job_id=4140, array_tasks="3-9", node_count=1, gpus_per_node=1, eta=None,
            planned_start_at="2026-07-02T09:00:00Z", node_names=["gpu-07"],
        ),
        planned(4150, planned_start_at=None, node_names=[], eta=None, time_limit_s=None),
    ],
}  # fmt: skip


def move(text: str, **fields: Any) -> Object:
    return {
        "pass_id": 36, "at": "2026-07-01T11:00:00Z", "from": None, "to": "2026-07-01T14:20:00Z",
        "cause": "ended", "event_id": 7, "job_id": 12, "text": text, **fields,
    }  # fmt: skip


DIFF: Object = {
    "from": {"pass_id": 30, "at": "2026-07-01T10:00:00Z"},
    "to": {"pass_id": 38, "at": "2026-07-01T12:00:00Z"},
    "jobs": [
        {"id": 4130, "name": "train", "user": "ann", "change": "later",
         "from": "2026-07-01T13:00:00Z", "to": "2026-07-01T14:20:00Z",
         "moves": [move("job 12 ended (COMPLETED)"),
                   move("node gpu-02 went down", pass_id=37)]},
        {"id": 4131, "name": "eval", "user": "bob", "change": "gone",
         "from": "2026-07-01T15:00:00Z", "to": None,
         "moves": [move("it ended (CANCELLED) by bob", pass_id=None, to=None)]},
        {"id": 4132, "name": "eval", "user": "bob", "change": "new", "from": None, "to": None,
         "moves": [move("it was submitted by bob", to=None)]},
    ],
}  # fmt: skip


def foretold(start: str | None, nodes: int = 1, limit_s: int = 3600, **fields: Any) -> Object:
    return {
        "text": "", "node_count": nodes, "gpus_per_node": 8, "gpu_type": "h100",
        "cpus_per_node": 8, "mem_per_node_mib": 1024, "time_limit_s": limit_s, "start_at": start,
        "node_names": ["gpu-01"] if start else [], "limit": None, "delays": [], "victims": [],
        "refused": None, **fields,
    }  # fmt: skip


def replayed(**fields: Any) -> Object:
    same = {"equal": True, "then": "ab" * 32, "now": "ab" * 32}
    answer = {
        "pass_id": 38, "at": "2026-07-01T12:00:00Z", "term": 3,
        "policy": {"then": "16a3711a8f25af79", "now": "16a3711a8f25af79"},
        "input": {**same, "differs": None}, "output": same, "chain": True, "looked": 20,
        "starts": 3, "planned": 2, "equal": True,
        "differences": [], **fields,
    }  # fmt: skip
    msgspec.convert(answer, Replayed)
    return answer


def test_planned_starts_and_their_moves_are_tables(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    msgspec.convert(PLAN, Plan)
    msgspec.convert(DIFF, PlanDiff)
    peer.on("GET", "/v1/plan", PLAN)
    peer.on("GET", "/v1/plan/diff", DIFF)
    shown = odcctl("plan")
    moved = odcctl("plan", "--diff", "30", "38")
    assert peer.requests[-1].query == {"from": "30", "to": "38"}
    assert moved.err == ("from pass 30 (2026-07-01 10:00:00Z) to pass 38 (2026-07-01 12:00:00Z)\n")
    golden("plan", "\n".join([shown.out, moved.out]))
    assert json.loads(odcctl("plan", "--json").out) == PLAN
    assert json.loads(odcctl("plan", "--diff", "2h", "--json").out) == DIFF
    assert set(peer.requests[-1].query) == {"from"}
    assert odcctl("plan", "--output", "quiet").out == "4130\n4140\n4150\n"
    odcctl("plan", "--as-of", "2026-07-01T12:00")
    assert peer.requests[-1].query == {"as_of": "2026-07-01T12:00:00+00:00"}


def test_what_if_asks_for_all_that_the_values_combine_to(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    answer = {
        "at": "2026-07-01T11:00:00Z",
        "jobs": [
            foretold("2026-07-01T11:00:00Z"),
            foretold(
                "2999-07-01T11:00:00Z", limit_s=14400,
                delays=[{"job_id": 4130, "from": "2026-07-01T14:20:00Z",
                         "to": "2026-07-01T15:00:00Z"},
                        {"job_id": 4131, "from": "2026-07-01T14:20:00Z", "to": None}],
            ),
            foretold(
                None, nodes=2, reason="PartitionDown",
                text="the job would be accepted, and wait while its partition is down",
            ),
            foretold(None, nodes=2, limit="QOSMaxGRESPerUser"),
        ]
    }  # fmt: skip
    msgspec.convert(answer, WhatIf)
    peer.on("POST", "/v1/plan/what-if", answer)
    run = odcctl(
        "plan", "--what-if", "-N", "1,2", "--gres", "gpu:h100:8", "-t", "1h,4h", "-p", "a,b"
    )
    rest = ["--gres=gpu:h100:8"]
    assert peer.requests[-1].body == {
        "argv": [
            [f"--nodes={nodes}", *rest, f"--time={limit}", "--partition=a,b"]
            for nodes in (1, 2)
            for limit in ("1:00:00", "4:00:00")
        ]
    }
    golden("plan-what-if", run.out)
    assert run.err == (
        "nodes=2 gres=gpu:h100:8 time=1:00:00 partition=a,b: "
        "the job would be accepted, and wait while its partition is down\n"
    )
    no = {"code": "OD008", "message": "no node has 9 GPUs", "hint": "Request less."}
    some: dict[str, Any] = {
        "at": "2026-07-01T11:00:00Z",
        "jobs": [foretold("2999-07-01T11:00:00Z"), foretold(None, refused=no)],
    }
    peer.on("POST", "/v1/plan/what-if", some)
    run = odcctl("plan", "--what-if", "--gres", "gpu:8,gpu:9")
    assert (run.code, run.out.count("\n")) == (0, 2)
    assert run.err == "refused: gres=gpu:9: no node has 9 GPUs\n  Request less.\n"
    some["jobs"] = [foretold(None, refused=no)] * 2
    peer.on("POST", "/v1/plan/what-if", some)
    assert odcctl("plan", "--what-if", "--gres", "gpu:9,gpu:10").code == 1


def test_alternatives_that_differ_in_any_option_can_be_told_apart(
    peer: Peer, odcctl: Odcctl
) -> None:
    def rows(*arguments: str) -> list[list[str]]:
        jobs = [foretold("2026-07-01T11:00:00Z", gpus_per_node=0)] * 2
        peer.on("POST", "/v1/plan/what-if", {"at": "2026-07-01T11:00:00Z", "jobs": jobs})
        run = odcctl("plan", "--what-if", *arguments)
        return [line.split()[:2] for line in run.out.splitlines()]

    assert rows("-c", "8,64", "--mem", "64G") == [["CPUS", "GPUS"], ["8", "-"], ["64", "-"]]
    assert rows("--mem", "1G,64G", "-L", "a,b") == [["MEM", "GPUS"], ["1G", "-"], ["64G", "-"]]
    assert rows("-N", "1-2,2-4", "-G", "8") == [["COUNT", "GPUS"], ["1-2", "-"], ["2-4", "-"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "x"), ("plan", "-N", "2"), ("plan", "--diff"), ("plan", "--diff", "soon"),
        ("plan", "--diff", "1", "--what-if"), ("plan", "--what-if", "-N", ","),
        ("replay",), ("replay", "last"),
    ],
    ids=["word", "no-what-if", "no-ends", "no-time", "both", "empty", "no-pass", "no-number"],
)  # fmt: skip
def test_wrong_usage_is_told_without_asking(
    peer: Peer, odcctl: Odcctl, arguments: tuple[str, ...]
) -> None:
    run = odcctl(*arguments)
    assert (run.code, peer.requests) == (2, [])


def test_a_replay_proves_or_tells_what_differs(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    other = {"equal": False, "then": "ab" * 32, "now": "cd" * 32}
    differences = [
        {"kind": kind, "name": name, "job_id": first, "jobs": jobs, "then": then, "now": now}
        for kind, name, first, jobs, then, now in [
            ("start", "4131", None, None, None, "1:gpu-01/255"),
            ("planned", "4130", None, None, "2026-07-01T14:20:00Z on gpu-01", None),
            ("refusal", "3", 4132, 3, "Priority behind job 4130", "Resources"),
            ("limit", "3 60 0 1 1", 4140, 1, None, "QOSMaxJobsPerUser"),
        ]
    ]
    rules = {"then": "16a3711a8f25af79", "now": "3022827f7a55d8e8"}
    path = "/v1/passes/38/replay"
    peer.on("GET", path, replayed())
    shown = [odcctl("replay", "38")]
    differing: dict[str, Any] = {
        "input": {**other, "differs": ["nodes", "releases"]}, "output": other,
        "differences": differences, "equal": False,
    }  # fmt: skip
    peer.on("GET", path, replayed(policy=rules, **differing))
    shown.append(odcctl("replay", "38", "--policy", "sjf", "--plan-depth", "4"))
    assert peer.requests[-1].query == {"policy": "sjf", "plan_depth": "4"}
    assert odcctl("replay", "38", "--output", "quiet").out == "4131\n4130\n"
    shown.append(odcctl("replay", "38"))
    peer.on("GET", path, replayed(**differing))
    shown.append(odcctl("replay", "38"))
    peer.on("GET", path, replayed(chain=False))
    shown.append(odcctl("replay", "38"))
    assert [run.code for run in shown] == [0, 0, 1, 1, 1]
    odcctl("replay", "38", "--plan-depth", "all")
    assert peer.requests[-1].query == {"plan_depth": "1000000"}
    odcctl("replay", "38", "--plan-depth", "0")
    assert peer.requests[-1].query == {"plan_depth": "0"}
    golden("replay", "\n".join(run.out for run in shown))
    peer.on("GET", path, problem(404, "UnknownPass", "OD030", "pass 38 is no longer kept"))
    assert odcctl("replay", "38").code == 1
