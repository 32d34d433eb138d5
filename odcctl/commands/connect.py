"""odcctl connect: connect to an active reservation; for any other, print its state."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import Verb, new_app
from odcctl.cli.params import Reservation
from odcctl.exits import DONE, Failure, Unreachable
from odcctl.http.client import Client
from odcctl.reservations.describe import message
from odcctl.reservations.errors import denied, dropped, not_now
from odcctl.reservations.lookup import named_or_only
from odcctl.text.prompts import choose
from odcctl.text.render import note, when

EXAMPLE = "odcctl connect\nodcctl connect 12\nodcctl connect 12 --jupyter"

app = new_app()


@app.command(cls=Verb, epilog=EXAMPLE)
def connect(
    ctx: typer.Context,
    reservation: Reservation = None,
    rank: Annotated[
        int | None,
        typer.Option("--rank", metavar="N", help="the node to connect to; 0 is the first"),
    ] = None,
    forward_agent: Annotated[
        bool,
        typer.Option(
            "--forward-agent", help="forward your SSH agent, even if other users may connect"
        ),
    ] = False,
    no_forward_agent: Annotated[
        bool, typer.Option("--no-forward-agent", help="do not forward your SSH agent")
    ] = False,
    jupyter: Annotated[
        bool,
        typer.Option("--jupyter", help="open its Jupyter Lab in a local browser, not a shell"),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="for --jupyter; default 8888, or a free port"),
    ] = None,
) -> int:  # fmt: skip
    """Connect to an active reservation.

    Without an ID, connects to your only active reservation; on a terminal you choose if there
    are several. Ctrl-] d disconnects from its terminal, and its programs continue; several
    users can be connected at once. If the reservation uses SSH, odcctl runs ssh and exits with
    its exit code. Your SSH agent is forwarded unless other users may connect, or `odcctl config
    set forward_agent off` was run.

    With several nodes, you choose one on a terminal; otherwise odcctl connects to rank 0.
    --jupyter forwards a local port to its Jupyter Lab through the daemon's port, and prints the
    link. Ctrl-C stops the forwarding.
    """
    call = Call.of(ctx, failing="not connected")
    if call.form != "table":
        call.wrong("this command opens a terminal, so it has no other output format")
    _check_port(call, port, jupyter=jupyter)
    if forward_agent and no_forward_agent:
        call.wrong("--forward-agent and --no-forward-agent cannot be used together")
    if jupyter and rank:
        call.wrong("Jupyter Lab runs on the first node, rank 0")
    client = call.client()
    chosen = named_or_only(call, reservation, ("active",))
    # The list may be a minute old when the user chooses from it.
    reply = client.get(f"/v1/reservations/{chosen['id']}")
    one: dict[str, Any] = reply.json()
    if one["status"] != "active" or not one.get("connect"):
        raise not_now(client, one, reply.now_s)
    if jupyter:
        from odcctl.reservations import jupyter as lab

        return lab.open_here(client, one, port)
    agent = True if forward_agent else False if no_forward_agent else None
    return _open_shell(call, client, one, rank, agent)


def _check_port(call: Call, port: int | None, *, jupyter: bool) -> None:
    if port is not None and not (jupyter and 0 < port < 65_536):
        call.wrong("--port requires --jupyter, and must be 1 to 65535")


def _open_shell(
    call: Call, client: Client, one: dict[str, Any], rank: int | None, agent: bool | None
) -> int:
    if one["connect"] == "ssh":
        return _ssh(client, one, _which(call, rank, one), agent)
    if rank:
        call.wrong("--rank requires a reservation that uses SSH")
    return _terminal(client, one)


def _terminal(client: Client, one: Mapping[str, Any]) -> int:
    if not sys.stdin.isatty():
        # When that shell ends, another one starts, so the end of input would not end anything.
        raise Failure(
            "standard input is not a terminal",
            "To run a command without a terminal, submit it as a job: odcctl run --gpus 1 COMMAND",
        )
    from odcctl.terminal import DETACH_KEYS, Detached, attach

    number, until = one["id"], when(one.get("expires_at"))
    notice = f"odcctl: connected to reservation {number} until {until}; {DETACH_KEYS} disconnects"
    try:
        code = attach(client, str(number), lambda: note(notice))
    except Detached:
        note(
            f"\nodcctl: disconnected; reservation {number} continues until {until}\n"
            f"  Connect again: odcctl connect {number}"
        )
        return DONE
    note(f"\nodcctl: reservation {number}: {_how_it_ended(client, number)}")
    return code


def _how_it_ended(client: Client, number: int) -> str:
    try:
        reply = client.get(f"/v1/reservations/{number}")
    except Failure:
        return "its terminal has ended"
    return message(reply.json(), reply.now_s)


def _ssh(client: Client, one: Mapping[str, Any], rank: int, agent: bool | None) -> int:
    """Run ssh; return its exit code. The daemon has no influence on its command line."""
    import shutil

    from odcctl.ssh import host_files as ssh
    from odcctl.ssh.process import SSH_FAILED

    if shutil.which("ssh") is None:
        raise Failure("this machine has no ssh", "Install the OpenSSH client.")
    number = int(one["id"])
    ssh.write(client, one)
    if agent is None and ssh.shared(one):
        note(
            "odcctl: other users may connect to this dev server, so your SSH agent is not "
            "forwarded;"
        )
        note("  --forward-agent forwards it, and those users can then use its keys")
    code, stderr = _run_ssh(ssh.command(client, one, rank, agent=agent))
    if code != SSH_FAILED:
        return code
    if b"Permission denied (" in stderr:
        raise denied(one)
    gone = dropped(client, number)
    if not isinstance(gone, Unreachable):
        ssh.remove(client, [number])
    raise gone


def _run_ssh(arguments: Sequence[str]) -> tuple[int, bytes]:
    """Run ssh; return its exit code and the end of its standard error, shown as it arrives."""
    import subprocess

    from odcctl.ssh.process import exit_code, showing

    # A handler, since ssh would inherit SIG_IGN: Ctrl-C is for ssh.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with subprocess.Popen(arguments, stderr=subprocess.PIPE) as process:
            last, shown = showing(process)
            code = process.wait()
            shown()
    finally:
        signal.signal(signal.SIGINT, before)
    return exit_code(code), bytes(last)


def _which(call: Call, rank: int | None, one: Mapping[str, Any]) -> int:
    """The rank of the node to connect to: of several, 0 unless the user chooses."""
    nodes = int(one["node_count"])
    if rank is None:
        if nodes == 1 or not call.may_prompt():
            return 0
        names = [str(rank) for rank in range(nodes)]
        there = [*one["node_names"], *([""] * nodes)]
        lines = [f"rank {rank}  {there[rank]}  {one['status']}" for rank in range(nodes)]
        return choose("Which node", names, lines)
    if not 0 <= rank < nodes:
        call.wrong(f"reservation {one['id']} has ranks 0 to {nodes - 1}")
    return rank
