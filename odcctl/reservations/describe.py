"""Describe a reservation: its nodes, its end, how to connect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from odcctl.reservation_states import LIVE
from odcctl.ssh.host_files import links
from odcctl.text import render
from odcctl.text.hostlist import fold
from odcctl.text.jobs import local_times

Reservation = Mapping[str, Any]
_STEP = re.compile(r"image: step \d+/\d+")
IDLE_S = 600
"""An idle time of at least this is shown."""
STORAGES = {
    "home": "your home folder",
    "temporary": "temporary: the home folder is deleted at the end",
}


def gpus(one: Reservation) -> str:
    """2 h100 GPUs, 16 h100 GPUs on 2 nodes, a cpu-x86 node."""
    kind, count, nodes = one.get("gpu_type"), one["gpus"], one["node_count"]
    if not count:
        return f"a {kind} node" if kind else "a node without GPUs"
    text = (
        f"{count} {kind} {'GPU' if count == 1 else 'GPUs'}"
        if kind
        else (render.counted(count, "GPU"))
    )
    return text if nodes == 1 else f"{text} on {nodes} nodes"


def status(one: Reservation) -> str:
    """preparing (starting); active (2 OOM kills)"""
    more: list[str] = []
    phase = one.get("phase")
    if phase == "image_build" and (step := _STEP.search(str(one.get("message")))):
        more.append(step[0])
    elif phase and phase not in (one["status"], "active"):
        more.append(phase.replace("_", " "))
    if (one.get("idle_s") or 0) >= IDLE_S:
        more.append(f"idle {render.duration(one['idle_s'])}")
    if one.get("node_notice"):
        more.append("node drained" if "drained" in one["node_notice"] else "maintenance")
    if one.get("oom_count"):
        more.append(render.counted(one["oom_count"], "OOM kill"))
    return f"{one['status']} ({', '.join(more)})" if more else one["status"]


def expected_at(one: Reservation) -> str | None:
    """When a waiting reservation should start."""
    eta = one.get("eta")
    return (eta or {}).get("p50") or one.get("planned_start_at")


def until(at: str, now_s: float) -> str:
    """The time until this moment, to the nearest second."""
    return render.duration(round(render.moment(at).timestamp() - now_s))


def queue_place(one: Reservation, now_s: float) -> str:
    """#3, expected 14:20 (in 2:10:00)"""
    parts: list[str] = []
    if one.get("queue_position") is not None:
        parts.append(f"#{one['queue_position']}")
    at = expected_at(one)
    if at:
        parts.append(f"expected {render.clock(at, now_s)} (in {until(at, now_s)})")
    return ", ".join(parts)


def standing(one: Reservation, now_s: float) -> str:
    """Its state as text: queued, #3, expected 14:20 (in 2:10:00)."""
    if one["status"] in ("pending", "queued"):
        return ", ".join(part for part in (one["status"], queue_place(one, now_s)) if part)
    if one["status"] == "active" and one.get("expires_at"):
        return f"{status(one)} until {render.when(one['expires_at'])}"
    if one["status"] in LIVE or not one.get("ended_at"):
        return status(one)
    return f"{status(one)} since {render.when(one['ended_at'])}"


def message(one: Reservation, now_s: float) -> str:
    """The daemon's message on what the reservation is doing, or how it ended."""
    failed = one["status"] == "failed" and one.get("failure_reason")
    return local_times(str(failed or one.get("message") or ""), now_s)


def storage(one: Reservation) -> str:
    if one.get("disk_name"):
        return f"disk {disk(one)}"
    return STORAGES[one["storage"]]


def disk(one: Reservation) -> str:
    """main; main (backing-up)"""
    name, state = render.clean(one["disk_name"] or "-"), one.get("disk_state")
    return name if state in (None, "free", "in-use") else f"{name} ({state})"


def left(one: Reservation, now_s: float) -> str:
    if one["status"] != "active" or not one.get("expires_at"):
        return ""
    # The server's clock has whole seconds, so a new reservation would show one second too many.
    whole_s = one["duration_s"] + one["extended_s"]
    left_s = round(render.moment(one["expires_at"]).timestamp() - now_s)
    return render.duration(min(left_s, whole_s))


