"""Bookings as text: a row of the list, and the details of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from odcctl.text import render
from odcctl.text.hostlist import fold


def describe(booking: Mapping[str, Any]) -> str:
    pairs = [
        ("kind", booking["kind"]),
        ("state", booking["state"]),
        ("window", window_of(booking)),
        ("local", local_window_of(booking)),
        ("repeats", _repeats(booking)),
        ("nodes", fold(booking["node_names"])),
        ("asks for", _asks(booking)),
        ("owners", _owners(booking)),
        ("lacks", booking.get("reason") or ""),
        ("running jobs", "are ignored" if booking["ignore_running"] else ""),
        ("jobs", " ".join(str(job) for job in booking["jobs"])),
        ("comment", booking.get("comment") or ""),
        ("created", f"{render.when(booking['created_at'])} by {booking['created_by']}"),
    ]
    return render.block(
        f"booking {booking['name']}", [(key, render.clean(value)) for key, value in pairs]
    )


def row_of(booking: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    owners, lacks = _owners(booking), booking.get("reason") or ""
    repeats = f"{booking['repeats']} {booking.get('zone') or ''}".rstrip()
    return (
        booking["name"], booking["kind"], booking["state"],
        render.clock(booking["starts_at"], now_s), render.clock(booking["ends_at"], now_s),
        repeats.replace("none", "-"), fold(booking["node_names"]) or "-",
        render.clean(f"{owners} / {lacks}" if owners and lacks else owners or lacks),
    )  # fmt: skip


def window_of(booking: Mapping[str, Any]) -> str:
    return f"{render.when(booking['starts_at'])} to {render.when(booking['ends_at'])}"


def local_window_of(booking: Mapping[str, Any]) -> str:
    """The window at the local time of the booking's zone; nothing if it has none, or if this
    machine does not know it."""
    try:
        zone = ZoneInfo(booking.get("zone") or "")
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ""
    start, end = (
        f"{render.moment(booking[name]).astimezone(zone):%Y-%m-%d %H:%M:%S}"
        for name in ("starts_at", "ends_at")
    )
    return f"{start} to {end} in {booking['zone']}"


def _repeats(booking: Mapping[str, Any]) -> str:
    if booking["repeats"] == "none":
        return ""
    until = f" until {render.when(booking['until'])}" if booking.get("until") else ""
    zone = f" at the same time in {booking['zone']}" if booking.get("zone") else ""
    return f"{booking['repeats']}{zone}{until}"


def _asks(booking: Mapping[str, Any]) -> str:
    if booking["node_list"]:
        return fold(booking["node_list"])
    count = booking.get("node_count")
    parts = ["all nodes" if count is None else "1 node" if count == 1 else f"{count} nodes"]
    if booking.get("gpu_type"):
        parts.append(f"of type {booking['gpu_type']}")
    if booking.get("partition"):
        parts.append(f"of partition {booking['partition']}")
    return " ".join(parts)


def _owners(booking: Mapping[str, Any]) -> str:
    accounts = ",".join(booking["accounts"])
    return " ".join([",".join(booking["users"]), f"@{accounts}" if accounts else ""]).strip()
