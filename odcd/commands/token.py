"""odcd token: make an API token for a user, who sends it over TCP."""

from __future__ import annotations

import os
import pwd
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import click
import typer

from odcctl.cli.plain import new_app
from odcctl.text.durations import seconds_of
from odcd.cli.params import Command, DatabaseHome, Dsn, accounts, locate_database
from odcd.errors import BadRequest

if TYPE_CHECKING:
    from odcd.records.job import Identity

MAX_HOURS = 24 * 365
MAX_ID = 2**31 - 1
USER = re.compile(r"^[A-Za-z_][A-Za-z0-9._-]{0,99}$")

app = new_app()


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


@app.command(cls=Command, epilog="odcd token alice --uid 5001 --hours 8")
def token(
    user: Annotated[
        str, typer.Argument(metavar="USER", help="the user's name", autocompletion=accounts)
    ],
    home: DatabaseHome = None,
    dsn: Dsn = None,
    hours: Annotated[
        float,
        typer.Option(
            "--hours", metavar="N", parser=read_hours,
            show_default=False,
            help="how long the token is valid: hours, or a time as 90m or 1-0; default 2",
        ),
    ] = 2.0,
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
    """Create an API key for a user of this machine, or for any other user with --uid."""
    from odcd.audit.command import CommandAudit
    from odcd.clock import SystemClock
    from odcd.database.pool import Database
    from odcd.home.database_access import with_database
    from odcd.records.api_keys import new_key
    from odcd.stores.store import Store

    made = new_key()
    who = _identify(user, uid, gid)

    facts = {"for_user": who.user, "for_uid": who.uid, "hours": hours, "key": made.prefix}
    audit = CommandAudit(os.environ, "odcd token", facts)

    async def keep(dsn: str) -> None:
        with audit.noting():
            async with Database(dsn, size=1) as database:
                life = timedelta(hours=hours)
                await Store(database).keys.create(who, made, SystemClock().now(), life)

    with_database(*locate_database(home, dsn), keep)
    print(made.key)
    return 0


def _identify(user: str, uid: int | None, gid: int | None) -> Identity:
    from odcd.records.job import Identity

    if uid is not None:
        gid = uid if gid is None else gid
        if not 0 < uid < MAX_ID or not 0 < gid < MAX_ID:
            raise BadRequest(
                f"uid {uid} or gid {gid} is not valid for a user", f"Give 1 to {MAX_ID - 1}."
            )
        if not USER.match(user):
            raise BadRequest(
                f'"{user}" is not a valid user name',
                "Use letters, digits, dots, dashes and underscores.",
            )
        return Identity(user=user, uid=uid, gid=gid, operator=False)
    if gid is not None:
        raise BadRequest("--gid needs --uid", "Give --uid, too.")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise BadRequest(
            f'user "{user}" does not exist on this machine',
            "`getent passwd` lists the users. Users unknown to this machine need --uid.",
        ) from None
    return Identity(user=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, operator=False)
