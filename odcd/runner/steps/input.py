"""The input of a step's tasks: each gets all of it, as fast as it reads."""

from __future__ import annotations

import contextlib
import os
import selectors
import termios
from typing import Any

READ_BYTES = 65536
MAX_INPUT_BYTES = 256 * 1024
"""More input is accepted only while every task has less unread input than this."""


class Task:
    """One task of a step."""

    def __init__(self, number: int, spec: dict[str, Any]) -> None:
        self.number = number
        self.spec = spec
        self.pid = 0
        self.status: int | None = None
        self.program_status: int | None = None
        """Its program has ended with this status, and its epilog runs."""
        self.takes_input = False
        """Whether the step's input goes to it, and it may still read some."""
        self.stdin: int | None = None
        """The end of a pipe, or of its terminal."""
        self.has_terminal = False
        self.position = 0
        """How much of the step's input was written to it."""
        self.outputs: dict[int, bytes] = {}
        """Descriptors to read, and the kind of the journal's frames."""


class Input:
    """All tasks share one copy of what some of them have not read yet."""

    def __init__(self, tasks: list[Task], selector: selectors.BaseSelector) -> None:
        self._all = tasks
        self._selector = selector
        self._kept = bytearray()
        self._begin = 0
        """Where in the input the kept part begins."""
        self.received = 0
        self._over = False
        self._ends_a_line = True

    @property
    def accepts(self) -> bool:
        return not self._over and self.received - self._read_by_all() < MAX_INPUT_BYTES

    def _read_by_all(self) -> int:
        return min((one.position for one in self._receivers()), default=self.received)

    def _receivers(self) -> list[Task]:
        return [one for one in self._all if one.takes_input]

    def give(self, offset: int, data: bytes) -> None:
        """offset: of the data in the whole input. Data that arrived before is left out, and data
        for which there is no room: its sender sends it again."""
        if offset > self.received or self._over:
            return
        if not data:
            self._over = offset == self.received
            for one in self._receivers() if self._over else ():
                self.write(one)
            return
        fresh = data[self.received - offset :]
        if not fresh or not self.accepts:
            return
        unneeded = self._read_by_all() - self._begin
        del self._kept[:unneeded]
        self._begin += unneeded
        self._kept += fresh
        self.received += len(fresh)
        self._ends_a_line = fresh.endswith(b"\n")
        for one in self._receivers():
            self.write(one)

    def write(self, one: Task) -> None:
        if one.stdin is None:
            return
        try:
            while one.position < self.received:
                at = one.position - self._begin
                one.position += os.write(one.stdin, self._kept[at : at + READ_BYTES])
        except BlockingIOError:
            with contextlib.suppress(KeyError):
                self._selector.register(one.stdin, selectors.EVENT_WRITE, lambda: self.write(one))
            return
        except OSError:
            self.close(one)
            return
        with contextlib.suppress(KeyError):
            self._selector.unregister(one.stdin)
        if self._over:
            if one.has_terminal:
                self._press_end(one.stdin)
            self.close(one)

    def _press_end(self, master: int) -> None:
        """A terminal stays open when its input ends. Its program gets the key for the end, Ctrl-D:
        after a part of a line, twice."""
        with contextlib.suppress(OSError, termios.error):
            key = termios.tcgetattr(master)[6][termios.VEOF]
            os.write(master, key if self._ends_a_line else 2 * key)

    def close(self, one: Task) -> None:
        one.takes_input = False
        if one.stdin is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(one.stdin)
            os.close(one.stdin)
            one.stdin = None
