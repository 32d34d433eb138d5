"""odcctl cron: recurring jobs, as a table in the format of Slurm's scrontab."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from odcctl.cli import complete
from odcctl.cli.call import Call
from odcctl.cli.commands import Listing, new_app
from odcctl.commands import _cron_files as files
from odcctl.exits import DONE, Failure, Refused
from odcctl.http.client import Reply, target
from odcctl.text import render
from odcctl.text.prompts import agree

PATH = "/v1/cron"
EXAMPLE = "odcctl cron\nodcctl cron jobs.scrontab\nodcctl cron --status"
HEADER = ("LINE", "SCHEDULE", "NEXT", "LAST", "JOB", "RESULT", "COMMAND")
FAILING = "recurring jobs not changed"

app = new_app()


@app.command(cls=Listing, epilog=EXAMPLE)
def cron(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="replace the table by this file; -: standard input"),
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", "-e", help="edit the table with $VISUAL or $EDITOR")
    ] = False,
    show: Annotated[bool, typer.Option("--list", "-l", help="print the table")] = False,
    status: Annotated[
        bool,
        typer.Option("--status", "-s", help="show each entry: its next time and its last job"),
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", "-r", help="remove the table")] = False,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", metavar="NAME",
            help="the table of this user, for operators; with -l, -s or -r",
            autocompletion=complete.users,
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            "--zone", metavar="ZONE",
            help="the time zone of the table, such as Europe/Berlin; default: yours",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> int:  # fmt: skip
    """Run jobs at given times: edit, list or remove your recurring jobs.

    The table has the format of Slurm's scrontab: lines as of a crontab, and #SCRON lines with the
    options of submit for the next entry. Without a file or an option, it is edited at a terminal,
    and read from standard input otherwise. See docs/operating/recurring-jobs.md.
    """
    call = Call.of(ctx, failing=None if show or status else FAILING)
    call.exclude(edit=edit, list=show, status=status, remove=remove)
    reads = show or status or remove
    if file is not None and (reads or edit):
        call.wrong("give either a file or an option")
    if user is not None and not reads:
        call.wrong("a table can only be changed by its own user: use --user with -l, -s or -r")
    if zone is not None and reads:
        call.wrong("--zone is for a table that is set")
    if show or status:
        return _show(call, user, status=status)
    if remove:
        return _remove(call, user, yes=yes)
    if edit or (file is None and sys.stdin.isatty()):
        return _edit(call, zone)
    return _put(call, files.read(file or "-"), zone or files.local_zone())


def _show(call: Call, user: str | None, *, status: bool) -> int:
    reply = call.client().get(PATH, {"user": user})
    table = reply.json()
    if call.form == "json":
        call.put_reply(reply)
        return DONE
    _require(table)
    if not status:
        render.put(files.shown_text(table))
        return DONE
    rows = [_row(entry, table, reply.now_s) for entry in table["entries"]]
    return call.put_list(reply, (entry["line"] for entry in table["entries"]), HEADER, rows)


def _require(table: Mapping[str, Any]) -> None:
    if table["text"] is None:
        raise Failure(f"user {table['user']} has no recurring jobs")


def _row(entry: Mapping[str, Any], table: Mapping[str, Any], now_s: float) -> tuple[str, ...]:
    own = f" {entry['zone']}" if entry["zone"] != table["zone"] else ""
    cells = (
        str(entry["line"]), f"{entry['schedule']}{own}", _at(entry["next_at"], now_s),
        _at(entry["last_at"], now_s), str(entry["last_job_id"] or "-"), _result(entry),
        entry["command"],
    )  # fmt: skip
    return tuple(map(render.clean, cells))


def _at(at: str | None, now_s: float) -> str:
    return render.clock(at, now_s) if at else "-"


def _result(entry: Mapping[str, Any]) -> str:
    if entry["disabled_at"]:
        return f"disabled by {entry['disabled_by']}: {entry['disabled_why']}"
    if entry["last_why"]:
        return f"{entry['last_result']}: {entry['last_why']}"
    return entry["last_job_state"] or entry["last_result"] or "-"


def _remove(call: Call, user: str | None, *, yes: bool) -> int:
    client = call.client()
    table = client.get(PATH, {"user": user}).json()
    _require(table)
    if not yes:
        if not call.may_prompt():
            raise Failure(
                "removing recurring jobs requires confirmation, and standard input is not a "
                "terminal",
                "odcctl cron --remove --yes",
            )
        entries = _counted(table["entries"])
        if not agree(f"Remove all recurring jobs of {render.clean(table['user'])}, {entries}?"):
            raise Failure("you did not confirm")
    reply = client.delete(target(PATH, {"user": user}))
    return call.put_outcome(reply, "removed", "recurring jobs removed; running jobs continue")


def _edit(call: Call, zone: str | None) -> int:
    table = call.client().get(PATH).json()
    before = files.NEW if table["text"] is None else files.shown_text(table)
    chosen: str = zone or table["zone"] or files.local_zone()
    draft = files.Draft(before)
    done = False
    try:
        while True:
            text = draft.edit()
            if text == before and chosen == table["zone"]:
                done = True
                render.note("odcctl: no changes")
                return DONE
            try:
                code = _put(call, text, chosen)
            except Refused as error:
                if not call.may_prompt():
                    raise
                call.complain(error, FAILING)
                if not agree("Edit it again?", default=True):
                    raise Failure("your text was not accepted") from None
                continue
            done = True
            return code
    finally:
        if done:
            draft.remove()
        else:
            render.note(f"odcctl: your text is in {draft.path}")


def _put(call: Call, text: str, zone: str) -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    home = os.path.expanduser("~")
    body = {
        "text": text, "zone": zone, "work_dir": home if home.startswith("/") else "/",
        "umask": mask & 0o777, "submit_host": os.uname().nodename,
    }  # fmt: skip
    try:
        reply = call.client().put(PATH, body)
    except Refused as error:
        raise _with_faults(error) from None
    table = reply.json()
    if call.form == "table":
        for warning in table["warnings"]:
            render.note(f"odcctl: {render.clean(warning)}")
    return call.put_outcome(reply, str(len(table["entries"])), _sentence(table, reply))


def _with_faults(error: Refused) -> Refused:
    """With each fault on a line of its own."""
    faults: list[dict[str, Any]] = error.problem.get("faults") or []
    if len(faults) > 1:
        error.message = f"the table has {len(faults)} errors"
        lines: list[str] = []
        hints: set[str] = set()
        for fault in faults:
            lines.append(fault["message"])
            if fault["hint"] and fault["hint"] not in hints:
                lines.append(f"  {fault['hint']}")
                hints.add(fault["hint"])
        error.hint = "\n".join(lines)
    return error


def _counted(entries: Sequence[object]) -> str:
    return f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"


def _sentence(table: Mapping[str, Any], reply: Reply) -> str:
    entries = table["entries"]
    counted = _counted(entries)
    due = min(
        ((entry["next_at"], entry["line"]) for entry in entries if entry["next_at"]), default=None
    )
    if due is None:
        return f"table of recurring jobs stored: {counted}"
    at, line = due
    return (
        f"table of recurring jobs stored: {counted}, times of {table['zone']}; "
        f"next: line {line} at {render.clock(at, reply.now_s)}"
    )
