"""Credentials that expire: new ones are fetched before a request would use expired ones."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from odcd.executor.kubernetes.cluster import Cluster

PLUGIN = """
import json, pathlib, sys
count = pathlib.Path(sys.argv[1])
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
    "status": {"token": f"t{number}", "expirationTimestamp": sys.argv[2]},
}))
"""
"""As `aws eks get-token`: each call gives another token, and says until when it is good."""


async def _head(reader: asyncio.StreamReader) -> bytes:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        return await reader.readuntil(b"\r\n\r\n")
    return b""


def bearers(folder: Path, ends_at: datetime, requests: int = 3) -> list[str]:
    """The tokens used by this many requests."""
    seen: list[str] = []
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            lines = head.decode().lower().split("\r\n")
            seen.extend(line.partition("bearer ")[2] for line in lines if "bearer " in line)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: 2\r\n\r\n{}")
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        over.set()

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        plugin, kubeconfig = folder / "plugin.py", folder / "kubeconfig"
        plugin.write_text(PLUGIN)
        until = ends_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1beta1", "command": sys.executable,
                "args": [str(plugin), str(folder / "count"), until],
                "interactiveMode": "Never",
            }}}],
        }  # fmt: skip
        kubeconfig.write_text(json.dumps(config))
        cluster = await Cluster.connect(kubeconfig)
        try:
            for _ in range(requests):
                await cluster.get("/version")
        finally:
            await cluster.close()
            await over.wait()
            server.close()

    asyncio.run(work())
    return seen


def test_an_expired_token_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUG-16: however long it was good for, its own word counts."""
    monkeypatch.setattr("odcd.executor.kubernetes.renewal.PAUSE_S", 0.0)
    assert bearers(tmp_path, datetime.now(UTC) - timedelta(seconds=1)) == ["t2", "t3", "t4"]


def test_the_credential_program_is_not_run_for_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its start alone may take longer than the usual pause.
    monkeypatch.setattr("odcd.executor.kubernetes.renewal.PAUSE_S", 3600.0)
    assert bearers(tmp_path, datetime.now(UTC) - timedelta(seconds=1)) == ["t2"] * 3


def test_a_valid_token_is_used_again(tmp_path: Path) -> None:
    assert set(bearers(tmp_path, datetime.now(UTC) + timedelta(hours=1))) == {"t1"}
