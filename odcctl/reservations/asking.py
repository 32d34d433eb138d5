"""Ask the user at the terminal for values that the command line does not give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.exits import Refused
from odcctl.http.client import Client
from odcctl.reservations.availability import counts, fetch_types, nodes_for
from odcctl.reservations.disks import NONE, choose_disk, settle_disk
from odcctl.reservations.guide import guide
from odcctl.reservations.request import Options, as_command
from odcctl.text import render


def complete(client: Client, options: Options, request: dict[str, Any]) -> None:
    """Ask on a terminal for missing values; without one, the daemon's defaults are used."""
    if not options.interactive:
        return
    if any(request[name] is None for name in ("gpu_type", "gpus", "hours")):
        types = fetch_types(client, request["hours"])
        guide(
            client, types, request, jupyter=not request["jupyter"],
            disk=lambda: _disk(client, options, request),
        )  # fmt: skip
        render.note(f"As one command: {as_command(request)}")
    elif request["disk"] is not None:
        _disk(client, options, request)


def _disk(client: Client, options: Options, request: dict[str, Any]) -> None:
    """Choose the disk if none was given, and check that it is available."""
    tests, waits = options.test_only, options.ignore_no_persist
    if request["disk"] is None and not request["no_persist"]:
        choose_disk(client, request, makes=not tests, waits=waits or tests)
    elif request["disk"] not in (None, NONE) and not tests:
        settle_disk(client, request, waits=waits)


def of_several_nodes(
    client: Client, request: Mapping[str, Any], refused: Refused
) -> Mapping[str, Any] | None:
    """The GPU type if the request was rejected because it needs several nodes without -d."""
    gpu_type, gpus = (request["gpu_type"] or "").casefold(), request["gpus"] or 0
    if refused.code != "OD010" or request["distributed"] or gpus < 2:
        return None
    kinds = [kind for kind in fetch_types(client) if kind["gpus_per_node"]]
    found = [kind for kind in kinds if kind["gpu_type"].casefold() == gpu_type or len(kinds) == 1]
    return (
        found[0] if found and gpus in counts(found[0]) and nodes_for(found[0], gpus) > 1 else None
    )
