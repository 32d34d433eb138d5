"""The user of a new API key: a name and a uid that belong together."""

from __future__ import annotations

import pwd
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import click

from odcd.errors import BadRequest, OdcError
from odcd.records.fields import shown
from odcd.records.job import Identity

MAX_ID = 2**31 - 1
USER = re.compile(r"^[A-Za-z_][A-Za-z0-9._-]{0,99}$")


def identify(user: str, uid: int | None, gid: int | None) -> Identity:
    """Raises BadRequest for a user that does not exist, and for a name with another uid here."""
    if uid is not None:
        return _given(user, uid, uid if gid is None else gid)
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


def _given(user: str, uid: int, gid: int) -> Identity:
    if not 0 < uid < MAX_ID or not 0 < gid < MAX_ID:
        raise BadRequest(
            f"uid {uid} or gid {gid} is not valid for a user", f"Give 1 to {MAX_ID - 1}."
        )
    if not USER.match(user):
        raise BadRequest(
            f'"{user}" is not a valid user name',
            "Use letters, digits, dots, dashes and underscores.",
        )
    with suppress(KeyError):
        here = pwd.getpwnam(user).pw_uid
        if here != uid:
            raise BadRequest(
                f"user {user} has uid {here} on this machine, not {uid}",
                "Leave out --uid, or give another name.",
            )
    with suppress(KeyError):
        # Not an error: in a container, the machine's users are not those of the cluster.
        name = pwd.getpwuid(uid).pw_name
        if name != user:
            click.echo(shown(f"odcd: warning: uid {uid} is user {name} on this machine"), err=True)
    return Identity(user=user, uid=uid, gid=gid, operator=False)


def check_owner(who: Identity, keys: Iterable[Mapping[str, Any]]) -> None:
    """keys: all valid ones. Raises OdcError if one has the name with another uid, or the uid with
    another name."""
    for key in keys:
        if (key["user"] == who.user) != (key["uid"] == who.uid):
            raise OdcError(
                f"user {who.user} with uid {who.uid} conflicts with a valid key of user "
                f"{key['user']} with uid {key['uid']}",
                f"Give the right uid, or end that key first: odcd token revoke --user "
                f"{key['user']}",
            )
