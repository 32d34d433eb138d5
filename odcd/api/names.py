"""Refuse unknown user names: a list that is empty only because of one would mislead."""

from __future__ import annotations

import asyncio
import pwd
from collections.abc import Iterable

from odcd.api.http.context import Api
from odcd.api.http.routing import Call


async def refuse_unknown_users(api: Api, call: Call, names: Iterable[str]) -> None:
    """Raise UnknownUser for the first name that neither this machine, a login nor an account
    has."""
    for name in names:
        # The user database may be slow (LDAP).
        if name == call.who.user or await asyncio.to_thread(_on_machine, name):
            continue
        if not await api.store.logins.has_logged_in(name):
            await api.store.users.list(name)


def _on_machine(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):
        return False
    return True
