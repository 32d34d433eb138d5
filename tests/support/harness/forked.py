"""Run odcctl hundreds of times: each run is a process of its own, forked from one that has loaded
Python and every module of odcctl. Starting both takes ten times what a short command takes."""

from __future__ import annotations

import atexit
import functools
import gc
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict

MAX_STDIN = 60_000
"""A pipe holds as much before anyone reads."""
AT_START = ("PYTHON", "LC_", "LANG")
"""Variables that Python reads when it starts."""
SITE = Path(__file__).parent / "site"
"""See sitecustomize.py in it."""
SITE_PATH = os.pathsep.join([str(SITE), *filter(None, sys.path)])
"""The PYTHONPATH of daemons and commands that find the modules of this process, and SITE."""
MAX_REQUEST = 1 << 20


_REPEATED = {("LANG", "C.UTF-8"), ("PYTHONPATH", SITE_PATH)}
"""These give a fork what they give a new process."""


class Forks:
    """The process that is forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(other.fileno())],
                pass_fds=[other.fileno()],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)

    def run(
        self, arguments: Sequence[str | bytes], stdin: bytes, folder: Path, env: Mapping[str, str],
        timeout_s: float,
    ) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        """As subprocess.run() would with `python -m odcctl`; that is what runs it where a fork
        could differ."""
        request = json.dumps(
            {
                "arguments": [os.fsdecode(a) for a in arguments],
                "folder": str(folder),
                "env": {**env},
            }
        ).encode()
        plain = env.get("LANG") == "C.UTF-8" and not any(
            name.startswith(AT_START) and (name, value) not in _REPEATED
            for name, value in env.items()
        )
        fits = len(stdin) <= MAX_STDIN and len(request) <= MAX_REQUEST // 8
        if not (plain and fits and self._lock.acquire(blocking=False)):
            return subprocess.run(
                [sys.executable, "-m", "odcctl", *arguments],
                input=stdin, capture_output=True, timeout=timeout_s, cwd=folder, env=env,
            )  # fmt: skip
        try:
            return self._forked(request, stdin, time.monotonic() + timeout_s)
        finally:
            self._lock.release()

    def _forked(
        self, request: bytes, stdin: bytes, until: float
    ) -> subprocess.CompletedProcess[bytes]:
        pipes = [os.pipe() for _ in range(3)]
        (in_reads, in_writes), (out_reads, out_writes), (err_reads, err_writes) = pipes
        socket.send_fds(self._socket, [request], [in_reads, out_writes, err_writes])
        for number in (in_reads, out_writes, err_writes):
            os.close(number)
        pid = int(self._socket.recv(64))
        try:
            if stdin:
                with suppress(BrokenPipeError):
                    os.write(in_writes, stdin)
        finally:
            os.close(in_writes)
        output = {out_reads: b"", err_reads: b""}
        with selectors.DefaultSelector() as selector:
            for number in output:
                selector.register(number, selectors.EVENT_READ)
            while selector.get_map():
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired("odcctl", 0)
                for key, _ in selector.select(1.0):
                    data = os.read(key.fd, 65_536)
                    output[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        status = int(self._socket.recv(64))
        return subprocess.CompletedProcess(
            "odcctl", os.waitstatus_to_exitcode(status), output[out_reads], output[err_reads]
        )


@functools.cache
def forks() -> Forks:
    """One for all tests of this process, to its end."""
    made = Forks()
    atexit.register(made.close)
    return made


class Request(TypedDict):
    arguments: list[str]
    folder: str
    env: dict[str, str]


def serve(ours: socket.socket) -> None:
    """Fork for every request; tell the pid, and the wait status at its end. In the child, return
    when it is ready to run odcctl."""
    while True:
        request, numbers, _, _ = socket.recv_fds(ours, MAX_REQUEST, 3)
        if not request:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            ours.close()
            become(json.loads(request), numbers)
            return
        for number in numbers:
            os.close(number)
        ours.send(str(pid).encode())
        ours.send(str(os.waitpid(pid, 0)[1]).encode())


def become(request: Request, numbers: Sequence[int]) -> None:
    """Take the streams, folder, environment and arguments of the request."""
    for number, theirs in enumerate(numbers):
        os.dup2(theirs, number)
        os.close(theirs)
    sys.stdin = _text(io.BufferedReader(io.FileIO(0, closefd=False)), "surrogateescape")
    sys.stdout = _text(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "surrogateescape")
    sys.stderr = _text(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    if os.environ.get("PYTHONPATH", "").startswith(str(SITE)):
        runpy.run_path(str(SITE / "sitecustomize.py"))
    sys.argv = ["odcctl", *request["arguments"]]


def _text(stream: io.BufferedReader | io.BufferedWriter, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, "utf-8", errors)


def leave(code: int) -> NoReturn:
    """End as after sys.exit(code), but free no module, which would copy all pages."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> NoReturn:
    import importlib
    import pkgutil

    import odcctl
    from odcctl.__main__ import main as odcctl_main

    for module in pkgutil.walk_packages(odcctl.__path__, "odcctl."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()  # a collection in the child would write to each object, and so copy all pages
    serve(socket.socket(fileno=int(sys.argv[1])))
    leave(odcctl_main())


if __name__ == "__main__":
    main()
