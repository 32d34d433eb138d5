"""Followers of arrays and gangs: each has as many outputs as tasks run."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from odcd.api.merged_lines import Lines, merged
from odcd.executor.tail import CHUNK_BYTES
from odcd.fairness import outputs
from odcd.fairness.outputs import Outputs
from tests.odcd.api.service import Service, serve
from tests.odcd.api.test_logs import Output

MIB = 1024 * 1024


def test_outputs_that_wait_for_a_client_take_little_more_than_their_size() -> None:
    """Before: an object for each line. Three clients that followed an array of 300 tasks, and read
    nothing, took 1.5 GB of the daemon's memory."""
    count = 100

    async def output() -> AsyncGenerator[bytes]:
        yield b"ab\n" * (CHUNK_BYTES // 3)

    async def fill(lines: Lines, readers: asyncio.TaskGroup) -> None:
        for number in range(count):
            readers.create_task(lines.copy(b"7_%d: " % number, output()))

    async def take_one() -> None:
        async with aclosing(merged(fill, "many")) as pieces:
            assert (await anext(pieces)).startswith(b"7_0: ab\n7_0: ab\n")
            for _ in range(10):
                await asyncio.sleep(0)
            _, peak = tracemalloc.get_traced_memory()
            assert peak < 2 * count * CHUNK_BYTES + MIB

    tracemalloc.start()
    try:
        asyncio.run(take_one())
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 7, 4096, 100_000])
def test_the_division_into_lines_does_not_depend_on_the_pieces(size: int) -> None:
    text = b"\n\nab\n" + b"x" * 65536 + b"\n" + b"y" * 65537 + b"\n" + b"z" * 200_000 + b"\nend"

    async def output(size: int) -> AsyncGenerator[bytes]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    async def read(size: int) -> bytes:
        async def fill(lines: Lines, readers: asyncio.TaskGroup) -> None:
            await lines.copy(b"0: ", output(size))

        return b"".join([piece async for piece in merged(fill, "one")])

    lines = asyncio.run(read(size)).split(b"\n")
    assert [len(line) - 3 for line in lines[:-1]] == [
        0, 0, 2, 65536, 65536, 1, 65536, 65536, 65536, 200_000 - 3 * 65536, 3,
    ]  # fmt: skip


def test_a_user_follows_a_limited_number_of_outputs_side_by_side(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: as many as tasks ran, for each client. Twenty-six followers of an array of 768 tasks
    opened more files than the daemon may, so that it accepted no connection."""
    monkeypatch.setattr(outputs, "PER_USER", 1)
    executor = Output([b"one\n"], [b"two\n"], [b"three\n"])

    async def work(service: Service) -> None:
        job_id = await service.submit(node_count=3, gpus=None, gpus_per_node=8, stdout="%t.out")
        await service.plan()
        async with service.client() as client:
            params = {"rank": "all", "follow": "true"}
            answer = await client.get(f"/v1/jobs/{job_id}/logs", params=params)
        assert sorted(answer.content.splitlines()) == [b"0: one", b"1: two", b"2: three"]

    serve(database_url, work, nodes=3, executor_of=lambda: executor)
    assert executor.most_open == 1


def test_no_user_waits_for_the_places_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "PER_USER", 1)

    async def work() -> None:
        places = Outputs()
        async with places.place(1001), places.place(1002):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), places.place(1001):
                    pass
        async with places.place(1001):
            pass

    asyncio.run(work())
