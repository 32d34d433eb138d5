"""odcctl ssh-proxy: the command by which ssh reaches a reservation, through the daemon."""

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
"""The pause before the second try; the pause before the third is twice as long."""
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
    # A proxy for web pages cannot carry this connection.
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    client = call.client()
    for again in range(1, TRIES):
        try:
            return _carry(client, number, member)
        except _Temporary:
            time.sleep(PAUSE_S * again)
    try:
        return _carry(client, number, member)
    except _Temporary as temporary:
        raise temporary.failure from None


class _Temporary(Exception):
    """No data has arrived yet, and the next try may succeed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _number(call: Call, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        call.wrong(f'"{text}" is not a number')
    return int(text)


def _carry(client: Client, number: int, rank: int) -> int:
    """Carry data until one side ends. Raises _Passing, Failure."""
    from odcctl.reservations.errors import dropped
    from odcctl.ssh.tunnel import Lost, carry

    try:
        ours = carry(client, f"/v1/reservations/{number}/ssh?rank={rank}")
    except Unreachable as unreachable:
        raise _Temporary(unreachable) from None
    except Lost as lost:
        if lost.code in REFUSALS:
            raise _refusal(client, number, lost.code, lost.reason) from None
        failure = dropped(client, number)
        if lost.begun or not isinstance(failure, Unreachable):
            raise failure from None
        raise _Temporary(
            Unreachable(lost.reason, failure.hint) if lost.reason else failure
        ) from None
    if not ours:
        # Reported before ssh notices the end, since it then ends this program.
        raise dropped(client, number)
    return DONE


def _refusal(client: Client, number: int, code: int, reason: str) -> Failure:
    """The reason that the tunnel gave; for a reservation that is not active, its state."""
    from odcctl.reservations.errors import not_now
    from odcctl.ssh import host_files as ssh

    failure = Failure(
        reason or f"reservation {number} cannot be reached", REFUSALS[code].format(number=number)
    )
    if code != NOT_ACTIVE:
        return failure
    try:
        reply = client.get(f"/v1/reservations/{number}")
    except Failure:
        return failure
    one = reply.json()
    ssh.tidy(client, [one])
    return failure if one["status"] == "active" else not_now(client, one, reply.now_s)
