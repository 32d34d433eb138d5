"""scontrol show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from odcd.api.slurm.fetch import (
    MIN_JOB_AGE_S,
    fetch_jobs,
    recent,
    selectors,
    with_components,
    with_components_named,
)
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.sinfo import inventory
from odcd.api.slurm.step_rows import show_step
from odcd.api.slurm.version import SLURM_VERSION
from odcd.records.job import MAX_ARRAY_TASKS
from odcd.slurm.columns.values import FIELDS
from odcd.slurm.commands import show
from odcd.slurm.hostlists import compress_hosts, expand_hosts
from odcd.slurm.usage import Usage

ALL = FIELDS | {"asked"}
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified\n"


async def show_job(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    filters: dict[str, object] = {}
    words = await with_components_named(remote, words)
    if words:
        filters["ids"] = await selectors(remote, "scontrol", list(words))
        rows = await fetch_jobs(remote, filters, ALL, ended=True)
    else:
        rows = await fetch_jobs(remote, filters, ALL, ended=False)
        ended: dict[str, object] = {"ended_since": recent(remote).isoformat()}
        rows += await fetch_jobs(remote, ended, ALL, ended=True)
    since = recent(remote)
    rows = [row for row in rows if row.ended_at is None or row.ended_at >= since]
    rows = await with_components(remote, sorted(rows, key=lambda row: row.id), words)
    if not rows:
        if words:
            raise Usage(UNKNOWN_JOB)
        return Finished(out="No jobs in the system\n")
    return await _records(remote, map(show.job, rows), one_line)


async def show_node(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    nodes, _ = await inventory(remote)
    names = expand_hosts(words[0]) if words else list(nodes)
    for name in names:
        if name not in nodes:
            raise Usage(out=f"Node {name} not found\n")
    return await _records(remote, (show.node(nodes[name]) for name in names), one_line)


async def show_partition(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    nodes, partitions = await inventory(remote)
    if words:
        partitions = [one for one in partitions if one["name"] in words[0].split(",")]
        if not partitions:
            raise Usage(out=f"Partition {words[0]} not found\n")
    return await _records(
        remote,
        (
            show.partition(one, [nodes[name] for name in one["node_names"] if name in nodes])
            for one in partitions
        ),
        one_line,
    )


async def show_booking(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    api = remote.api
    zone = remote.now().tzinfo
    text = await api.store.bookings.list(remote.who, api.clock.now(), ended=False)
    found: list[dict[str, Any]] = json.loads(text)
    if words:
        found = [one for one in found if one["name"] == words[0]]
        if not found:
            raise Usage(f"Reservation {words[0]} not found\n")
    if not found:
        return Finished(out="No reservations in the system\n")

    def local(moment: str) -> str:
        return datetime.fromisoformat(moment).astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")

    return await _records(
        remote,
        (show.booking(one, local(one["starts_at"]), local(one["ends_at"])) for one in found),
        one_line,
    )


async def show_licences(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    found: list[dict[str, Any]] = json.loads(await remote.api.store.licences.list())
    if words:
        found = [one for one in found if one["name"] == words[0]]
    if not found:
        return Finished(out="No licenses configured in Slurm.\n")
    return Finished(
        out="".join(
            show.record(show.licence(one), one_line=one_line, indent="    ") for one in found
        )
    )


async def show_config(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    now = remote.now()
    settings = {
        "ClusterName": "odc",
        "GresTypes": "gpu",
        "JobRequeue": 1,
        "KillOnBadExit": 0,
        "KillWait": "30 sec",
        "MaxArraySize": MAX_ARRAY_TASKS + 1,
        "MaxJobCount": 1_000_000,
        "MinJobAge": f"{MIN_JOB_AGE_S} sec",
        "MpiDefault": "none",
        "OverTimeLimit": "0 min",
        "PreemptMode": "REQUEUE",
        "SchedulerType": "sched/backfill",
        "SelectType": "select/cons_tres",
        "SLURM_VERSION": SLURM_VERSION,
        "TmpFS": "/tmp",
        "WaitTime": "0 sec",
    }
    lines = [f"Configuration data as of {now:%Y-%m-%dT%H:%M:%S}"]
    lines += [f"{name:<23} = {value}" for name, value in settings.items()]
    return Finished(out="\n".join(lines) + "\n")


async def show_hostnames(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    text = words[0] if words else remote.request.environment.get("SLURM_JOB_NODELIST")
    if not text:
        raise Usage("Environment variable SLURM_JOB_NODELIST not set\n")
    return Finished(out="".join(f"{host}\n" for host in expand_hosts(text)))


async def show_hostlist(remote: Remote, words: Sequence[str], one_line: bool) -> Finished:
    if not words:
        raise Usage("Hostlist specification is empty\n")
    return Finished(out=f"{compress_hosts(expand_hosts(words[0]))}\n")


Show = Callable[[Remote, Sequence[str], bool], Any]
SHOW: dict[str, Show] = {
    "job": show_job, "jobs": show_job, "node": show_node, "nodes": show_node,
    "partition": show_partition, "partitions": show_partition, "config": show_config,
    "reservation": show_booking, "reservations": show_booking, "licenses": show_licences,
    "license": show_licences, "step": show_step, "steps": show_step,
    "hostnames": show_hostnames, "hostname": show_hostnames,
    "hostlist": show_hostlist, "hostlistsorted": show_hostlist,
}  # fmt: skip


async def _records(remote: Remote, records: Iterable[show.Lines], one_line: bool) -> Finished:
    texts = (show.record(one, one_line=one_line).removesuffix("\n") for one in records)
    end = "" if one_line else "\n"
    return Finished(out=await remote.lines(text + end for text in texts))
