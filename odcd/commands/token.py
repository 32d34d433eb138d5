"""odcd token: create, list and revoke API keys, which users send over TCP."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import click
import typer
from click.shell_completion import CompletionItem

from odcctl.cli.plain import PlainGroup, new_app
from odcctl.text.durations import seconds_of
from odcctl.text.render import counted
from odcd.cli.params import (
    Command,
    DatabaseHome,
    Dsn,
    accounts,
    environment_of,
    locate_database,
)
from odcd.errors import BadRequest, OdcError
from odcd.records.fields import shown

if TYPE_CHECKING:
    from odcd.records.job import Identity
    from odcd.stores.keys import KeyStore

MAX_HOURS = 24 * 365
DEFAULT_HOURS = 2.0
PREFIX = re.compile(r"^(?:odc_)?([A-Za-z0-9_-]{4,8})[A-Za-z0-9_-]{0,200}$")
HEADER = ("PREFIX", "USER", "UID", "CREATED", "LAST USED", "EXPIRES", "PAGE SESSIONS")


class TokenGroup(PlainGroup):
    """`odcd token USER` is `odcd token create USER`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = {*self.commands, "-h", "--help"}
        if args and args[0] not in words and not ctx.resilient_parsing:
            args = ["create", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        users = [CompletionItem(name) for name in accounts() if name.startswith(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *users]


app = new_app(TokenGroup, "Create, list and revoke the API keys of users.")


def read_hours(text: str) -> float:
    """A number of hours, or a duration that is not a bare number, as `odcctl reserve -h` has it."""
    try:
        hours = float(text)
    except ValueError:
        hours = (seconds_of(text) or 0) / 3600
    if not 0 < hours <= MAX_HOURS:
        raise click.BadParameter(
            f'takes a number of hours above 0 and up to {MAX_HOURS}, as 8, 90m or 1-0, not "{text}"'
        )
    return hours


def read_expiry(text: str) -> float:
    """Hours; a bare number would be ambiguous."""
    hours = 0.0 if text.isdecimal() else (seconds_of(text) or 0) / 3600
    if not 0 < hours <= MAX_HOURS:
        raise click.BadParameter(f'takes a time up to 365d with its unit, as 90d, not "{text}"')
    return hours


@app.command(cls=Command, epilog="odcd token create alice --uid 5001 --expires 90d")
def create(
    user: Annotated[
        str, typer.Argument(metavar="USER", help="the user's name", autocompletion=accounts)
    ],
    home: DatabaseHome = None,
    dsn: Dsn = None,
    expires: Annotated[
        float | None,
        typer.Option(
            "--expires", metavar="TIME", parser=read_expiry,
            help="how long the key is valid, as 90d, 8h or 2w; at most 365d; default 2h",
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours", metavar="N", parser=read_hours,
            help="the same in hours, or a time as 90m or 1-0",
        ),
    ] = None,
    uid: Annotated[
        int | None,
        typer.Option(
            "--uid", metavar="N", help="the user's id; the user need not be one of this machine"
        ),
    ] = None,
    gid: Annotated[
        int | None,
        typer.Option(
            "--gid", metavar="N", help="the user's gid, with --uid; default the same number"
        ),
    ] = None,
) -> int:  # fmt: skip
    """Create an API key for a user of this machine, or for any other user with --uid.

    `odcd token USER` does the same.
    """
    from odcd.clock import SystemClock
    from odcd.commands._token_owner import check_owner, identify
    from odcd.records.api_keys import new_key

    if expires is not None and hours is not None:
        raise BadRequest("--expires and --hours exclude each other", "Give one of them.")
    valid = expires or hours or DEFAULT_HOURS
    made = new_key()
    who = identify(user, uid, gid)
    facts = {"for_user": who.user, "for_uid": who.uid, "hours": valid, "key": made.prefix}
    life = timedelta(hours=valid)

    async def keep(keys: KeyStore) -> None:
        now = SystemClock().now()
        check_owner(who, json.loads(await keys.list_valid(None, now)))
        await keys.create(who, made, now, life)

    _with_keys(home, dsn, keep, audit=("odcd token", facts))
    print(made.key)
    return 0


@app.command("list", cls=Command, epilog="odcd token list --user alice")
def list_keys(
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="only this user's keys", autocompletion=accounts
        ),
    ] = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> int:  # fmt: skip
    """Print the valid keys by their first characters; the keys themselves are not stored."""
    from odcd.clock import SystemClock

    async def read(keys: KeyStore) -> str:
        return await keys.list_valid(user, SystemClock().now())

    keys = json.loads(_with_keys(home, dsn, read))
    if as_json:
        json.dump({"keys": keys}, sys.stdout, indent=2)
        print()
        return 0
    if not keys:
        print("no valid keys" if user is None else shown(f"{user} has no valid keys"))
        return 0
    rows = [
        (
            # A prefix may begin with "-".
            f"odc_{key['prefix']}" if key["prefix"] else "-", key["user"], str(key["uid"]),
            _minute(key["made_at"]), _minute(key["last_used_at"]), _minute(key["expires_at"]),
            str(key["page_sessions"]),
        )
        for key in keys
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    for row in (HEADER, *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        print(shown("  ".join(cells).rstrip()))
    return 0


@app.command(cls=Command, epilog="odcd token revoke Zk3x9_Qa")
def revoke(
    prefix: Annotated[
        str | None,
        typer.Argument(metavar="[PREFIX]", help="the key, as `odcd token list` prints it"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="all keys and page sessions of a user",
            autocompletion=accounts,
        ),
    ] = None,
    home: DatabaseHome = None,
    dsn: Dsn = None,
) -> int:  # fmt: skip
    """End a key at once, with the page sessions that were opened with it; or all of a user.

    Running jobs continue. A user who may log in can do so again.
    """
    from odcd.clock import SystemClock

    if (prefix is None) == (user is None):
        raise BadRequest("give a PREFIX or --user USER", "List the keys: odcd token list.")
    begin = PREFIX.match(prefix or "")
    if prefix is not None and begin is None:
        raise BadRequest(
            "PREFIX is not the beginning of a key: at least 4 of its characters are needed",
            "List the keys: odcd token list.",
        )
    who = _operator()
    facts = {"key": begin[1]} if begin else {"for_user": user}

    async def end(keys: KeyStore) -> str:
        now = SystemClock().now()
        if begin is not None:
            return await keys.revoke(who, begin[1], now)
        return await keys.end_all(who, str(user), now)

    ended = json.loads(_with_keys(home, dsn, end, audit=("odcd token revoke", facts)))
    if begin is not None:
        print(shown(f"ended key {ended['prefix']} of {ended['user']}"))
        return 0
    count, sessions = ended["keys"], ended["page_sessions"]
    if not count and not sessions:
        raise OdcError(
            f"user {user} has no valid keys and no page sessions", "List the keys: odcd token list."
        )
    ended_keys, ended_sessions = counted(count, "key"), counted(sessions, "page session")
    print(shown(f"ended {ended_keys} and {ended_sessions} of {user}"))
    return 0


def _with_keys(
    home: str | None,
    dsn: str | None,
    work: Callable[[KeyStore], Awaitable[str | None]],
    audit: tuple[str, Mapping[str, object]] | None = None,
) -> str:
    """Work on the keys of a database. audit: the command and its facts, if it changes them."""
    from contextlib import nullcontext

    from odcd.audit.command import CommandAudit
    from odcd.database.pool import Database
    from odcd.home.database_access import with_database
    from odcd.stores.store import Store

    log = CommandAudit(environment_of(home), *audit) if audit is not None else None

    async def call(dsn: str) -> str:
        with log.noting() if log is not None else nullcontext():
            async with Database(dsn, size=1) as database:
                return await work(Store(database).keys) or ""

    return with_database(*locate_database(home, dsn), call, of=str)


def _operator() -> Identity:
    """An account that may log in to the database is an operator."""
    from odcd.home.account import name_of
    from odcd.records.job import Identity

    uid = os.getuid()
    return Identity(user=name_of(uid), uid=uid, gid=os.getgid(), operator=True)


def _minute(text: str | None) -> str:
    return f"{text[:10]} {text[11:16]}" if text else "-"
