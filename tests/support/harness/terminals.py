"""A program in a terminal of its own, as in a window of a user."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

TIMEOUT_S = 120
_IN_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class OwnTerminal:
    """The program leads the session of the terminal, as a shell in a window does."""

    def __init__(
        self, argv: list[str], environment: Mapping[str, str], folder: Path, *,
        rows: int = 24, columns: int = 100,
    ) -> None:  # fmt: skip
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_TERMINAL, *argv],
            env={**environment, "TERM": "xterm"}, cwd=folder, stdin=self.slave,
            stdout=self.slave, stderr=self.slave, start_new_session=True,
        )  # fmt: skip

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def until(self, text: bytes) -> bytes:
        """What was shown since the last call, up to some of what follows the text."""
        limit = time.monotonic() + TIMEOUT_S
        while text not in self.seen:
            left = max(0.0, limit - time.monotonic())
            assert select.select([self.master], [], [], left)[0], self.seen
            self.seen += os.read(self.master, 65536)
        shown, self.seen = self.seen, b""
        return shown

    @property
    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ISIG)

    def end(self) -> tuple[int, bytes]:
        """The exit code, and what was shown since the last call. The terminal must be as it was
        before."""
        limit = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None or select.select([self.master], [], [], 0.0)[0]:
            assert time.monotonic() < limit, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        return self.process.returncode, self.seen

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)

    def hang_up(self) -> None:
        """As when the window is closed."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1
