"""odcd token: make an API token for a user, who sends it over TCP."""

from __future__ import annotations

import argparse
import os
import pwd
import re
from argparse import Namespace
from datetime import timedelta

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import BadRequest
from odcd.records.job import Identity
from odcd.settings import find_home

MAX_HOURS = 24 * 365
MAX_ID = 2**31 - 1
USER = re.compile(r"^[A-Za-z_][A-Za-z0-9._-]{0,99}$")


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "token",
        "Create an API key for a user of this machine, or for any other user with --uid",
        "odcd token alice --uid 5001 --hours 8",
    )
    add_database(parser)
    parser.add_argument("user", metavar="USER")
    parser.add_argument(
        "--hours", type=_hours, default=2.0, metavar="N", help="hours until it expires; default 2"
    )
    parser.add_argument(
        "--uid",
        type=int,
        metavar="N",
        help="the user's uid; the user need not exist on this machine",
    )
    parser.add_argument(
        "--gid", type=int, metavar="N", help="the user's gid, with --uid; default the same number"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.audit.command import CommandAudit
    from odcd.clock import SystemClock
    from odcd.database.pool import Database
    from odcd.home.database_access import with_database
    from odcd.records.api_keys import new_key
    from odcd.stores.store import Store

    made = new_key()
    who = _who(args)

    facts = {"for_user": who.user, "for_uid": who.uid, "hours": args.hours, "key": made.prefix}
    audit = CommandAudit(os.environ, "odcd token", facts)

    async def keep(dsn: str) -> None:
        with audit.noting():
            async with Database(dsn, size=1) as database:
                life = timedelta(hours=args.hours)
                await Store(database).keys.create(who, made, SystemClock().now(), life)

    with_database(find_home(args.home, os.environ), args.dsn, keep)
    print(made.key)
    return 0


def _who(args: Namespace) -> Identity:
    if args.uid is not None:
        gid = args.uid if args.gid is None else args.gid
        if not 0 < args.uid < MAX_ID or not 0 < gid < MAX_ID:
            raise BadRequest(
                f"uid {args.uid} or gid {gid} is not valid for a user", f"Give 1 to {MAX_ID - 1}."
            )
        if not USER.match(args.user):
            raise BadRequest(
                f'"{args.user}" is not a valid user name',
                "Use letters, digits, dots, dashes and underscores.",
            )
        return Identity(user=args.user, uid=args.uid, gid=gid, operator=False)
    if args.gid is not None:
        raise BadRequest("--gid needs --uid", "Give --uid, too.")
    try:
        entry = pwd.getpwnam(args.user)
    except KeyError:
        raise BadRequest(
            f'user "{args.user}" does not exist on this machine',
            "`getent passwd` lists the users. Users unknown to this machine need --uid.",
        ) from None
    return Identity(user=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, operator=False)


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= MAX_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {MAX_HOURS}")
    return hours
