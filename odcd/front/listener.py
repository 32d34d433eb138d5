"""Accept connections, count them before anything else, and start TLS.

The event loop's own server would accept any number of connections, and reports each only after its
TLS handshake.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from odcd.front.answers import TOO_MANY
from odcd.front.crowd import Crowd, Entry
from odcd.front.near import Origin, origin_of
from odcd.front.peer import Peer, peer_of
from odcd.front.tls import Certificate
from odcd.front.watch import Watch
from odcd.home.descriptors import ran_out

log = logging.getLogger(__name__)

AT_ONCE = 8
"""The number of connections accepted before other work gets a turn. Each costs up to 0.5 ms."""
PAUSE_S = 0.2
SHORT = frozenset({errno.ENOBUFS, errno.ENOMEM})
NewProtocol = Callable[[Peer | None, Origin | None], asyncio.Protocol]


class CountedSocket(socket.socket):
    """A connection that is counted until its descriptor is released: asyncio closes its sockets,
    uvloop detaches them."""

    entry: Entry | None = None

    def close(self) -> None:
        self._leave()
        super().close()

    def detach(self) -> int:
        self._leave()
        return super().detach()

    def _leave(self) -> None:
        if self.entry is not None:
            self.entry.leave()


class Listener:
    """One listening socket; close() and wait_closed() work like those of asyncio's servers."""

    def __init__(
        self, listener: socket.socket, crowd: Crowd, new_protocol: NewProtocol, watch: Watch,
        *, certificate: Certificate | None, handshake_s: float,
    ) -> None:  # fmt: skip
        self._listener = listener
        self._crowd = crowd
        self._new_protocol = new_protocol
        self._watch = watch
        self._certificate = certificate
        self._handshake_s = handshake_s
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()
        else:
            self._loop.remove_reader(self._listener.fileno())
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not ran_out(error) and error.errno not in SHORT:
                    raise
                # Waiting clients stay in the backlog.
                self._watch.connection_refused("descriptors")
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(PAUSE_S, self._listen)
                return
            self._take(accepted, address)

    def _take(self, accepted: socket.socket, address: object) -> None:
        try:
            peer, origin = peer_of(accepted), origin_of(accepted)
            place = str(address[0]) if isinstance(address, tuple) else ""
            entry = self._crowd.enter(peer, place, origin)
        except OSError:
            accepted.close()
            return
        if not isinstance(entry, Entry):
            self._turn_away(accepted)
            return
        connection = CountedSocket(
            accepted.family, accepted.type, accepted.proto, fileno=accepted.detach()
        )
        connection.entry = entry
        connection.setblocking(False)
        task = self._loop.create_task(self._begin(connection, peer, origin))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _turn_away(self, accepted: socket.socket) -> None:
        with accepted:
            if self._certificate is None:
                try:
                    accepted.setblocking(False)
                    accepted.send(TOO_MANY)
                except OSError:
                    pass

    async def _begin(
        self, connection: socket.socket, peer: Peer | None, origin: Origin | None
    ) -> None:
        certificate = self._certificate
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._new_protocol(peer, origin),
                connection,
                ssl=None if certificate is None else certificate.context(),
                ssl_handshake_timeout=None if certificate is None else self._handshake_s,
            )
        except (OSError, TimeoutError):  # ssl.SSLError is an OSError
            if certificate is not None:
                self._watch.request_rejected("tls", _client_of(connection))
            connection.close()
        except BaseException:
            connection.close()
            raise


def _client_of(connection: socket.socket) -> str | int:
    entry = connection.entry if isinstance(connection, CountedSocket) else None
    return "" if entry is None else entry.client
