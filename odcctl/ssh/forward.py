"""Forward a port of this machine to one of a reservation, through the daemon."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from odcctl.exits import Failure
from odcctl.http.client import Client
from odcctl.http.websocket import connected
from odcctl.ssh.tunnel import DONE_CODES, END, PIECE_BYTES
from odcctl.text.render import clean, note

HOST = "127.0.0.1"
"""Other machines cannot connect."""
WAITING = 64


def listen(port: int | None, usual: int) -> socket.socket:
    """Listen on port; if None on the usual one, or on any if that is in use. Raises Failure."""
    for tried in (usual, 0) if port is None else (port,):
        try:
            return socket.create_server((HOST, tried), backlog=WAITING)
        except OSError as error:
            if tried == usual and port is None:
                continue
            raise Failure(
                f"port {tried} of {HOST} cannot be used: {error.strerror}",
                "Choose another: --port N",
            ) from None
    raise AssertionError


def serve(client: Client, path: str, listener: socket.socket) -> None:
    """Serve until interrupted. An error of one connection is printed, and ends only that one."""
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=_carry, args=(client, path, accepted), daemon=True).start()


def _carry(client: Client, path: str, accepted: socket.socket) -> None:
    with accepted:
        try:
            with connected(client, path, "tunnel") as connection:
                _exchange(connection, accepted)
                if connection.close_code not in DONE_CODES:
                    note(f"odcctl: a connection ended: {clean(connection.close_reason or 'lost')}")
        except Failure as failure:
            note(f"odcctl: a connection ended: {failure.message}")
        except OSError:
            # The local client has gone.
            return
        finally:
            # close() alone would not end the connection for the peer while the feeder reads.
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)


def _exchange(connection: Connection, accepted: socket.socket) -> None:
    feeder = threading.Thread(target=_feed, args=(connection, accepted), daemon=True)
    feeder.start()
    with suppress(ConnectionClosed):
        for message in connection:
            if isinstance(message, str):
                accepted.shutdown(socket.SHUT_WR)
            else:
                accepted.sendall(message)


def _feed(connection: Connection, accepted: socket.socket) -> None:
    with suppress(ConnectionClosed, OSError):
        while data := accepted.recv(PIECE_BYTES):
            connection.send(data)
        connection.send(END)
