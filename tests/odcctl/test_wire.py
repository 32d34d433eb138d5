"""Data that arrives over a connection, and data that may arrive in between."""

from __future__ import annotations

import socket

import pytest

from odcctl.http.wire import Answer


class Interrupted(Answer):
    def on_body(self, body: bytes) -> None:
        raise KeyboardInterrupt


def test_a_signal_while_an_answer_is_read_is_no_fault_of_the_answer() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc")
        with pytest.raises(KeyboardInterrupt):
            Interrupted(ours).body()
