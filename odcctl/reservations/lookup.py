"""Reservations: which one a word names, and what its fields say in words."""

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
    """The statuses of -s by commas; one that is none is wrong usage."""
    if text is None:
        return None
    words = [word.strip().lower() for word in text.split(",")]
    for word in words:
        if word not in STATUSES:
            raise WrongUsage(f'"{word}" is not a status', f"Statuses: {', '.join(STATUSES)}.")
    return ",".join(words)


def own(client: Client, statuses: Sequence[str] = LIVE) -> list[dict[str, Any]]:
    """The caller's reservations in these statuses."""
    answer = client.get("/v1/reservations", {"status": ",".join(statuses)})
    return answer.json()["reservations"]


def find(client: Client, word: str) -> dict[str, Any]:
    """The reservation that a word names: an exact id, else the start of one of my live ones' ids,
    or the name of one."""
    unknown: Failure | None = None
    if word.isascii() and word.isdecimal():
        try:
            return client.get(f"/v1/reservations/{word}").json()
        except Refused as refused:
            if refused.status != 404:
                raise
            unknown = refused
    found = starting(client, word)
    if not found:
        raise unknown or Failure(
            f'you have no live reservation with the name "{render.clean(word)}"',
            "`odcctl list --all` also shows ended reservations; use their ids.",
        )
    return found[0]


def starting(client: Client, word: str) -> Sequence[dict[str, Any]]:
    """The live one of mine whose id starts so, or that has this name; several are refused."""
    live = own(client)
    found = [one for one in live if one["name"] == word or str(one["id"]).startswith(word or "?")]
    if len(found) > 1:
        raise Failure(
            f'"{render.clean(word)}" names {len(found)} of your reservations', _named(found)
        )
    return found


def named_or_only(call: Call, word: str | None, statuses: Sequence[str]) -> dict[str, Any]:
    """The one the command line names; without a name the only one in these statuses, or the one
    chosen on a terminal."""
    client = call.client()
    if word is not None:
        return find(client, word)
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
    if call.may_ask():
        return pick(there)
    raise Failure(
        f"{len(there)} of your reservations are {what}: choose one",
        f"{_named(there)}\nFor example: odcctl {call.verb} {there[0]['id']}",
    )


def pick(there: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Chosen on the terminal, by its number in the menu, or by id or name."""
    names = [str(one["id"]) for one in there]
    rows = [[str(one["id"]), *_row(one)] for one in there]
    lines = render.table((), rows, render.terminal_width()).splitlines()
    return there[choose("Which one", names, lines)]


def _named(reservations: Sequence[Reservation]) -> str:
    rows = [[str(one["id"]), *_row(one)] for one in reservations]
    return render.table((), rows).rstrip("\n")


def _row(one: Reservation) -> list[str]:
    return [render.clean(one["name"]), gpus(one), one["status"]]
