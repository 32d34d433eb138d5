"""A file that never answers delays only its user."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from odcd.executor.file_threads import PER_USER, FileThreads

ANN, BOB = 64001, 64002


def test_files_that_never_answer_delay_only_their_user() -> None:
    asyncio.run(hold_up_one())


async def hold_up_one() -> None:
    threads, gate = FileThreads(), threading.Event()
    stuck = [asyncio.create_task(threads.run(ANN, partial(gate.wait, 60))) for _ in range(50)]
    await asyncio.sleep(0)
    assert await threads.run(BOB, lambda: "read") == "read"
    assert await asyncio.to_thread(lambda: "others") == "others"
    assert sum(t.name == "files" for t in threading.enumerate()) <= PER_USER + 1
    for task in stuck[PER_USER:]:
        task.cancel()
    gate.set()
    assert await asyncio.gather(*stuck[:PER_USER]) == [True] * PER_USER
    assert await threads.run(ANN, lambda: "again") == "again"


def test_an_error_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        asyncio.run(FileThreads().run(ANN, fail))


def test_a_late_result_is_dropped() -> None:
    dropped = asyncio.run(come_too_late())
    assert dropped == [7]


async def come_too_late() -> list[int]:
    threads, gate = FileThreads(), threading.Event()
    begun, is_dropped = threading.Event(), threading.Event()
    dropped: list[int] = []

    def work() -> int:
        begun.set()
        gate.wait(60)
        return 7

    def drop(result: int) -> None:
        dropped.append(result)
        is_dropped.set()

    task = asyncio.create_task(threads.run(ANN, work, drop=drop))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    await asyncio.wait([task])
    gate.set()
    assert await asyncio.to_thread(is_dropped.wait, 60)
    return dropped
