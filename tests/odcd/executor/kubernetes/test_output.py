"""The stored output of a member whose pod is deleted, for every way in which its log can end."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.naming import Key, Namespaces
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.shortened import HEAD_BYTES, Shortened
from odcd.records.output import StoredOutput

KEY = (7, 1, 0)
STAMP = b"2026-01-01T12:00:00.000000000Z "
GONE = ApiRefused(404, Status(message='pods "odc-7-1-0" not found'), None)


class Log:
    """A cluster with one log: its pieces, and then its end."""

    def __init__(self, *pieces: bytes, end: Exception | None = None) -> None:
        self._pieces = pieces
        self._end = end
        self.content = self

    @asynccontextmanager
    async def stream(self, *_: Any, **__: Any) -> AsyncGenerator[Log]:
        if self._end is not None and not self._pieces:
            raise self._end
        yield self

    async def iter_chunked(self, _: int) -> AsyncGenerator[bytes]:
        for number, piece in enumerate(self._pieces):
            yield piece if number else STAMP + piece
        if self._end is not None:
            raise self._end


class Store:
    """As odc.keep_output does: the longer one is kept."""

    def __init__(self) -> None:
        self.kept: StoredOutput | None = None

    async def save(
        self, key: Key, content: bytes, written: int, now: datetime, through: str | None = None
    ) -> None:
        if self.kept is None or written >= self.kept.written:
            self.kept = StoredOutput(content, written, through)

    async def get(self, key: Key) -> StoredOutput | None:
        return self.kept

    async def is_live(self, job_id: int, attempt: int) -> bool:
        return False


def keep(store: Store, log: Log, *, follow: bool = False, opened: list[bool] | None = None) -> str:
    output = PodOutput(log, store, SystemClock(), Namespaces(), 1 << 20)  # pyright: ignore[reportArgumentType]
    opens = opened if opened is not None else []
    asyncio.run(output.keep(KEY, "gpu-batch", follow=follow, on_open=lambda: opens.append(True)))
    assert store.kept is not None
    return zlib.decompress(store.kept.content).decode()


def test_a_log_that_was_empty_at_first_is_read_again() -> None:
    store = Store()
    assert keep(store, Log(), follow=True) == ""
    assert keep(store, Log(b"one\n")) == "one\n"


def test_a_deleted_log_does_not_replace_saved_output() -> None:
    store = Store()
    keep(store, Log(b"x\n"), follow=True)
    assert keep(store, Log(end=GONE)) == "x\n"


def test_an_unread_log_is_replaced_by_the_reason() -> None:
    assert "not found" in keep(Store(), Log(end=GONE))


def test_output_read_before_an_api_server_failure_is_kept() -> None:
    store = Store()
    with pytest.raises(RunnerDown):
        keep(store, Log(b"half", end=RunnerDown("away")), follow=True)
    assert store.kept is not None
    assert (zlib.decompress(store.kept.content), store.kept.written) == (b"half", 4)
    assert keep(store, Log(b"half", b" and whole")) == "half and whole"


def test_on_open_is_called_when_the_log_opens() -> None:
    opened: list[bool] = []
    keep(Store(), Log(b"x"), opened=opened)
    assert opened == [True]
    keep(Store(), Log(end=GONE), opened=opened)
    assert opened == [True]


def test_long_output_keeps_both_ends_and_marks_the_cut() -> None:
    short = Shortened(2 * HEAD_BYTES)
    for number in range(100_000):
        short.feed(b"line %06d\n" % number)
    content = short.content()
    assert content.startswith(b"line 000000\n")
    assert content.endswith(b"line 099999\n")
    assert b"bytes are not kept here]\n" in content
    assert short.written == 1_200_000
    assert len(content) < 2 * HEAD_BYTES + 100


def test_a_shortened_output_continues_as_if_it_had_never_been_stored() -> None:
    whole, half = Shortened(2 * HEAD_BYTES), Shortened(2 * HEAD_BYTES)
    lines = [b"line %06d\n" % number for number in range(60_000)]
    for number, line in enumerate(lines):
        whole.feed(line)
        if number == 40_000:
            half = Shortened.resume(2 * HEAD_BYTES, half.content(), half.written)
        half.feed(line)
    assert half.content() == whole.content()
