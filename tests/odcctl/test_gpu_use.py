"""GPU usage in show, history --efficiency and idle."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odcctl.text import gpu_use
from odcd.api.answers.jobs import ResourceUse
from odcd.api.idle import IdleList
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import a_gpu_use, a_job
from tests.odcctl.peer import Peer

NOW = {
    "at": "2026-07-01T11:59:30Z", "util_ratio": 0.002, "mem_used_mib": 61_440, "idle_gpus": 2,
    "idle_since": "2026-07-01T09:15:00Z",
}  # fmt: skip


def test_show_tells_what_the_gpus_of_a_job_did(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    uses = [
        a_gpu_use(),
        a_gpu_use(
            seen_gpu_s=30_000, busy_gpu_s=100, busy_ratio=0.0033, energy_j=7_200_000_000,
            mem_peak_mib=None,
        ),
        a_gpu_use(seen_gpu_s=0, busy_gpu_s=0, gave_up="it ran too briefly to be measured"),
        a_gpu_use(seen_gpu_s=0, busy_gpu_s=0, owed=1),
        a_gpu_use(held_gpu_s=0, seen_gpu_s=0, busy_gpu_s=0, now=NOW),
        None,
    ]  # fmt: skip
    jobs = [
        a_job(n, "RUNNING" if use and use["now"] else "COMPLETED", gpus_per_node=8, gpus=8,
              gpu_type="h100", gpu_use=use)
        for n, use in enumerate(uses, 1)
    ]  # fmt: skip
    output = ""
    for job in jobs:
        peer.on("GET", f"/v1/jobs/{job['id']}", {"jobs": [job]})
        out = odcctl("show", str(job["id"])).out.splitlines()
        output += "\n".join([out[0], *(line for line in _use_lines(out))]) + "\n"
    golden("show-gpu-use", output)


def _use_lines(lines: list[str]) -> list[str]:
    """Those of GPU use, with what follows below."""
    found: list[str] = []
    for line in lines:
        if "gpu use:" in line or (found and line.startswith("   ")):
            found.append(line)
        elif found:
            break
    return found


def test_history_has_efficiency_and_sums(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    jobs = [
        a_job(9, "COMPLETED", gpus_per_node=8, gpus=8, gpu_use=a_gpu_use(), cpus_per_node=4,
              resource_use=a_use(user_cpu_s=90.5, max_rss_kib=3 * 1024 * 1024)),
        a_job(8, "FAILED", user="bob", gpus_per_node=1, gpus=1, gpu_use=a_gpu_use(
            held_gpu_s=360_000, seen_gpu_s=180_000, busy_gpu_s=1_800, busy_ratio=0.01,
            energy_j=None,
        )),
        a_job(7, "COMPLETED", gpus_per_node=1, gpus=1, gpu_use=a_gpu_use(
            seen_gpu_s=0, busy_gpu_s=0, mem_peak_mib=None, energy_j=None, gave_up="too short",
        )),
        a_job(6, "COMPLETED"),
    ]  # fmt: skip
    peer.on("GET", "/v1/jobs", {"jobs": jobs, "next": None})
    golden("history-efficiency", odcctl("history", "--efficiency").out)
    assert peer.requests[-1].query["fields"].endswith(",gpu_use,resource_use,cpus_per_node")
    plain = odcctl("history", "--efficiency", "--no-header").out
    assert "GPU-H" not in plain
    assert odcctl("history", "--efficiency", "--output", "quiet").out == "6\n7\n8\n9\n"
    assert odcctl("history", "--efficiency", "--json").out.startswith('{"jobs":')
    assert "fields" not in peer.requests[-1].query


@pytest.mark.parametrize(
    ("gpus", "source", "message"),
    [(8, None, "not measured here\n  An operator can set ODC_PROMETHEUS_URL"),
     (8, "nvml", "measured here (nvml), but not for these jobs"),
     (0, None, "usage of these jobs was not measured")],
)  # fmt: skip
def test_history_says_why_nothing_is_known(
    peer: Peer, odcctl: Odcctl, gpus: int, source: str | None, message: str
) -> None:
    jobs = [a_job(n, "COMPLETED", gpus_per_node=gpus, gpus=gpus, gpu_use=None) for n in (2, 1)]
    peer.on("GET", "/v1/jobs", {"jobs": jobs, "next": None})
    peer.on("GET", "/v1/idle", an_idle_list(jobs=[], waiting=[], source=source))
    done = odcctl("history", "--efficiency")
    assert message in done.err
    assert len(done.out.splitlines()) == 3
    assert odcctl("history", "--efficiency", "--json").err == ""
    peer.on("GET", "/v1/jobs", {"jobs": [], "next": None})
    assert odcctl("history", "--efficiency").err == ""
    jobs[0]["gpu_use"] = a_gpu_use()
    peer.on("GET", "/v1/jobs", {"jobs": jobs, "next": None})
    assert odcctl("history", "--efficiency").err == ""


def a_use(**fields: Any) -> dict[str, Any]:
    used = {
        "user_cpu_s": 0.0, "system_cpu_s": 0.0, "max_rss_kib": 0, "read_kib": 0, "written_kib": 0,
        "script": None,
    }  # fmt: skip
    return msgspec.to_builtins(msgspec.convert({**used, **fields}, ResourceUse))


def test_show_tells_what_the_processes_of_a_job_used(peer: Peer, odcctl: Odcctl) -> None:
    used = a_use(user_cpu_s=61, system_cpu_s=1.5, max_rss_kib=20_000_000, written_kib=2048)
    job = a_job(
        9, "COMPLETED", cpus_per_node=2, node_count=2, resource_use=used,
        started_at="2026-07-01T10:00:00Z", ended_at="2026-07-01T10:01:00Z",
    )  # fmt: skip
    peer.on("GET", "/v1/jobs/9", {"jobs": [job]})
    shown = odcctl("show", "9").out
    assert (
        "1:02 of CPU time (26 % of 4 CPUs), 19.1 GiB in the largest process, 2 MiB written" in shown
    )
    at_once = {**job, "ended_at": job["started_at"]}
    peer.on("GET", "/v1/jobs/9", {"jobs": [at_once]})
    assert "1:02 of CPU time, 19.1 GiB in the largest process" in odcctl("show", "9").out


def an_idle_list(**fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "source": "prometheus", "idle_ratio": 0.05, "idle_after_s": 900,
        "jobs": [
            {
                "id": 7, "array_job_id": None, "array_task_id": None, "name": "train",
                "kind": "batch", "user": "alice", "account": "lab", "partition": "main",
                "gpu_type": "h100", "node_names": ["gpu-01", "gpu-02"], "gpus": 16,
                "idle_gpus": 15, "idle_since": "2026-07-01T02:15:00Z", "lost_gpu_s": 486_000,
                "util_ratio": 0.06, "alone_since": None, "started_at": "2026-06-30T10:00:00Z",
                "ends_at": "2026-07-02T10:00:00Z",
            },
            {
                "id": 12, "array_job_id": None, "array_task_id": None, "name": "2x-h100",
                "kind": "reservation", "user": "bob", "account": "default", "partition": "main",
                "gpu_type": "h100", "node_names": ["gpu-03"], "gpus": 2, "idle_gpus": 2,
                "idle_since": "2026-07-01T11:00:00Z", "lost_gpu_s": 7_200, "util_ratio": None,
                "alone_since": "2026-07-01T11:00:00Z", "started_at": "2026-07-01T10:00:00Z",
                "ends_at": None,
            },
        ],
        "waiting": [
            {"gpu_type": "h100", "jobs": 1, "gpus": 8, "since": "2026-07-01T09:00:00Z",
             "users": ["carol"]},
        ],
    }  # fmt: skip
    return msgspec.to_builtins(msgspec.convert(answer | fields, IdleList))


def test_idle_is_a_table_with_who_waits(peer: Peer, odcctl: Odcctl, golden: Golden) -> None:
    peer.on("GET", "/v1/idle", an_idle_list())
    done = odcctl("idle", "--gpu-type", "h100", "--batch", "-A", "lab,default")
    golden("idle", done.out + "--\n" + done.err)
    assert peer.requests[-1].query == {
        "gpu_type": "h100", "kind": "batch", "account": "lab,default",
    }  # fmt: skip
    assert odcctl("idle", "--output", "quiet").out == "7\n12\n"
    assert odcctl("idle", "--json").out.startswith('{"source": ')


def test_idle_says_why_there_is_nothing(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("GET", "/v1/idle", an_idle_list(jobs=[], waiting=[]))
    done = odcctl("idle")
    assert (done.code, done.out) == (0, "")
    assert done.err == "odcctl: no allocated GPU was below 5 % for 15 minutes\n"
    peer.on("GET", "/v1/idle", an_idle_list(jobs=[], waiting=[], source=None))
    assert "ODC_PROMETHEUS_URL" in odcctl("idle").err


@pytest.mark.parametrize("options", [["--me", "--user", "ann"], ["--batch", "--reservations"]])
def test_contradictory_options_are_wrong_usage(
    peer: Peer, odcctl: Odcctl, options: list[str]
) -> None:
    done = odcctl("idle", *options)
    assert (done.code, done.out, peer.requests) == (2, "", [])


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.994, "99 %"), (0.999, "100 %"), (1, "100 %"),
     (None, "-")],
)  # fmt: skip
def test_shares_are_whole_percents(ratio: float | None, text: str) -> None:
    assert gpu_use.percent(ratio) == text


@pytest.mark.parametrize(
    ("joules", "text"), [(3600, "1 Wh"), (3_599_000, "1000 Wh"), (9_000_000, "2.5 kWh")]
)
def test_energy_is_in_the_unit_of_bills(joules: float, text: str) -> None:
    assert gpu_use.energy(joules) == text
