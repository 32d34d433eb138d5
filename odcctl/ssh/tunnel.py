"""Standard input and output, carried to a reservation's SSH port and back over a WebSocket."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from odcctl.http.client import Client
from odcctl.http.websocket import connected

END = '{"eof":true}'
PIECE_BYTES = 65_536
DONE_CODES = (None, 1000, 1001)
LEAVES_S = 0.5
"""How long to wait for ssh to end after the other side has."""


class Lost(Exception):
    """The connection broke, or the daemon closed it with a reason. begun: data had arrived."""

    def __init__(self, code: int | None, reason: str, *, begun: bool) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.begun = begun


def carry(client: Client, path: str) -> bool:
    """Carry data until one side ends; whether it was ours. Raises Lost, Refused, Unreachable."""
    with connected(client, path, "tunnel") as connection:
        feeder: threading.Thread | None = None
        try:
            for message in connection:
                if isinstance(message, str):
                    break
                if feeder is None:
                    # Input is read only after data has arrived; SSH servers send first. So nothing
                    # is lost if the connection has to be retried.
                    feeder = threading.Thread(target=_feed, args=(connection,), daemon=True)
                    feeder.start()
                _write(message)
        except ConnectionClosed:
            pass
        except BrokenPipeError:
            return True
        if connection.close_code not in DONE_CODES:
            code, reason = connection.close_code, connection.close_reason
            raise Lost(code, reason or "", begun=feeder is not None)
        if feeder is None:
            return False
        # Normally ssh ends first, and the other side follows.
        feeder.join(LEAVES_S)
        return not feeder.is_alive()


def _feed(connection: Connection) -> None:
    with suppress(ConnectionClosed, OSError):
        while data := os.read(0, PIECE_BYTES):
            connection.send(data)
        connection.send(END)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