def how_to_connect(one: Reservation) -> list[tuple[str, str]]:
    """Commands and links of an active reservation."""
    if one["status"] != "active":
        return []
    return [
        ("connect", f"odcctl connect {one['id']}" if one.get("connect") else ""),
        ("ssh", render.clean(one.get("ssh_command") or "")),
        ("by address", "\n".join(map(_by_address, one.get("ssh_addresses") or ()))),
        *_links(one),
        ("jupyter", _jupyter(one)),
    ]


def _by_address(host_and_port: str) -> str:
    address, _, port = render.clean(host_and_port).rpartition(":")
    return f"ssh dev@{address.strip('[]') or 'NODE'} -p {port}"


def _jupyter(one: Reservation) -> str:
    state = one.get("jupyter")
    if state == "failed":
        return f"failed: {render.clean(one.get('jupyter_error') or '')}"
    if state in ("starting", "running"):
        lines = [f"odcctl connect {one['id']} --jupyter" + (" (starting)" * (state == "starting"))]
        return "\n".join([*lines, *filter(None, [render.clean(one.get("jupyter_url") or "")])])
    return state or ""


def _links(one: Reservation) -> list[tuple[str, str]]:
    if one.get("connect") != "ssh":
        return []
    return links(one)


def describe(one: Reservation, now_s: float, *, whole: bool = True) -> str:
    """A block of keys and values. whole: with those that the job's block shows, too."""
    requested = [
        ("name", one["name"]),
        ("user", one["user"]),
        ("asks for", f"{gpus(one)} for {render.duration(one['duration_s'])}"),
        ("labels", " ".join(f"{key}={value}" for key, value in one.get("labels", {}).items())),
        ("image", one.get("image")),
        ("build", f"odcctl logs --build {one['id']}" if one.get("build") else ""),
    ]
    pairs = [
        ("status", status(one)),
        ("now" if one["status"] in LIVE else "end", message(one, now_s)),
        ("queue", queue_place(one, now_s) if one["status"] in ("pending", "queued") else ""),
        *(requested if whole else requested[3:]),
        ("nodes", fold(one.get("node_names") or ()) if whole else ""),
        ("notice", _node_notice(one, now_s)),
        ("storage", storage(one)),
        ("created", render.when(one["created_at"]) if whole else ""),
        ("active", render.when(one.get("launched_at"))),
        _expiry(one),
        ("time left", left(one, now_s)),
        ("extension", _extension(one)),
        ("ended", render.when(one.get("ended_at")) if whole else ""),
        *how_to_connect(one),
        ("also for", ", ".join(one.get("secondary_users") or ())),
        ("out of memory", _out_of_memory(one)),
        ("warned", _warnings(one, now_s)),
        ("comment", one.get("comment") if whole else ""),
        ("history", _history(one, now_s)),
    ]
    kept = [(key, _clean(value)) for key, value in pairs if value]
    return render.block(f"reservation {one['id']}", kept)


def _expiry(one: Reservation) -> tuple[str, str]:
    """When it expires, or expired; nothing if it ended before that."""
    if one["status"] in LIVE:
        return "expires", render.when(one.get("expires_at"))
    expired = one["status"] == "expired" and (one["ended_at"] or "") >= (one["expires_at"] or "")
    return "expired", render.when(one["expires_at"]) if expired else ""


def _clean(value: object) -> str:
    return "\n".join(render.clean(line) for line in str(value).split("\n"))


def _extension(one: Reservation) -> str:
    if one.get("extensions"):
        return f"used: {render.duration(one['extended_s'])}"
    return f"up to 24 hours, once: odcctl extend {one['id']}" if one["status"] == "active" else ""


def _out_of_memory(one: Reservation) -> str:
    if not one.get("oom_count"):
        return ""
    last = one.get("last_oom_at")
    return render.counted(one["oom_count"], "kill") + (
        f", last {render.when(last)}" if last else ""
    )


def _node_notice(one: Reservation, now_s: float) -> str:
    until_at = one.get("node_notice_until")
    more = f"; time left: {until(until_at, now_s)}" if until_at else ""
    text = one.get("node_notice")
    return f"{local_times(text, now_s)}{more}" if text else ""


def _warnings(one: Reservation, now_s: float) -> str:
    return ", ".join(
        f"{warning['minutes']} minutes before the end, {render.clock(warning['at'], now_s)}"
        for warning in one.get("warnings") or ()
    )


def _history(one: Reservation, now_s: float) -> str:
    return "\n".join(
        f"{render.when(entry['at'])}  {local_times(entry['text'], now_s)}"
        for entry in one.get("history") or ()
    )
