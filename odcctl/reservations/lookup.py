"""Find the reservation that the user means: by id, by the start of an id, by name, or by menu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odcctl.cli.call import Call
from odcctl.exits import Failure, Refused, WrongUsage
from odcctl.http.client import Client
from odcctl.reservation_states import LIVE, STATUSES
from odcctl.reservations.describe import Reservation, gpus
from odcctl.text import render
from odcctl.text.prompts import choose


def parse_statuses(text: str | None) -> str | None:
    """The statuses of -s, separated by commas; an unknown one is wrong usage."""
    if text is None:
        return None
    statuses = [status.strip().lower() for status in text.split(",")]
    for status in statuses:
        if status not in STATUSES:
            raise WrongUsage(f'"{status}" is not a status', f"Statuses: {', '.join(STATUSES)}.")
    return ",".join(statuses)


def own(client: Client, statuses: Sequence[str] = LIVE) -> list[dict[str, Any]]:
    """The caller's reservations in these statuses."""
    answer = client.get("/v1/reservations", {"status": ",".join(statuses)})
    return answer.json()["reservations"]


def find(client: Client, name: str) -> dict[str, Any]:
    """The reservation that `name` names: its exact id, else the start of the id or the name of a
    live reservation of the caller."""
    unknown: Failure | None = None
    if name.isascii() and name.isdecimal():
        try:
            return client.get(f"/v1/reservations/{name}").json()
        except Refused as refused:
            if refused.status != 404:
                raise
            unknown = refused
    found = starting(client, name)
    if not found:
        raise unknown or Failure(
            f'you have no live reservation with the name "{render.clean(name)}"',
            "`odcctl list --all` also shows ended reservations; use their ids.",
        )
    return found[0]


def starting(client: Client, name: str) -> Sequence[dict[str, Any]]:
    """The caller's live reservation with this name or start of its id; several are an error."""
    live = own(client)
    found = [one for one in live if one["name"] == name or str(one["id"]).startswith(name or "?")]
    if len(found) > 1:
        raise Failure(
            f'"{render.clean(name)}" names {len(found)} of your reservations', _named(found)
        )
    return found


def named_or_only(call: Call, name: str | None, statuses: Sequence[str]) -> dict[str, Any]:
    """The reservation that the command line names; without a name the only one in these statuses,
    or the one that the user chooses on a terminal."""
    client = call.client()
    if name is not None:
        return find(client, name)
    there = own(client, statuses)
    if len(there) == 1:
        return there[0]
    what = "active" if statuses == ("active",) else "live"
    if not there:
        others = _named(own(client)) if what == "active" else ""
        raise Failure(
            f"you have no {what} reservation",
            f"Your other reservations:\n{others}" if others else "Create one: odcctl reserve",
        )
    if call.may_prompt():
        return pick(there)
    raise Failure(
        f"{len(there)} of your reservations are {what}: choose one",
        f"{_named(there)}\nFor example: odcctl {call.verb} {there[0]['id']}",
    )


def pick(there: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Let the user choose a reservation on the terminal."""
    names = [str(one["id"]) for one in there]
    rows = [[str(one["id"]), *_row(one)] for one in there]
    lines = render.table((), rows, render.terminal_width()).splitlines()
    return there[choose("Which one", names, lines)]


def _named(reservations: Sequence[Reservation]) -> str:
    rows = [[str(one["id"]), *_row(one)] for one in reservations]
    return render.table((), rows).rstrip("\n")


def _row(one: Reservation) -> list[str]:
    return [render.clean(one["name"]), gpus(one), one["status"]]
