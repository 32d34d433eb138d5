"""A user's Dockerfile folder cannot stop the daemon, nor the builds of others."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from odcd.api.http.identity import Peer
from odcd.builds.reading import Reader
from odcd.database.slots import ask_as
from odcd.errors import OdcError, TooLarge
from tests.odcd.api.service import BOB, Service, on_socket, over, serve
from tests.odcd.builds.test_context import FROM, packed
from tests.support.harness.warm import run

REGISTRY = "registry.example/builds"
CONTEXT = packed(("Dockerfile", FROM))
SLOW = 200_000
"""Digits: Python's tarfile searches them in quadratic time, two minutes for so many."""
HUGE = 1 << 40


def crafted(kind: bytes, content: bytes) -> bytes:
    """A context whose first entry is an extended header."""
    made = io.BytesIO()
    member = tarfile.TarInfo("header")
    member.type, member.size = kind, len(content)
    made.write(member.tobuf(tarfile.USTAR_FORMAT))
    made.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))
    member = tarfile.TarInfo("Dockerfile")
    member.size = len(FROM)
    made.write(member.tobuf(tarfile.USTAR_FORMAT))
    made.write(FROM.ljust(tarfile.BLOCKSIZE, b"\0") + bytes(2 * tarfile.BLOCKSIZE))
    return gzip.compress(made.getvalue())


def record(name: str, value: object) -> bytes:
    """One record of a PAX header, with its own length before it."""
    rest = f" {name}={value}\n"
    length = len(rest) + 1
    while len(f"{length}{rest}") != length:
        length += 1
    return f"{length}{rest}".encode()


SPARSE = b"".join(
    record(f"GNU.sparse.{name}", value)
    for name, value in (("size", HUGE), ("numblocks", 1), ("offset", 0), ("numbytes", 1))
)
BOMB = crafted(tarfile.XHDTYPE, b"1" * SLOW)


def test_a_context_that_takes_too_long_is_ended_while_another_is_read() -> None:
    """Before: one context of 800 bytes kept the daemon's only interpreter for minutes."""

    async def work() -> None:
        slow = Reader(limit_s=0.5)
        with pytest.raises(TooLarge, match="too much time or memory"):
            await slow.read(BOMB, "Dockerfile")
        reader = Reader()

        async def attack() -> None:
            ask_as("eve", "/v1/builds")
            await reader.read(BOMB, "Dockerfile")

        attacks = [asyncio.create_task(attack()) for _ in range(3)]
        ask_as("bob", "/v1/builds")
        read = await reader.read(CONTEXT, "Dockerfile")
        assert len(read.digest) == 64
        assert not any(task.done() for task in attacks)
        for task in attacks:
            task.cancel()
        await asyncio.wait(attacks)

    run(work())


@pytest.mark.parametrize("pax", [SPARSE, record("size", HUGE), record("size", -1)])
def test_a_header_that_promises_a_terabyte_is_refused(pax: bytes) -> None:
    async def work() -> None:
        with pytest.raises(OdcError) as refused:
            await Reader().read(crafted(tarfile.XHDTYPE, pax), "Dockerfile")
        assert refused.value.status in (400, 413)

    run(work())


def test_a_client_that_sends_slowly_keeps_no_other_build_waiting(
    database_url: str, folder: Path
) -> None:
    """Before: the second request waited as long as the first one took."""

    async def work(service: Service) -> None:
        async with on_socket(service, folder / "s"):
            reading, writing = await asyncio.open_unix_connection(folder / "s")
            writing.write(
                b"POST /v1/builds HTTP/1.1\r\nHost: odc\r\nContent-Length: 1000\r\n\r\nbegun"
            )
            await writing.drain()
            async with over(folder / "s") as client:
                # Answered after the slow request, which is still being read.
                assert (await client.get("/health")).status_code == 200
                async with asyncio.timeout(30):
                    answer = await client.post("/v1/builds", content=CONTEXT)
            assert answer.status_code == 200, answer.text
            writing.close()
            reading.feed_eof()

    serve(database_url, work, build_target=lambda: REGISTRY)


@pytest.mark.long
def test_others_are_served_while_a_crafted_context_is_read(database_url: str) -> None:
    async def work(service: Service) -> None:
        async def send(peer: Peer, sent: bytes) -> Any:
            async with service.client(peer) as client:
                return await client.post("/v1/builds", content=sent)

        attack = asyncio.create_task(send(Peer(64001, 64001), BOMB))
        async with asyncio.timeout(60):
            assert (await send(BOB, CONTEXT)).status_code == 200
            assert not attack.done()
            assert (await attack).status_code == 413

    serve(database_url, work, build_target=lambda: REGISTRY)
