"""odcctl ssh-proxy: what ssh runs to reach a reservation, over the daemon's own port."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.exits import DONE, Failure, Unreachable
from odcctl.http.client import Client

TRIES = 3
PAUSE_S = 0.5
"""Before the second try; twice that before the third."""
NOT_ACTIVE = 4409
REFUSALS = {
    4004: "`odcctl list` shows yours.",
    4400: "`odcctl show {number}` shows how many nodes it has.",
    4401: "`odcctl login` logs in again; an operator may have logged you out.",
    4403: "Its owner can add you: odcctl edit {number} --add-user NAME, with your GitHub name\n"
    "Register that name first: odcctl config set github_user NAME",
    NOT_ACTIVE: "`odcctl show {number}` shows the details.",
}
"""Hints by the close code of the tunnel."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

app = new_app()


@app.command(cls=Verb, epilog="ssh -o ProxyCommand='odcctl ssh-proxy 12' dev@odc-12")
def ssh_proxy(
    ctx: typer.Context,
    reservation: Annotated[str, typer.Argument(metavar="ID", help="the reservation")],
    rank: Annotated[str, typer.Argument(metavar="RANK", help="the node to connect to")] = "0",
) -> int:
    """Connect ssh to a reservation; used by ssh itself.

    This is the ProxyCommand in the configuration that odcctl writes for ssh. Standard input and
    output are the connection to the SSH server of member RANK. The connection uses the daemon's
    port, so you do not need to reach the nodes' addresses; proxies of the environment are not
    used. Exits with 0 if the connection was closed, 1 if the reservation has ended or is not
    yours, and 3 if the daemon cannot be reached or the connection was lost.
    """
    call = Call.of(ctx, failing="not connected")
    number, member = _number(call, reservation), _number(call, rank)
    # The way to the daemon is this program's own; a proxy for web pages is none for it.
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    client = call.client()
    for again in range(1, TRIES):
        try:
            return _carry(client, number, member)
        except _Passing:
            time.sleep(PAUSE_S * again)
    try:
        return _carry(client, number, member)
    except _Passing as passing:
        raise passing.failure from None


class _Passing(Exception):
    """Nothing came through yet, and the next try may get further."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _number(call: Call, word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        call.wrong(f'"{word}" is not a number')
    return int(word)


def _carry(client: Client, number: int, rank: int) -> int:
    """Until either side ends. Raises _Passing, Failure."""
    from odcctl.reservations.errors import dropped
    from odcctl.ssh.tunnel import Lost, carry

    try:
        ours = carry(client, f"/v1/reservations/{number}/ssh?rank={rank}")
    except Unreachable as unreachable:
        raise _Passing(unreachable) from None
    except Lost as lost:
        if lost.code in REFUSALS:
            raise _refusal(client, number, lost.code, lost.reason) from None
        failure = dropped(client, number)
        if lost.begun or not isinstance(failure, Unreachable):
            raise failure from None
        raise _Passing(Unreachable(lost.reason, failure.hint) if lost.reason else failure) from None
    if not ours:
        # Told while ssh still listens: once it knows, it ends this program.
        raise dropped(client, number)
    return DONE


def _refusal(client: Client, number: int, code: int, reason: str) -> Failure:
    """The reason that the tunnel gave; for a reservation that is not active, its state."""
    from odcctl.reservations.errors import not_now
    from odcctl.ssh import host_files as ssh

    said = Failure(
        reason or f"reservation {number} cannot be reached", REFUSALS[code].format(number=number)
    )
    if code != NOT_ACTIVE:
        return said
    try:
        reply = client.get(f"/v1/reservations/{number}")
    except Failure:
        return said
    one = reply.json()
    ssh.tidy(client, [one])
    return said if one["status"] == "active" else not_now(client, one, reply.now_s)
