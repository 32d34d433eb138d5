"""odcctl connect: into a reservation that is active; of any other, what it is."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from odcctl.exits import DONE, Failure, Unreachable
from odcctl.http.client import Client
from odcctl.options import Arguments, Command, Option
from odcctl.reservations.errors import denied, dropped, not_now
from odcctl.reservations.lookup import message, named_or_only
from odcctl.text.prompts import choose, on_terminal
from odcctl.text.render import note, when


def run(arguments: Arguments) -> int:
    if arguments.form != "table":
        arguments.command.wrong("a terminal has no other form")
    port = arguments.number("port")
    if port is not None and not (arguments.flag("jupyter") and 0 < port < 65_536):
        arguments.command.wrong("--port is that of --jupyter here, 1 to 65535")
    if arguments.flag("forward-agent") and arguments.flag("no-forward-agent"):
        arguments.command.wrong("--forward-agent and --no-forward-agent contradict each other")
    if arguments.flag("jupyter") and arguments.number("rank"):
        arguments.command.wrong("Jupyter Lab is in the first node, rank 0")
    client = Client.of(arguments)
    chosen = named_or_only(client, arguments, ("active",))
    # The list may be a minute old when the user chooses from it.
    reply = client.get(f"/v1/reservations/{chosen['id']}")
    one: dict[str, Any] = reply.json()
    if one["status"] != "active" or not one.get("connect"):
        raise not_now(client, one, reply.now_s)
    if arguments.flag("jupyter"):
        from odcctl.reservations import jupyter

        return jupyter.open_here(client, one, arguments.number("port"))
    if one["connect"] == "ssh":
        return _ssh(client, one, _which(client, arguments, one), _agent(arguments))
    if arguments.number("rank"):
        arguments.command.wrong("--rank is of reservations that ssh reaches")
    return _terminal(client, one)


def _terminal(client: Client, one: Mapping[str, Any]) -> int:
    if not sys.stdin.isatty():
        # A shell that ends there is followed by another: the end of input would end nothing.
        raise Failure(
            "standard input is not a terminal",
            "A command that needs none runs as a job: odcctl run --gpus 1 COMMAND",
        )
    from odcctl.terminal import DETACH_KEYS, Detached, attach

    number, until = one["id"], when(one.get("expires_at"))
    told = f"odcctl: connected to reservation {number} until {until}; {DETACH_KEYS} leaves it"
    try:
        code = attach(client, str(number), lambda: note(told))
    except Detached:
        note(
            f"\nodcctl: left; reservation {number} goes on until {until}\n"
            f"  Back to it: odcctl connect {number}"
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


def _agent(arguments: Arguments) -> bool | None:
    if arguments.flag("forward-agent"):
        return True
    return False if arguments.flag("no-forward-agent") else None


def _ssh(client: Client, one: Mapping[str, Any], rank: int, agent: bool | None) -> int:
    """With ssh's own exit code. It runs what is written here; nothing of it is the daemon's."""
    import shutil

    from odcctl.ssh import host_files as ssh
    from odcctl.ssh.process import SSH_FAILED

    if shutil.which("ssh") is None:
        raise Failure("there is no ssh on this machine", "OpenSSH's client is what it takes.")
    number = int(one["id"])
    ssh.write(client, one)
    if agent is None and ssh.shared(one):
        note("odcctl: others may enter this dev server, so your SSH agent is not forwarded;")
        note("  --forward-agent forwards it: whoever enters can use its keys meanwhile")
    code, told = _run_ssh(ssh.command(client, one, rank, agent=agent))
    if code != SSH_FAILED:
        return code
    if b"Permission denied (" in told:
        raise denied(one)
    gone = dropped(client, number)
    if not isinstance(gone, Unreachable):
        ssh.remove(client, [number])
    raise gone


def _run_ssh(words: Sequence[str]) -> tuple[int, bytes]:
    """Its exit code, and the end of its standard error, which is shown as it arrives."""
    import subprocess

    from odcctl.ssh.process import exit_code, showing

    # A handler, since what is ignored would be ignored by ssh, too: the keys are ssh's.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
            last, shown = showing(process)
            code = process.wait()
            shown()
    finally:
        signal.signal(signal.SIGINT, before)
    return exit_code(code), bytes(last)


def _which(client: Client, arguments: Arguments, one: Mapping[str, Any]) -> int:
    """The rank of the member that is meant: of several, 0 unless somebody chooses."""
    nodes = int(one["node_count"])
    rank = arguments.number("rank")
    if rank is None:
        if nodes == 1 or not on_terminal(arguments):
            return 0
        names = [str(rank) for rank in range(nodes)]
        there = [*one["node_names"], *([""] * nodes)]
        lines = [f"rank {rank}  {there[rank]}  {one['status']}" for rank in range(nodes)]
        return choose("Which node", names, lines)
    if not 0 <= rank < nodes:
        arguments.command.wrong(f"reservation {one['id']} has ranks 0 to {nodes - 1}")
    return rank


COMMAND = Command(
    name="connect",
    summary="Use a reservation that is active",
    usage="connect [ID] [--rank N | --jupyter [--port N]]",
    words=(0, 1),
    takes_jobs=True,
    notes=(
        "ID is that of the reservation, the start of it, or its name. Without one it is the only "
        "active reservation, or on a terminal one chosen from several. Ctrl-] d leaves its "
        "terminal, and it goes on; several may be connected at once. Exits as attach does. Where "
        "ssh reaches it, ssh runs, and its exit code is this one's; your SSH agent is forwarded "
        "unless other users may enter or `odcctl config set forward_agent off` was run. On a "
        "terminal one of several nodes is chosen, elsewhere rank 0 is meant. --jupyter leads a "
        "port of this machine to its Jupyter Lab, over the daemon's own port, and prints the link, "
        "until Ctrl-C."
    ),
    options=(
        Option("rank", None, "N", "which of its nodes; 0 is the first"),
        Option("forward-agent", None, None, "forward your SSH agent, even where others may enter"),
        Option("no-forward-agent", None, None, "do not forward it"),
        Option("jupyter", None, None, "open its Jupyter Lab in a browser here, not a shell"),
        Option("port", None, "N", "of this machine for --jupyter; 8888, or a free one"),
    ),
    example="odcctl connect\nodcctl connect 12\nodcctl connect 12 --jupyter",
    run=run,
    what="not connected",
)
