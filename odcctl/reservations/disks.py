"""Disks: their fields as text, and the choice of a dev server's home."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.text import render
from odcctl.text.prompts import agree, choose, prompt_until_valid, show

PATH = "/v1/disks"
NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
NAME_RULE = "a disk's name has 1 to 50 letters, digits, - and _"
NEW, NONE = "new", "none"
FIRST_NAME = "main"

Disk = Mapping[str, Any]


class Disks(NamedTuple):
    """A user's disks. default_gib: the size of a new one; None: the daemon offers no disks."""

    default_gib: int | None
    there: list[dict[str, Any]]


def fetch_disks(client: Client) -> Disks:
    answer = client.get(PATH).json()
    there = [disk for disk in answer["disks"] if disk["state"] != "deleted"]
    return Disks(answer["default_gib"], there)


def state(disk: Disk) -> str:
    """in-use by 12; backing-up 40 %; deleted until 2026-08-01"""
    word: str = disk["state"]
    if word == "in-use":
        return f"{word} by {disk['reservation_id']}"
    if word == "backing-up" and disk["snapshot_progress"] is not None:
        return f"{word} {disk['snapshot_progress']} %"
    if word == "deleted":
        return f"{word} until {render.when(disk['purge_at'])[:10]}"
    return word


def size(disk: Disk) -> str:
    """1.5/100 GiB"""
    used = disk["used_bytes"]
    return f"{'-' if used is None else format(used / 2**30, '.1f')}/{disk['size_gib']} GiB"


def make_disk(client: Client, name: str, size_gib: int | None = None) -> Disk:
    body = {"name": name} | ({} if size_gib is None else {"size_gib": size_gib})
    return client.post_once(PATH, body).json()


def choose_disk(client: Client, request: dict[str, Any], *, makes: bool, waits: bool) -> None:
    """Let the user choose a disk, if disks are offered. makes: offer a new one, too; waits: as in
    settle_disk."""
    disks = fetch_disks(client)
    if disks.default_gib is None:
        return
    show("Which disk is its home folder?")
    request["disk"] = _choose(client, disks, makes=makes)
    if not waits:
        _resolve_busy_disk(client, disks, request)


def settle_disk(client: Client, request: dict[str, Any], *, waits: bool) -> None:
    """Check that the named disk is available: offer to create one that does not exist, and offer
    the choices if another reservation uses it. waits: the user has chosen to wait."""
    disks, name = fetch_disks(client), request["disk"]
    if disks.default_gib is None:
        return  # The daemon's error explains why.
    if all(disk["name"] != name for disk in disks.there):
        if not agree(f'You have no disk "{name}". Create it ({disks.default_gib} GiB)?', True):
            raise Failure(f'there is no disk "{name}"', "`odcctl disk list` shows your disks.")
        _make(client, name)
    elif not waits:
        _resolve_busy_disk(client, disks, request)


def _resolve_busy_disk(client: Client, disks: Disks, request: dict[str, Any]) -> None:
    """Offer the choices if another reservation uses the disk."""
    found = [disk for disk in disks.there if disk["name"] == request["disk"]]
    if not found or found[0]["state"] not in ("in-use", "backing-up"):
        return
    show(_why_busy(found[0]))
    lines = [
        "wait     wait until it is free; the reservation keeps its place in the queue",
        "another  use another disk, or a new one",
        "none     use a home folder that is deleted with the reservation",
    ]
    choice = choose("Choice", ["wait", "another", "none"], lines)
    if choice == 1:
        others = [disk for disk in disks.there if disk is not found[0]]
        request["disk"] = _choose(client, Disks(disks.default_gib, others), makes=True)
    elif choice == 2:
        request["disk"] = NONE
    if request["disk"] == NONE:
        request["recreate_env"] = False


def _why_busy(disk: Disk) -> str:
    if disk["state"] == "in-use":
        return f"Disk {disk['name']} is in use by reservation {disk['reservation_id']}."
    return f"Disk {disk['name']} is {state(disk)}: its data is being saved."


def _choose(client: Client, disks: Disks, *, makes: bool) -> str:
    rows = [[disk["name"], size(disk), state(disk), _last(disk)] for disk in disks.there]
    names = [disk["name"] for disk in disks.there]
    if makes:
        rows.append([NEW, f"{disks.default_gib} GiB", "", ""])
    rows.append([NONE, "", "the home folder is deleted at the end", ""])
    names += [NEW, NONE] if makes else [NONE]
    lines = render.table((), rows, render.terminal_width()).splitlines()
    at = choose("Disk", names, lines, _default(disks))
    if makes and at == len(disks.there):
        name = _new_name(disks)
        _make(client, name)
        return name
    return names[at]


def _default(disks: Disks) -> int:
    """The available disk that was used last."""
    free = [at for at, disk in enumerate(disks.there) if disk["state"] == "available"]
    if not free:
        return len(disks.there)
    return max(free, key=lambda at: disks.there[at]["last_used_at"] or "")


def _last(disk: Disk) -> str:
    at = disk["last_used_at"]
    return f"last used {render.when(at)}" if at else "never used"


def _new_name(disks: Disks) -> str:
    there = [disk["name"] for disk in disks.there]

    def read(text: str) -> str:
        if not NAME.fullmatch(text):
            raise ValueError(NAME_RULE)
        if text in (*there, NONE):
            raise ValueError("you already have a disk of that name; enter another name")
        return text

    return prompt_until_valid("Name of the disk", "" if FIRST_NAME in there else FIRST_NAME, read)


def _make(client: Client, name: str) -> None:
    made = make_disk(client, name)
    show(f"Disk {made['name']} created: {made['size_gib']} GiB.")
