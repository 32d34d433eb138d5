"""Errors: a reservation cannot be entered, or a connection to it was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.caller import me
from odcctl.exits import Failure, Refused, Unreachable
from odcctl.http.client import Client
from odcctl.reservations.describe import message, queue_place
from odcctl.text.render import clean, when

_END = {"failed": "failed", "cancelled": "was cancelled", "expired": "has already ended"}
AGAIN = "Reserve again: odcctl reserve"


def not_now(client: Client, one: Mapping[str, Any], now_s: float) -> Failure:
    """The state of a reservation that is not ready, and what to do."""
    number, status, why = one["id"], one["status"], message(one, now_s)
    if status in ("pending", "queued"):
        place = queue_place(one, now_s)
        what = f"is {status}" + (f": {place}" if place else "")
        hint = f"{why}\n`odcctl list --watch` shows when it is active.".lstrip("\n")
    elif status == "preparing":
        phase = str(one.get("phase") or "").replace("_", " ")
        what = f"is preparing: {phase}" if phase else "is preparing"
        hint = f"{why}\n`odcctl list --watch` shows when it is active.".lstrip("\n")
    elif status == "active" and one["user"] != me(client):
        what, hint = f"belongs to {one['user']}", "Only its owner and operators can connect."
        if one.get("github_user"):
            hint = (
                f"{one['user']} can add you: odcctl edit {number} --add-user NAME, with your "
                "GitHub name\nRegister that name first: odcctl config set github_user NAME"
            )
    elif status == "active":
        what, hint = "is active, but cannot be reached now", why or "Try again in a moment."
    elif status == "expired":
        what, hint = f"expired {when(one.get('ended_at') or one.get('expires_at'))}", AGAIN
    elif status == "cancelled":
        what = f"has ended: {why or 'cancelled'}" + f" ({when(one.get('ended_at'))})".replace(
            " ()", ""
        )
        hint = AGAIN
    else:
        what = status + (f": {why}" if why else "")
        hint = f"`odcctl show {number}` shows the details. {AGAIN}"
    return Failure(f"reservation {number} {what}", hint)


def dropped(client: Client, number: int) -> Failure:
    """Why a connection was lost: the reservation has ended, or only the connection broke."""
    try:
        reply = client.get(f"/v1/reservations/{number}")
    except Refused as refused:
        return refused
    except Failure:
        return Unreachable(
            f"the connection to reservation {number} was lost, and the daemon does not answer",
            f"Programs in it keep running. Try again: odcctl connect {number}",
        )
    one = reply.json()
    if one["status"] != "active":
        return not_now(client, one, reply.now_s)
    return Unreachable(
        f"the connection to reservation {number} was lost; it is active until "
        f"{when(one.get('expires_at'))}",
        f"Connect again: odcctl connect {number}",
    )


def not_started(one: Mapping[str, Any], now_s: float) -> Failure:
    """The reservation ended before it became active."""
    why, ended = message(one, now_s), _END.get(one["status"], f"is {one['status']}")
    return Failure(
        f"reservation {one['id']} {ended}" + (f": {why}" if why else ""),
        f"`odcctl show {one['id']}` shows the details.",
    )


def denied(one: Mapping[str, Any]) -> Failure:
    """The dev server was reached, but accepted none of the SSH keys."""
    number, names = one["id"], [one.get("github_user"), *(one.get("secondary_users") or ())]
    whose = ", ".join(clean(str(name)) for name in names if name) or "its users"
    return Failure(
        f"reservation {number} accepts none of your SSH keys",
        f"It accepts the keys that {whose} had at GitHub when it was reserved. To list yours: "
        "ssh-add -l\n"
        f"Its owner can add another GitHub user: odcctl edit {number} --add-user NAME",
    )
