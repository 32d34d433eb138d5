"""ssh as a program that runs under ours: its streams, its exit code, and how it is ended."""

from __future__ import annotations

import os
import select
import subprocess
import tarfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

SSH_FAILED = 255
"""ssh's own failures; the code of what ran there otherwise."""
TOLD_BYTES = 4096
SHOWN_S = 0.5
"""One that stays in the background (ControlPersist) keeps its standard error open."""
END_S = 2.0

Pipe = Callable[[IO[bytes]], None]


def run_ssh(
    words: Sequence[str],
    *,
    write: Pipe | None = None,
    read: Pipe | None = None,
    inherits: bool = False,
) -> tuple[int, bytes]:
    """Its exit code, and the end of its standard error, which is shown as it arrives.
    inherits: our standard input is the command's."""
    quiet = None if inherits else subprocess.DEVNULL
    with subprocess.Popen(
        words, stdin=quiet if write is None else subprocess.PIPE,
        stdout=None if read is None else subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        last, shown = showing(process)
        try:
            if write is not None:
                assert process.stdin is not None
                # It ended before it had all of it: its exit code says why.
                with suppress(BrokenPipeError):
                    write(process.stdin)
                with suppress(BrokenPipeError):
                    process.stdin.close()
            if read is not None:
                _read(process, read)
            code = process.wait()
        finally:
            # After Ctrl-C and the like, or a failure of ours; ended, it is left alone.
            _end(process)
        shown()
    return exit_code(code), bytes(last)


def showing(process: subprocess.Popen[bytes]) -> tuple[bytearray, Callable[[], None]]:
    """The end of its standard error, and a function that waits, once it has ended, until all of
    that is shown."""
    assert process.stderr is not None
    # Its own, for the other is closed when something interrupts.
    last, source = bytearray(), os.dup(process.stderr.fileno())
    ended, end = os.pipe()

    def show() -> None:
        while source in select.select([source, ended], [], [])[0]:
            data = os.read(source, 4096)
            if not data:
                break
            last.extend(data)
            del last[:-TOLD_BYTES]
            os.write(2, data)
        os.close(source)
        os.close(ended)

    def shown() -> None:
        thread.join(SHOWN_S)
        # A child of it may write more; show at least what is there, however slow the machine is.
        os.close(end)
        thread.join()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    return last, shown


def exit_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _read(process: subprocess.Popen[bytes], read: Pipe) -> None:
    assert process.stdout is not None
    try:
        read(process.stdout)
    except tarfile.ReadError:
        # Cut off: why, its exit code says, if it has one.
        if not process.wait():
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """By TERM, so that ssh ends its own proxy, too."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
