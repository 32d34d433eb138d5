"""HTTP on the Unix socket, and on TCP if configured: uvicorn in the daemon's own TaskGroup."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import logging
import os
import socket
import stat
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from odcd.api.http.streaming import Broken
from odcd.clock import SystemClock
from odcd.errors import OdcError
from odcd.front.crowd import Crowd, limits_of
from odcd.front.listener import Listener
from odcd.front.near import Origin
from odcd.front.peer import Peer
from odcd.front.protocol import PeerProtocol
from odcd.front.rules import Rules
from odcd.front.settings import FrontSettings
from odcd.front.tls import Certificate
from odcd.front.watch import Nobody, Watch
from odcd.front.web_socket import BoundedWebSocket, Turns

log = logging.getLogger(__name__)

# After the daemon drops root, it may be unable to read root's Python. So import now what uvicorn
# imports late (its lifespan, named by a string), and load the codec for host names.
importlib.import_module("uvicorn.lifespan.off")
codecs.lookup("idna")

BACKLOG = 2048
GRACE_S = 5
KEEP_ALIVE_S = 75
MAX_FRAME_BYTES = 1024 * 1024
OF_STRANGERS = ("Invalid HTTP request received.", "Unsupported upgrade request.")


class _Server(uvicorn.Server):
    """Uses odc's listeners instead of the event loop's."""

    def __init__(self, config: uvicorn.Config, listen: Callable[[_Server], list[Listener]]) -> None:
        super().__init__(config)
        self._listen = listen

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers: Any = self._listen(self)
        self.started = True

    def protocol(
        self, peer: Peer | None, origin: Origin | None, rules: Rules, watch: Watch
    ) -> PeerProtocol:
        return PeerProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state,
            peer=peer, origin=origin, rules=rules, watch=watch,
        )  # fmt: skip

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signal handling to the daemon."""
        yield


class HttpServer:
    def __init__(
        self, app: ASGIApp, *, path: Path, mode: int, listen: tuple[str, int] | None = None,
        listen_first: Sequence[tuple[str, int]] = (), taken: Sequence[socket.socket] | None = None,
        front: FrontSettings | None = None, rules: Rules | None = None,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        """path, mode: the Unix socket and its permissions; listen: host and port for TCP;
        listen_first: the first available of these, if any; taken: the sockets that take_tcp()
        already opened for both; front, rules: who may connect, and the limits of requests; watch:
        counts rejected connections and requests."""
        self._taken = taken
        self._front = front or FrontSettings()
        self._rules = rules or Rules()
        self._watch = watch or Nobody()
        self._certificate: Certificate | None = None
        self._path = path
        self._mode = mode
        self._listen = listen
        self._listen_first = listen_first
        self._sockets: list[socket.socket] = []
        self._inode: int | None = None
        config = uvicorn.Config(
            app,
            http=PeerProtocol,
            ws=cast(Any, partial(BoundedWebSocket, turns=Turns())),
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            ws_max_size=MAX_FRAME_BYTES,
            ws_per_message_deflate=False,
        )
        self._server = _Server(config, self._listeners)
        logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The TCP addresses that the server listens on."""
        return [s.getsockname()[:2] for s in self._sockets if s.family != socket.AF_UNIX]

    def bind(self) -> None:
        """Open the sockets; from here on, clients wait instead of being refused.

        The caller holds the home's lock, so an existing socket file is a leftover.
        Raises OdcError when an address is not available, or TLS cannot be used.
        """
        if self._front.tls_cert is not None:
            self._certificate = Certificate(
                self._front.tls_cert, self._front.tls_key, SystemClock()
            )  # fmt: skip
        try:
            self._sockets.append(self._bind_unix())
            if self._taken is not None:
                self._sockets += self._taken
                return
            if self._listen is not None:
                self._sockets.append(_bind_tcp(*self._listen))
        except OSError as error:
            self._close()
            place = self._path if len(self._sockets) == 0 else self._listen
            raise _not_had(place, error) from error

        for place in self._listen_first:
            with contextlib.suppress(OSError):
                self._sockets.append(_bind_tcp(*place))
                break

    async def run(self) -> None:
        """Serve until stop(), or until cancelled."""
        if not self._sockets:
            self.bind()
        try:
            await self._server.serve(sockets=self._sockets)
        finally:
            self._close()

    def stop(self) -> None:
        """Accept no new connections, let current requests finish, and cut long ones after a
        grace."""
        self._server.should_exit = True

    def _listeners(self, server: _Server) -> list[Listener]:
        crowd = Crowd(limits_of(self._front), self._front.proxies, self._watch, os.getuid())
        return [
            Listener(
                listener,
                crowd,
                lambda peer, origin: server.protocol(peer, origin, self._rules, self._watch),
                self._watch,
                certificate=None if listener.family == socket.AF_UNIX else self._certificate,
                handshake_s=self._rules.head_s,
            )
            for listener in self._sockets
        ]

    def _bind_unix(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(self._path.lstat().st_mode):
                self._path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The permissions must be right before anyone can connect.
        before = os.umask(0o177)
        try:
            listener.bind(str(self._path))
        except BaseException:
            listener.close()
            raise
        finally:
            os.umask(before)
        self._path.chmod(self._mode)
        self._inode = self._path.stat().st_ino
        listener.listen(BACKLOG)
        return listener

    def _close(self) -> None:
        for listener in self._sockets:
            listener.close()
        with contextlib.suppress(OSError):
            # A successor may have created its own socket there.
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()


def take_tcp(
    listen: tuple[str, int] | None, listen_first: Sequence[tuple[str, int]]
) -> list[socket.socket]:
    """Open the listeners for HttpServer's arguments while root may still bind ports below 1024.

    Raises OdcError when listen is not available.
    """
    if listen is not None:
        try:
            return [_bind_tcp(*listen)]
        except OSError as error:
            raise _not_had(listen, error) from error
    for place in listen_first:
        with contextlib.suppress(OSError):
            return [_bind_tcp(*place)]
    return []


def _not_had(place: object, error: OSError) -> OdcError:
    return OdcError(
        f"HTTP cannot listen on {place}: {error.strerror}",
        "Another daemon may be running there: `odcd doctor` checks that.",
    )


def _bind_tcp(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Drop uvicorn's errors about answers that were cut on purpose, and its warnings about invalid
    requests, which strangers could cause without end: metrics count those."""
    if record.levelno == logging.WARNING and record.msg in OF_STRANGERS:
        return False
    return not (record.exc_info and isinstance(record.exc_info[1], Broken))
