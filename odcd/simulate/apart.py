"""Several replays at once, each in a process and a database of its own."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from odcd.errors import OdcError, refusal
from odcd.simulate.server import interrupt


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_apart(
    works: Sequence[Callable[[], Any]], at_once: int, progress: Callable[[int, int], None]
) -> list[Any]:
    """Call each work in a process of its own; return their results in the order of the works.

    Results travel as JSON. progress is called with the number of finished works and of all works.
    Raises the first error of a work, after the other processes have ended.
    """
    before = signal.signal(signal.SIGTERM, interrupt)
    running = _Processes()
    results: dict[int, Any] = {}
    try:
        following = 0
        while len(results) < len(works):
            while following < len(works) and running.count < at_once:
                running.begin(following, works[following])
                following += 1
            number, result = running.next_result()
            results[number] = result
            progress(len(results), len(works))
    finally:
        running.end_all()
        signal.signal(signal.SIGTERM, before)
    return [results[number] for number in range(len(works))]


class _Processes:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, tuple[int, int, bytearray]] = {}
        """By the descriptor of its results: the number of the work, its process, and the bytes that
        have arrived."""

    @property
    def count(self) -> int:
        return len(self._running)

    def begin(self, number: int, work: Callable[[], Any]) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _call(work, writing)
        os.close(writing)
        self._running[reading] = (number, pid, bytearray())
        self._selector.register(reading, selectors.EVENT_READ)

    def next_result(self) -> tuple[int, Any]:
        """Wait for a work to end; return its number and result. Raises its error."""
        while True:
            for key, _ in self._selector.select():
                number, _, data = self._running[key.fd]
                part = os.read(key.fd, 1 << 16)
                data += part
                if not part:
                    self._close(key.fd)
                    return number, _result(bytes(data))

    def end_all(self) -> None:
        """End the processes that still run. Each removes its database before it exits."""
        for _, pid, _ in self._running.values():
            os.kill(pid, signal.SIGTERM)
        for descriptor in list(self._running):
            self._close(descriptor)
        self._selector.close()

    def _close(self, descriptor: int) -> None:
        _, pid, _ = self._running.pop(descriptor)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        os.waitpid(pid, 0)


def _call(work: Callable[[], Any], writing: int) -> NoReturn:
    """Run in the child process. It never returns, because the code after the call belongs to the
    parent."""
    # Ctrl-C reaches the whole group, but one signal is enough: the parent sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as answer:
            try:
                found: dict[str, Any] = {"result": work()}
            except OdcError as error:
                found = {"refused": (error.code, error.message, error.hint)}
            except KeyboardInterrupt:
                found = {}
            except BaseException as error:
                found = {"refused": ("OD000", f"{type(error).__name__}: {error}", None)}
            if found:
                json.dump(found, answer)
    finally:
        os._exit(0)


def _result(data: bytes) -> Any:
    if not data:
        raise OdcError("a replay was interrupted", "Try again.")
    found = json.loads(data)
    if "refused" in found:
        raise refusal(*found["refused"])
    return found["result"]
