"""The page shows the end of a long output at once, and then everything as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from odcd.page import tail as module
from odcd.page.tail import CUT, KEPT_BYTES, QUIET_S, tail


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stalls makes no pieces of what comes at once."""
    monkeypatch.setattr(module, "LONGEST_S", 60.0)


def read(*steps: bytes | float) -> list[bytes]:
    """The output for these pieces, with pauses between them."""
    closed: list[int] = []

    async def pieces() -> AsyncGenerator[bytes]:
        try:
            for step in steps:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            closed.append(1)

    async def run() -> list[bytes]:
        return [piece async for piece in tail(pieces())]

    found = asyncio.run(run())
    assert closed == [1]
    return found


def test_a_short_output_is_whole() -> None:
    assert read(b"one\n", b"two\n") == [b"one\ntwo\n"]
    assert read() == []


def test_later_output_is_sent_at_once() -> None:
    assert read(b"past\n", 3 * QUIET_S, b"a", b"b") == [b"past\n", b"a", b"b"]
    assert read(3 * QUIET_S, b"a", 3 * QUIET_S, b"b") == [b"a", b"b"]


def test_long_output_is_cut_to_its_last_whole_lines() -> None:
    lines = b"".join(b"line %d\n" % n for n in range(200_000))
    pieces = [lines[at : at + 65_536] for at in range(0, len(lines), 65_536)]
    [end] = read(*pieces)
    assert end.startswith(CUT + b"line ")
    assert lines.endswith(end.removeprefix(CUT))
    assert KEPT_BYTES - 100 < len(end) <= KEPT_BYTES + len(CUT)


def test_output_of_a_job_that_never_pauses_is_sent_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LONGEST_S", 0.2)
    found = read(*([b"step\n", QUIET_S / 4] * 30))
    assert b"".join(found) == b"step\n" * 30
    assert len(found) >= 3


def test_a_reader_that_leaves_closes_the_source() -> None:
    async def run() -> None:
        closed = asyncio.Event()

        async def pieces() -> AsyncGenerator[bytes]:
            try:
                yield b"a"
                await asyncio.Event().wait()
            finally:
                closed.set()

        reading = tail(pieces())
        assert await anext(reading) == b"a"
        await reading.aclose()
        assert closed.is_set()

    asyncio.run(run())
