"""Ask the person at the terminal for what the command line left open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.exits import Refused
from odcctl.http.client import Client
from odcctl.reservations.availability import counts, fetch_types, nodes_for
from odcctl.reservations.disks import NONE, ask_disk, settle_disk
from odcctl.reservations.guide import guide
from odcctl.reservations.request import Options, as_command
from odcctl.text import render


def complete(client: Client, options: Options, wanted: dict[str, Any]) -> None:
    """Ask on a terminal for what is open; elsewhere the daemon's defaults hold."""
    if not options.asks:
        return
    if any(wanted[name] is None for name in ("gpu_type", "gpus", "hours")):
        types = fetch_types(client, wanted["hours"])
        guide(
            client, types, wanted, jupyter=not wanted["jupyter"],
            disk=lambda: _disk(client, options, wanted),
        )  # fmt: skip
        render.note(f"As one command: {as_command(wanted)}")
    elif wanted["disk"] is not None:
        _disk(client, options, wanted)


def _disk(client: Client, options: Options, wanted: dict[str, Any]) -> None:
    """Which it is, if that is open, and that it can be had."""
    tests, waits = options.test_only, options.ignore_no_persist
    if wanted["disk"] is None and not wanted["no_persist"]:
        ask_disk(client, wanted, makes=not tests, waits=waits or tests)
    elif wanted["disk"] not in (None, NONE) and not tests:
        settle_disk(client, wanted, waits=waits)


def of_several_nodes(
    client: Client, wanted: Mapping[str, Any], refused: Refused
) -> Mapping[str, Any] | None:
    """The type, if the request was rejected because it needs several nodes without saying so."""
    named, gpus = (wanted["gpu_type"] or "").casefold(), wanted["gpus"] or 0
    if refused.code != "OD010" or wanted["distributed"] or gpus < 2:
        return None
    kinds = [kind for kind in fetch_types(client) if kind["gpus_per_node"]]
    found = [kind for kind in kinds if kind["gpu_type"].casefold() == named or len(kinds) == 1]
    return (
        found[0] if found and gpus in counts(found[0]) and nodes_for(found[0], gpus) > 1 else None
    )
