"""A port here that leads to one of a reservation: what ends there ends here."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.sync.server import ServerConnection, unix_serve

from odcctl.http.address import Address
from odcctl.http.client import Client
from odcctl.ssh.forward import listen, serve

PATIENCE_S = 60.0

Handler = Callable[[ServerConnection], None]


@contextmanager
def led_to(home: Path, handler: Handler) -> Iterator[socket.socket]:
    """A connection to a port that leads to this handler."""
    path = str(home / "odcd.sock")
    client = Client([Address(path)], None)
    with (
        unix_serve(handler, path, compression=None) as server,
        listen(None, 0) as listener,
    ):

        def carry() -> None:
            with suppress(OSError):
                serve(client, "/v1/tunnel", listener)

        threads = [threading.Thread(target=target) for target in (server.serve_forever, carry)]
        for thread in threads:
            thread.start()
        with socket.create_connection(listener.getsockname(), PATIENCE_S) as ours:
            yield ours
        server.shutdown()
        # Closing it would not wake the accepting thread.
        listener.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(PATIENCE_S)


def test_a_connection_that_cannot_be_made_ends_at_once(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A browser would go on waiting for a Jupyter that is not there."""

    def gone(connection: ServerConnection) -> None:
        assert connection.recv() == b"GET"
        connection.close(1011, "pod odc-1-1-0 cannot be reached")

    with led_to(home, gone) as ours:
        ours.sendall(b"GET")
        assert ours.recv(1) == b""
    assert "pod odc-1-1-0 cannot be reached" in capfd.readouterr().err


def test_what_was_sent_before_the_end_arrives(home: Path) -> None:
    def answers(connection: ServerConnection) -> None:
        assert connection.recv() == b"GET"
        for _ in range(64):
            connection.send(bytes(65_536))

    with led_to(home, answers) as ours:
        ours.sendall(b"GET")
        got = 0
        while data := ours.recv(65_536):
            got += len(data)
    assert got == 64 * 65_536
