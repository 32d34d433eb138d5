"""Attackers on the daemon's HTTP server, and a daemon with the limits of a real machine."""

from __future__ import annotations

import codecs
import http.client
import multiprocessing
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc, wait

MALLORY, BOB = 64001, 64002
SOFT = 1024
# A fork that has switched to another user may not be able to read this Python installation.
codecs.lookup("idna")
FORKS = multiprocessing.get_context("fork")
Place = str | tuple[str, int]


@contextmanager
def soft_limit(soft: int) -> Generator[None]:
    """Processes started inside get this soft limit of descriptors."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@contextmanager
def limited(
    odc: Odc, *argv: str, environment: Mapping[str, str] | None = None, hard: int | None = None
) -> Generator[int]:
    """The daemon of a home with an embedded PostgreSQL, ready; its process id. It begins with a
    soft limit of SOFT descriptors."""
    odc.environment |= environment or {}
    with ExitStack() as stack:
        with soft_limit(SOFT), pytest.MonkeyPatch.context() as patch:
            if hard is not None:
                # Only root could raise it again.
                shell = odc.work / "python"
                shell.write_text(f'#!/bin/sh\nulimit -n {hard}\nexec {sys.executable} "$@"\n')
                shell.chmod(0o755)
                patch.setattr(sys, "executable", str(shell))
            process: subprocess.Popen[str] = stack.enter_context(
                odc.serving("up", "--node", "big=h100:8", *argv)
            )
        yield process.pid


@contextmanager
def idle(
    place: Place, count: int, uid: int | None = None, sources: Sequence[str] = ("127.0.0.1",)
) -> Generator[None]:
    """A process of that user that tries to open this many connections and sends nothing."""
    ours, theirs = socket.socketpair()
    process = FORKS.Process(target=_open, args=(place, count, uid, sources, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.settimeout(60)
        assert ours.recv(4) == b"done"
        yield
    finally:
        process.kill()
        process.join()
        ours.close()


def _open(
    place: Place, count: int, uid: int | None, sources: Sequence[str], control: socket.socket
) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if uid is not None and os.geteuid() == 0:
        os.setgid(uid)
        os.setuid(uid)
    kept: list[socket.socket] = []
    for number in range(count):
        with suppress(OSError):
            kept.append(connected(place, sources[number % len(sources)]))
    control.sendall(b"done")
    while control.recv(1):
        pass


def connected(place: Place, source: str = "127.0.0.1") -> socket.socket:
    if isinstance(place, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(place)
        return connection
    return socket.create_connection(place, 60, (source, 0))


def get(place: Place, target: str = "/health", source: str = "127.0.0.1") -> tuple[int, bytes]:
    """Status and body. Raises OSError or HTTPException when none comes."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    try:
        connection.sock = connected(place, source)
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def get_as(uid: int, place: Place, target: str) -> int:
    """The status that another user gets; 0 without an answer."""
    reads, writes = os.pipe()

    def ask() -> None:
        os.setgid(uid)
        os.setuid(uid)
        status = 0
        with suppress(OSError, http.client.HTTPException):
            status = get(place, target)[0]
        os.write(writes, str(status).encode())

    process = FORKS.Process(target=ask)
    process.start()
    process.join()
    os.close(writes)
    with os.fdopen(reads) as pipe:
        return int(pipe.read() or 0)


def metric(place: Place, name: str) -> float:
    """The sum of a metric over its labels."""
    text = get(place, "/metrics")[1].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if _is(line, name))


def _is(line: str, name: str) -> bool:
    return re.match(rf"{re.escape(name)}(\{{| )", line) is not None


def tcp(odc: Odc) -> tuple[str, int]:
    """The address of the daemon's TCP port, from its own log or welcome; see `listening`."""
    return wait(lambda: _page(odc), odc.log)


def _page(odc: Odc) -> tuple[str, int] | None:
    status, answer = odc.request("POST", "/v1/page/tickets")
    if status != 201:
        return None
    host, _, port = answer["url"].split("/")[2].rpartition(":")
    return host, int(port)


def soft_limit_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


def set_soft_limit(pid: int, soft: int) -> None:
    """Of a running process: only its own user may read that."""
    uid, gid = (int(_status_of(pid, name).split()[0]) for name in ("Uid", "Gid"))

    def change() -> None:
        if os.geteuid() != uid:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))

    process = FORKS.Process(target=change)
    process.start()
    process.join()
    assert process.exitcode == 0


def _status_of(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{name}:")).partition(":")[2].strip()
