"""Count the connections of each client, and decide whether another one is admitted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from odcd.front.near import Origin
from odcd.front.peer import Peer
from odcd.front.proxies import Proxies, network_of
from odcd.front.settings import FrontSettings
from odcd.front.watch import Refused, Watch
from odcd.home.descriptors import for_connections
from odcd.runner.subuids import Subuids


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    all: int
    """For all clients together. A sixteenth is reserved for root and the daemon's own user."""
    tcp: int
    """For TCP as a whole: a quarter is left for the Unix socket."""
    per_user: int
    per_address: int

    @property
    def common(self) -> int:
        return self.all - max(1, self.all // 16)


def limits_of(settings: FrontSettings) -> Limits:
    """The limits from the settings, reduced to the file descriptors that this process may have."""
    connections = min(settings.connections, for_connections())
    # No single client may use all connections, even if the settings allow it.
    share = max(1, connections // 2)
    return Limits(
        all=connections,
        tcp=max(1, connections * 3 // 4),
        per_user=min(settings.per_user, share),
        per_address=min(settings.per_address, share),
    )


class Crowd:
    """own_uid: the daemon's. Over the Unix socket, connections of it and root count only toward the
    total. Over TCP they count like those of any user: root's may be those of a proxy."""

    def __init__(
        self,
        limits: Limits,
        proxies: Proxies,
        watch: Watch,
        own_uid: int,
        subuids: Subuids | None = None,
    ) -> None:
        """subuids: connections from all of a user's subordinate uids are counted together."""
        self._limits = limits
        self._proxies = proxies
        self._watch = watch
        self._subuids = subuids or Subuids()
        self._trusted_uids = frozenset({0, own_uid})
        self._clients: Counter[int | str] = Counter()
        self._tcp = 0
        self._all = 0

    def enter(
        self, peer: Peer | None, address: str, origin: Origin | None = None
    ) -> Entry | Refused:
        """Admit one more connection, or return why it is refused. address, origin: of a TCP
        connection."""
        client = self._client(peer, address, origin)
        refused = self._refusal(peer, client, address)
        if refused is not None:
            self._watch.connection_refused(refused, address if peer is None else peer.uid)
            return refused
        self._count(client, peer is None, 1)
        return Entry(self, client, tcp=peer is None)

    def _client(self, peer: Peer | None, address: str, origin: Origin | None) -> int | str:
        """The client that the connection counts for: a user of this machine, also over TCP, or an
        address. Users of this machine share its addresses, so they are counted by uid."""
        if peer is not None:
            return self._subuids.owner_of(peer.uid)
        uid = None if origin is None else origin.uid
        if uid is None or self._proxies.trusts(address):
            return network_of(address)
        return self._subuids.owner_of(uid)

    def _refusal(self, peer: Peer | None, client: int | str, address: str) -> Refused | None:
        limits = self._limits
        if peer is not None and peer.uid in self._trusted_uids:
            return "all" if self._all >= limits.all else None
        if isinstance(client, int):
            if self._clients[client] >= limits.per_user:
                return "user"
        elif self._clients[client] >= limits.per_address and not self._proxies.trusts(address):
            return "address"
        if peer is None and self._tcp >= limits.tcp:
            return "tcp"
        return "all" if self._all >= limits.common else None

    def leave(self, entry: Entry) -> None:
        self._count(entry.client, entry.tcp, -1)

    def _count(self, client: int | str, tcp: bool, change: int) -> None:
        self._all += change
        self._tcp += change if tcp else 0
        self._clients[client] += change
        if not self._clients[client]:
            del self._clients[client]
        self._watch.connected(change)


class Entry:
    """A counted connection; leave() stops counting it. Further calls do nothing."""

    def __init__(self, crowd: Crowd, client: int | str, *, tcp: bool) -> None:
        self.client = client
        self.tcp = tcp
        self._crowd: Crowd | None = crowd

    def leave(self) -> None:
        crowd, self._crowd = self._crowd, None
        if crowd is not None:
            crowd.leave(self)
