"""Read one context in a separate process: see odcd.builds.reading.

The process is a fork, not a new program: the daemon's account may not be able to read root's
Python.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odcd.builds.context import IGNORE, read_context
from odcd.errors import OdcError, TooLarge

CPU_S = 10
MEMORY_BYTES = 512 * 1024 * 1024
"""In addition to the size of the daemon."""
MAX_DESCRIPTORS = 1_048_576


@dataclass(frozen=True, slots=True)
class Child:
    """The child process: it reads a context from one pipe, and writes the answer to the other."""

    pid: int
    context: int
    answer: int

    def talk(self, sent: bytes) -> bytes | None:
        """Send the context and wait until the process has ended. Returns one line of JSON and the
        packed context, or None when the process was killed."""
        try:
            with os.fdopen(self.context, "wb") as pipe, suppress(BrokenPipeError):
                pipe.write(sent)
            with os.fdopen(self.answer, "rb") as pipe:
                answer = pipe.read()
        finally:
            _, status = os.waitpid(self.pid, 0)
        return answer if status == 0 else None

    def kill(self) -> None:
        """Call only while a thread is in talk(): until then the process id is not reused."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def fork(dockerfile: str) -> Child:
    """Start the process. Raises OSError."""
    context, ours = os.pipe()
    theirs, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _begin(context, answer)
            _limit()
            with os.fdopen(0, "rb") as sent, os.fdopen(1, "wb") as output:
                output.write(_read(sent.read(), dockerfile))
            code = 0
        finally:
            # Exit without running any cleanup of the daemon.
            os._exit(code)
    os.close(context)
    os.close(answer)
    return Child(pid, ours, theirs)


def _begin(context: int, answer: int) -> None:
    """Drop the resources inherited from the daemon."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    gc.freeze()
    os.dup2(context, 0)
    os.dup2(answer, 1)
    os.closerange(3, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], MAX_DESCRIPTORS))


def _limit() -> None:
    """Limit this process to the resources that one context needs."""
    for kind, limit in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, _size() + MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
        resource.setrlimit(kind, (limit, limit))


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _read(sent: bytes, dockerfile: str) -> bytes:
    head: dict[str, str | None] = {}
    packed = b""
    try:
        context = read_context(sent, dockerfile)
        head["digest"], packed = context.digest, context.packed
    except MemoryError:
        head = _refusal(TooLarge("the context needs too much memory when it is unpacked", IGNORE))
    except OdcError as error:
        head = _refusal(error)
    return json.dumps(head).encode() + b"\n" + packed


def _refusal(error: OdcError) -> dict[str, str | None]:
    return {"code": error.code, "message": error.message, "hint": error.hint}
