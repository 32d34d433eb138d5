"""odcd token: make an API token for a user, who sends it over TCP."""

from __future__ import annotations

import argparse
import hashlib
import os
import pwd
import secrets
from argparse import Namespace
from datetime import timedelta

from odcd.commands import Subparsers, add_database, describe
from odcd.errors import BadRequest
from odcd.settings import find_home

MAX_HOURS = 24 * 365


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "token",
        "Make an API token for a user of this machine",
        "odcd token alice --hours 8",
    )
    add_database(parser)
    parser.add_argument("user", metavar="USER")
    parser.add_argument(
        "--hours", type=_hours, default=2.0, metavar="N", help="how long it lives; default 2"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.clock import SystemClock
    from odcd.db import Database
    from odcd.model import Identity
    from odcd.reach import with_database
    from odcd.store import Store

    try:
        entry = pwd.getpwnam(args.user)
    except KeyError:
        raise BadRequest(f'no user "{args.user}" on this machine', "See: getent passwd") from None
    key = f"odc_{secrets.token_urlsafe(32)}"
    who = Identity(user=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, operator=False)

    async def keep(dsn: str) -> None:
        digest = hashlib.sha256(key.encode()).hexdigest()
        async with Database(dsn, size=1) as database:
            life = timedelta(hours=args.hours)
            await Store(database).keep_key(who, digest, SystemClock().now(), life)

    with_database(find_home(args.home, os.environ), args.dsn, keep)
    print(key)
    return 0


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours <= MAX_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not more than 0 and at most {MAX_HOURS}")
    return hours
