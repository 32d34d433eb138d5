"""Imports of gpu-dev's disks: the request, the wait for the leader, and the result as text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import Failure
from odcctl.http.client import Client, Reply
from odcctl.text import render

PATH = "/v1/disk-imports"
HEADER = (
    "GPU-DEV USER", "DISK", "USER", "NAME", "FROM", "GIB", "SNAPSHOTS", "LAST USED", "OUTCOME",
)  # fmt: skip
WAIT_S = 180.0
LOOK_S = 1.0


def read_owners(options: Sequence[str]) -> dict[str, str]:
    """Raises ValueError: one of them is not GPUDEV=NAME, or a user has two owners."""
    owners: dict[str, str] = {}
    for option in options:
        there, equals, here = option.partition("=")
        if not (there and equals and here):
            raise ValueError(f'--user is GPUDEV=NAME, not "{option}"')
        if owners.setdefault(there, here) != here:
            raise ValueError(f"--user gives {there} two owners: {owners[there]} and {here}")
    return owners


def run_import(client: Client, body: Mapping[str, Any]) -> Reply:
    """Ask for an import, and return its result when the leader has listed the cloud."""
    number = client.post(PATH, body).json()["id"]
    give_up_s = time.monotonic() + WAIT_S
    while True:
        reply = client.get(f"{PATH}/{number}")
        found = reply.json()
        if found["state"] == "refused":
            raise Failure(
                render.clean(found["trouble"]), "docs/operating/disks.md lists the rights at AWS."
            )
        if found["state"] == "done":
            return reply
        if time.monotonic() > give_up_s:
            why = found["trouble"] or "the leader has not listed the cloud's disks yet"
            raise Failure(
                f"import {number} is not finished: {render.clean(why)}",
                "Run the command again: nothing is imported twice.",
            )
        time.sleep(LOOK_S)


def row(disk: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    last, why, note = disk["last_used_at"], disk["why"], disk["note"]
    outcome = disk["outcome"] + (f": {why}" if why else "") + (f" ({note})" if note else "")
    gib = disk["size_gib"]
    cells = (
        disk["gpu_dev_user"] or "-", disk["gpu_dev_disk"] or "-", disk["user"] or "-",
        disk["name"] or "-", disk["cloud_id"] or "-", "-" if gib is None else str(gib),
        str(disk["snapshot_count"]), render.clock(last, now_s) if last else "-", outcome,
    )  # fmt: skip
    return tuple(render.clean(cell) for cell in cells)


def notes(found: Mapping[str, Any]) -> list[str]:
    """Sentences below the table."""
    disks: list[dict[str, Any]] = found["disks"]
    if not disks:
        return ["no volume or snapshot has gpu-dev's tags"]
    count = {
        outcome: sum(disk["outcome"] == outcome for disk in disks)
        for outcome in ("import", "imported", "present", "skipped")
    }
    done = f"{count['present']} imported before, {count['skipped']} skipped"
    if found["apply"]:
        lines = [
            f"{render.counted(count['imported'], 'disk')} imported, {done}; "
            "`odcctl disk list --user all` shows when they can be used"
        ]
    else:
        lines = [
            f"{render.counted(count['import'], 'disk')} can be imported, {done}; nothing has "
            "changed: --apply imports them"
        ]
    keys = sorted({disk["kms_key"] for disk in disks if disk["kms_key"] and _is_new(disk)})
    if keys:
        lines.append(
            "odcd's role needs the rights to use the keys of these disks: " + ", ".join(keys)
        )
    return [render.clean(line) for line in lines]


def _is_new(disk: Mapping[str, Any]) -> bool:
    return disk["outcome"] in ("import", "imported")
