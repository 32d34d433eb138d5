"""A WebSocket to the daemon; the websockets library speaks the protocol."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.sync.client import connect as connect_tcp
from websockets.sync.client import unix_connect as connect_unix
from websockets.sync.connection import Connection

from odcctl import __version__
from odcctl.exits import Refused, Unreachable
from odcctl.http.address import connect
from odcctl.http.client import Client

OPEN_S = 30.0


@contextmanager
def connected(client: Client, path: str, what: str) -> Generator[Connection]:
    """Open a WebSocket, without a proxy. what: its name in errors. Raises Refused, Unreachable."""
    connection, address = connect(client.addresses)
    headers = {"User-Agent": f"odcctl/{__version__}", **client.credentials(address)}
    try:
        connection.settimeout(None)
        # The socket is connected already, and encrypted if it has to be: plain ws: is right.
        websocket = (connect_tcp if address.path is None else connect_unix)(
            uri=f"ws://{address.authority}{path}",
            sock=connection,
            additional_headers=headers,
            compression=None,
            proxy=None,
            open_timeout=OPEN_S,
        )
    except InvalidStatus as error:
        connection.close()
        raise _refusal(error, what) from None
    except (InvalidHandshake, OSError, EOFError) as error:
        connection.close()
        raise Unreachable(f"the daemon did not open the {what}: {error}") from error
    try:
        with websocket as opened:
            yield opened
    finally:
        connection.close()


def _refusal(error: InvalidStatus, what: str) -> Refused:
    try:
        problem = json.loads(error.response.body or b"")
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"the {what} was refused: {error}"}
    return Refused(error.response.status_code, problem)
