"""Run ssh as a child process: its streams, its exit code, and how it is ended."""

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
"""The exit code of ssh's own failures; otherwise it exits with the remote command's code."""
KEPT_STDERR_BYTES = 4096
SHOWN_S = 0.5
"""How long to wait for the end of standard error: an ssh in the background (ControlPersist) keeps
it open."""
END_S = 2.0

Pipe = Callable[[IO[bytes]], None]


def run_ssh(
    arguments: Sequence[str],
    *,
    write: Pipe | None = None,
    read: Pipe | None = None,
    inherits: bool = False,
) -> tuple[int, bytes]:
    """Run ssh; return its exit code and the end of its standard error, which is shown as it
    arrives. inherits: ssh reads our standard input."""
    quiet = None if inherits else subprocess.DEVNULL
    with subprocess.Popen(
        arguments, stdin=quiet if write is None else subprocess.PIPE,
        stdout=None if read is None else subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        last, shown = showing(process)
        try:
            if write is not None:
                assert process.stdin is not None
                # ssh ended before it read everything; its exit code shows why.
                with suppress(BrokenPipeError):
                    write(process.stdin)
                with suppress(BrokenPipeError):
                    process.stdin.close()
            if read is not None:
                _read(process, read)
            code = process.wait()
        finally:
            # After an interrupt or an error of ours; no effect if it has ended.
            _end(process)
        shown()
    return exit_code(code), bytes(last)


def showing(process: subprocess.Popen[bytes]) -> tuple[bytearray, Callable[[], None]]:
    """Show its standard error. Returns the end of it, and a function that waits until all of it is
    shown, to be called after the process has ended."""
    assert process.stderr is not None
    # A duplicate, since an interrupt closes the original.
    last, source = bytearray(), os.dup(process.stderr.fileno())
    ended, end = os.pipe()

    def show() -> None:
        while source in select.select([source, ended], [], [])[0]:
            data = os.read(source, 4096)
            if not data:
                break
            last.extend(data)
            del last[:-KEPT_STDERR_BYTES]
            os.write(2, data)
        os.close(source)
        os.close(ended)

    def shown() -> None:
        thread.join(SHOWN_S)
        # A child of ssh may keep it open; show at least what has been written so far.
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
        # The archive is cut off; a failing exit code of ssh explains that.
        if not process.wait():
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End ssh by SIGTERM, so that it ends its proxy, too."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
