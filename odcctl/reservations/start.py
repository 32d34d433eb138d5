"""Create the reservation, once, and follow its start; a user who interrupts sees its state."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from odcctl.cli.call import Call
from odcctl.exits import DONE, REFUSED, Failure
from odcctl.http.client import Client, target
from odcctl.reservations.describe import (
    gpus,
    how_to_connect,
    left,
    message,
    standing,
    status,
    storage,
)
from odcctl.reservations.errors import not_started
from odcctl.reservations.progress import Progress, follow
from odcctl.reservations.request import Options, body_of
from odcctl.text import render
from odcctl.text.hostlist import fold
from odcctl.text.prompts import agree

PATH = "/v1/reservations"


def preview(call: Call, request: Mapping[str, Any]) -> int:
    reply = call.client().post(target(PATH, {"dry_run": "true"}), body_of(request))
    if call.form == "json":
        call.put_reply(reply)
    else:
        render.note(f"odcctl: {render.local_moments(reply.json()['text'])}")
    return DONE


def make(
    client: Client, request: Mapping[str, Any], *, verbose: bool
) -> tuple[dict[str, Any] | None, bool]:
    """Create the reservation, exactly once; return it, and whether Ctrl-C was pressed meanwhile.

    The first Ctrl-C waits for the answer, which shows whether there is a reservation. The second
    does not wait: the reservation is then None.
    """
    body, interrupted = body_of(request), False

    def note_interrupt(number: int, frame: object) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        os.write(2, b"\nodcctl: waiting for the answer; press Ctrl-C again to stop waiting\n")

    if verbose:
        text = json.dumps(body, ensure_ascii=False)
        render.note(f"odcctl: POST {PATH} to {client.addresses[0]}: {text}")
    before = signal.signal(signal.SIGINT, note_interrupt)
    try:
        made: dict[str, Any] = client.post_once(PATH, body).json()
    except KeyboardInterrupt:
        render.note(
            "odcctl: interrupted before the daemon answered; `odcctl list` shows whether it was "
            "reserved"
        )
        return None, True
    finally:
        signal.signal(signal.SIGINT, before)
    return made, interrupted


def follow_start(call: Call, options: Options, made: dict[str, Any]) -> int:
    if not options.waits:
        return _print_created(call, made)
    client, progress = call.client(), Progress(verbose=options.verbose)
    try:
        reply = follow(client, made["id"], progress)
    finally:
        progress.clear()
    one, now_s = reply.json(), reply.now_s
    if one.get("connect") == "ssh":
        _configure_ssh(client, one, interactive=options.interactive)
    if call.form == "json":
        call.put_reply(reply)
    elif call.form == "quiet":
        render.put(f"{one['id']}\n")
    elif one["status"] == "active":
        render.put(_way_in(one, now_s))
    if options.trace and call.form == "table":
        render.put(_trace(one))
    if one["status"] == "active":
        return DONE
    call.complain(not_started(one, now_s))
    return REFUSED


def _configure_ssh(client: Client, one: Mapping[str, Any], *, interactive: bool) -> None:
    """Write the reservation's ssh configuration; ask once whether to include such files."""
    from odcctl.ssh import host_files as ssh

    ssh.keep_up(client, one)
    if ssh.included() is None and interactive:
        host = ssh.host_of(one["id"])
        render.note(f"With one line in ~/.ssh/config and ~/.cursor/ssh_config, `ssh {host}` works.")
        ssh.include(agree("Add it? VS Code and Cursor then find it, too", default=True))


def _print_created(call: Call, made: dict[str, Any]) -> int:
    if call.form == "json":
        render.put_json(made)
    elif call.form == "quiet":
        render.put(f"{made['id']}\n")
    else:
        render.put(f"reservation {made['id']} is {status(made)}: {gpus(made)}\n")
        if made.get("disk_state") == "busy":
            render.note(f"odcctl: {message(made, time.time())}")
        render.note(f"odcctl: `odcctl show {made['id']}` shows its progress")
    return DONE


def _way_in(one: Mapping[str, Any], now_s: float) -> str:
    pairs = [
        *how_to_connect(one),
        ("storage", storage(one)),
        ("nodes", fold(one.get("node_names") or ())),
        ("expires", f"{render.when(one.get('expires_at'))} (in {left(one, now_s)})"),
        ("extend", f"odcctl extend {one['id']} -h HOURS"),
    ]
    return render.block(f"reservation {one['id']} is active: {gpus(one)}", pairs)


def _trace(one: Mapping[str, Any]) -> str:
    """How long each phase took, a line each."""
    rows = [
        [f"  {phase['phase'].replace('_', ' ')}", render.when(phase["at"]), _took(phase["took_s"])]
        for phase in one.get("phases") or ()
    ]
    return render.table(("  PHASE", "SINCE", "TOOK"), rows)


def _took(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 60 else render.duration(seconds)


def report_interrupted(client: Client, made: Mapping[str, Any]) -> None:
    """Report after an interrupt that the reservation continues."""
    number = made["id"]
    try:
        reply = client.get(f"{PATH}/{number}")
        where = standing(reply.json(), reply.now_s)
    except Failure:
        where = made["status"]
    render.note(
        f"odcctl: reservation {number} continues without this command: it is {where}\n"
        f"  Show it:    odcctl show {number}\n  Cancel it:  odcctl cancel {number}"
    )
