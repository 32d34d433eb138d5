"""Names that nobody has: what is empty for such a name alone is refused, not shown as empty."""

from __future__ import annotations

import asyncio
import pwd
from collections.abc import Iterable

from odcd.api.http.context import Api
from odcd.api.http.routing import Call


async def refuse_unknown_users(api: Api, call: Call, names: Iterable[str]) -> None:
    """Raises UnknownUser for the first that neither this machine, a login nor the accounts know."""
    for name in names:
        # The user database may be far away (LDAP).
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
