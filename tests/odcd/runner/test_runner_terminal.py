"""A job that asked for a terminal has one, that clients come to and leave."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path

import pytest

from odcd.runner import terminal
from tests.support.runner import PATIENCE_S, Client, RequestRefused, RunnerHome, a_dispatch, until


class Screen:
    """One attached client; keeps what it was shown."""

    def __init__(self, client: Client, job: int = 1) -> None:
        def attach() -> int | None:
            try:
                return client.ask_with_fd("attach", job=job, attempt=1, rank=0)[1][0]
            except RequestRefused as error:
                if error.code != "not_ready":
                    raise
                return None

        self._sock = socket.socket(fileno=until(attach))
        self._sock.settimeout(PATIENCE_S)
        self._received = bytearray()
        self.shown = ""
        self.end: dict[str, object] | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def type(self, text: str) -> None:
        self._sock.sendall(terminal.frame(b"i", text.encode()))

    def resize(self, rows: int, columns: int) -> None:
        self._sock.sendall(terminal.frame(b"r", struct.pack(">HH", rows, columns)))

    def read_until(self, text: str) -> None:
        while text not in self.shown:
            assert self.end is None, f"ended without showing {text!r}: {self.shown!r}"
            self.read()

    def read_to_end(self) -> None:
        while self.end is None:
            self.read()

    def read(self) -> None:
        data = self._sock.recv(65536)
        assert data, "closed without an end"
        self._received += data
        while taken := terminal.take_frame(self._received):
            kind, content = taken
            if kind == b"e":
                self.end = json.loads(content)
            else:
                self.shown += content.decode()


SHELL = "#!/bin/sh\nPS1='$ ' exec sh -i\n"


def test_a_shell_is_typed_to_and_answers(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as screen:
        screen.type("tty -s && echo is$((40+2))tty\n")
        screen.read_until("is42tty")
        screen.resize(33, 101)
        screen.type("stty size\n")
        screen.read_until("33 101")
        screen.type("exit 6\n")
        screen.read_to_end()
        assert screen.end == {"exit_code": 6, "signal": None}
    assert client.wait_end(1)["exit_code"] == 6


def test_control_c_interrupts(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\necho up\nexec sleep 1000\n", work_dir, pty=True))
    with Screen(client) as screen:
        screen.read_until("up")
        screen.type("\x03")
        screen.read_to_end()
    assert client.wait_end(1)["signal"] == 2


def test_who_comes_later_sees_what_was_shown(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as first:
        first.type("echo a$((1+1))b\n")
        first.read_until("a2b")
    with Screen(client) as second, Screen(client) as third:
        second.read_until("a2b")
        second.type("echo c$((1+1))d; exit 0\n")
        third.read_until("c2d")
        third.read_to_end()


def test_output_nobody_watches_is_kept_and_blocks_nothing(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nseq 100000\n", work_dir, pty=True))
    assert client.wait_end(1)["exit_code"] == 0
    kept = (home.run_dir / "output" / "1-1-0.out").read_text().split()
    assert kept == [str(n) for n in range(1, 100001)]


def test_a_terminal_outlives_the_runner(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, SHELL, work_dir, pty=True))
    with Screen(client) as screen:
        screen.type("echo a$((1+1))b\n")
        screen.read_until("a2b")
        home.kill()
        home.launch()
        client = home.client()
        with Screen(client) as again:
            again.type("exit 4\n")
            again.read_to_end()
            assert again.end == {"exit_code": 4, "signal": None}
        screen.read_to_end()
    assert client.wait_end(1)["exit_code"] == 4


def test_a_job_without_a_terminal_says_so(home: RunnerHome, work_dir: Path) -> None:
    client = home.client()
    client.start(a_dispatch(1, "#!/bin/sh\nexec sleep 1000\n", work_dir))
    client.wait_for(1, "started")
    with pytest.raises(RequestRefused) as refused:
        client.ask("attach", job=1, attempt=1, rank=0)
    assert refused.value.code == "not_found"
