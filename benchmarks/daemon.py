"""A daemon of the benchmark's own, and a client that costs next to nothing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from odcd.account import service_account


class Daemon:
    def __init__(self, home: Path, work: Path) -> None:
        self.home = home
        self.work = work
        self.socket = home / "odcd.sock"
        self.environment = {**os.environ, "ODC_HOME": str(home)}

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            env=self.environment, cwd=self.work, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{command} failed: {done.stderr}")
        return done

    @property
    def pid(self) -> int:
        return int((self.home / "odcd.lock").read_text().split()[0])

    @property
    def dsn(self) -> str:
        major = next((self.home / "data").iterdir()).name
        from odcd.postgres import EmbeddedPostgres

        return EmbeddedPostgres(self.home, int(major)).dsn


@contextmanager
def running(*nodes: str) -> Generator[Daemon]:
    """odcd up with these --node options, in a temporary home; it is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="odc-bench-", dir="/tmp"))
    home.chmod(0o755)
    work = home / "work"
    work.mkdir()
    daemon = Daemon(home / "odc", work)
    options = [part for node in nodes for part in ("--node", node)]
    try:
        daemon.call("odcd", "up", "--detach", *options)
        yield daemon
    finally:
        subprocess.run(
            [sys.executable, "-m", "odcd", "down", "--force"],
            env=daemon.environment, capture_output=True, check=False,
        )  # fmt: skip
        shutil.rmtree(home, ignore_errors=True)


def as_database_account() -> None:
    """The embedded PostgreSQL takes its own account only: a process that is root becomes it."""
    if os.geteuid() == 0:
        account = service_account()
        os.setgroups([account.gid])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)


def request(
    method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> bytes:
    """An HTTP/1.1 request as bytes, to be sent as often as wanted."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: odc", f"Content-Length: {len(data)}"]
    if data:
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class RawClient:
    """One connection that is kept. Blocking; answers with status and body."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._rest = b""

    def send(self, request: bytes) -> tuple[int, bytes]:
        self._socket.sendall(request)
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        }
        if fields.get(b"transfer-encoding") == b"chunked":
            return status, self._chunks()
        length = int(fields.get(b"content-length", b"0"))
        while len(self._rest) < length:
            self._more()
        body, self._rest = self._rest[:length], self._rest[length:]
        return status, body

    def _chunks(self) -> bytes:
        body = b""
        while True:
            while b"\r\n" not in self._rest:
                self._more()
            size, _, self._rest = self._rest.partition(b"\r\n")
            length = int(size, 16)
            while len(self._rest) < length + 2:
                self._more()
            body += self._rest[:length]
            self._rest = self._rest[length + 2 :]
            if length == 0:
                return body

    def _more(self) -> None:
        data = self._socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the daemon closed the connection")
        self._rest += data


async def many(path: Path, requests: list[bytes], clients: int) -> list[float]:
    """Send the requests over so many connections at once; how long each answer took, in seconds.

    Raises RuntimeError for an answer that is not 2xx.
    """
    queue = iter(requests)
    took: list[float] = []
    loop = asyncio.get_running_loop()

    async def one() -> None:
        reader, writer = await asyncio.open_unix_connection(str(path))
        for payload in queue:
            begin = loop.time()
            writer.write(payload)
            head = await reader.readuntil(b"\r\n\r\n")
            at = head.lower().index(b"content-length:") + 15
            body = await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
            took.append(loop.time() - begin)
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"refused: {body!r}")
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(one())
    return took
