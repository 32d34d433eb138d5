"""Identify the caller: by the kernel on the Unix socket, by an API key over TCP."""

from __future__ import annotations

import asyncio
import pwd
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from odcd.api.http.clients import Version, check_client
from odcd.clock import Clock
from odcd.errors import NotAuthenticated, NotOwner, Unavailable
from odcd.front.peer import PEER, Peer
from odcd.records.api_keys import digest_of
from odcd.records.job import Identity
from odcd.runner.subuids import Subuids

NAMES_KEPT_S = 5.0
LOGIN_HINT = (
    "Log in with `odcctl login`, or give odcctl an API key in ODC_TOKEN (`odcd token` makes one); "
    "other clients send it as Authorization: Bearer KEY. On the daemon's machine use its socket."
)


class KeyStore(Protocol):
    async def get_owner(self, digest: str, now: datetime) -> tuple[str, int, int] | None: ...


class UserStore(Protocol):
    async def get_name(self, uid: int) -> str | None: ...


class Identifier:
    """operators: users with administrative rights, in addition to root and the daemon's own user.

    serves_uid: the only user of a daemon that does not run as root; None: it serves everyone.
    oldest_client: older versions of odcctl are refused.
    """

    def __init__(
        self,
        keys: KeyStore,
        users: UserStore,
        clock: Clock,
        *,
        own_uid: int,
        operators: frozenset[str],
        serves_uid: int | None,
        oldest_client: Version | None = None,
        subuids: Subuids | None = None,
    ) -> None:
        self._keys = keys
        self._users = users
        self._clock = clock
        self._own_uid = own_uid
        self._operators = operators
        self._serves_uid = serves_uid
        self._oldest_client = oldest_client
        self._subuids = subuids or Subuids()
        self._known: dict[Peer, tuple[float, Identity]] = {}

    async def identify(self, scope: Mapping[str, Any]) -> Identity:
        """Raises NotAuthenticated without a valid key, NotOwner for a user who is not served or a
        subordinate uid, ClientTooOld."""
        check_client(scope, self._oldest_client)
        peer: Peer | None = scope.get("state", {}).get(PEER)
        return await (self._of_key(scope) if peer is None else self._of_peer(peer))

    async def _of_peer(self, peer: Peer) -> Identity:
        who = await self._on_machine(peer)
        return who if who.user != str(peer.uid) else await self._as_member(who)

    async def _on_machine(self, peer: Peer) -> Identity:
        until, who = self._known.get(peer, (0.0, None))
        if who is None or until <= self._clock.monotonic():
            # The user database may be slow (LDAP).
            name = await asyncio.to_thread(self._name_of, peer.uid)
            who = self.admit(name, peer.uid, peer.gid)
            self._known[peer] = (self._clock.monotonic() + NAMES_KEPT_S, who)
        return who

    def _name_of(self, uid: int) -> str:
        """Raises NotOwner: subordinate uids would give one user the limits of many users."""
        name = _user_name(uid)
        if name == str(uid) and uid != self._own_uid:
            owner = self._subuids.user_of(uid)
            if owner != uid:
                user = _user_name(owner)
                raise NotOwner(
                    f"uid {uid} has no account of its own: it is a subordinate uid of {user}",
                    f"Submit as {user}.",
                )
        return name

    async def still(self, name: str, uid: int, gid: int) -> Identity | None:
        """The current identity of the user who had that name on the socket of this machine; None:
        the account is gone, or has another name. Raises NotOwner, Unavailable."""
        who = await self._on_machine(Peer(uid, gid))
        if who.user == str(uid):
            member = await self._users.get_name(uid)
            who = who if member is None else replace(who, user=member)
        return who if who.user == name else None

    async def _as_member(self, who: Identity) -> Identity:
        """Use the name in the accounts for a user unknown to this machine. The user's rights were
        decided before: a coordinator chose that name."""
        try:
            name = await self._users.get_name(who.uid)
        except Unavailable:
            return who
        return who if name is None else replace(who, user=name)

    async def _of_key(self, scope: Mapping[str, Any]) -> Identity:
        digest = key_of(scope)
        if digest is None:
            raise NotAuthenticated("the request carries no API key", LOGIN_HINT)
        return await self.of_key(digest, LOGIN_HINT)

    async def of_key(self, digest: str, hint: str) -> Identity:
        """The identity of the key with this digest. Raises NotAuthenticated with the hint,
        NotOwner."""
        owner = await self._keys.get_owner(digest, self._clock.now())
        if owner is None:
            raise NotAuthenticated("the API key is unknown or has expired", hint)
        return self.admit(*owner)

    def admit(self, name: str, uid: int, gid: int) -> Identity:
        """Raises NotOwner for a user who is not served."""
        if self._serves_uid not in (None, uid):
            raise NotOwner(
                f"this daemon belongs to {_user_name(self._own_uid)} and serves no one else",
                "Start one of your own with `odcd up`, or one for all users as root.",
            )
        operator = uid in (0, self._own_uid) or name in self._operators
        return Identity(user=name, uid=uid, gid=gid, operator=operator)


def key_of(scope: Mapping[str, Any]) -> str | None:
    """The digest of the request's API key; None: it has none."""
    if PEER in scope.get("state", {}):
        return None
    given = next((v for k, v in scope["headers"] if k == b"authorization"), b"")
    scheme, _, key = given.partition(b" ")
    return digest_of(key.strip()) if key and scheme.lower() == b"bearer" else None


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
