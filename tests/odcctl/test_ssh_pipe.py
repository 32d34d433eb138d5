"""ssh run by odcctl: all of its messages are read, even if another process keeps its streams
open."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odcctl.ssh import process as ssh_pipe
from odcctl.ssh.process import run_ssh


@pytest.fixture
def stays(tmp_path: Path) -> Iterator[list[str]]:
    """As ssh that leaves a connection for others behind (ControlPersist)."""
    pid = tmp_path / "pid"
    yield ["sh", "-c", f"sleep 600 & echo $! > {pid}; echo failed >&2; exit 255"]
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_background_process_is_not_waited_for(stays: list[str]) -> None:
    began = time.monotonic()
    assert run_ssh(stays) == (255, b"failed\n")
    assert time.monotonic() - began < 300


def test_standard_error_is_returned_however_late_it_is_shown(
    stays: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = threading.Thread.run

    def late(thread: threading.Thread) -> None:
        time.sleep(0.2)
        run(thread)

    monkeypatch.setattr(ssh_pipe, "SHOWN_S", 0.01)
    monkeypatch.setattr(threading.Thread, "run", late)
    assert run_ssh(stays) == (255, b"failed\n")
