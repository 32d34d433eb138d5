"""Nothing that a member writes is lost when kubelet rotates its log, or when reading is
interrupted."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from odcd.clock import SystemClock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import followers
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused, Status
from odcd.executor.kubernetes.followers import Followers
from odcd.executor.kubernetes.log_lines import LogLines, Position
from odcd.executor.kubernetes.naming import Namespaces
from odcd.executor.kubernetes.output import PodOutput
from odcd.records.dispatch import Dispatch
from tests.odcd.executor.kubernetes.test_output import KEY, Store

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def line(at_s: float, text: str) -> bytes:
    at = BEGAN + timedelta(seconds=at_s)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z {text}\n".encode()


class Kubelet:
    """Serves the newest file of one log. A follower reads on when the file is rotated."""

    def __init__(self) -> None:
        self.file: list[bytes] = []
        self.over = False
        self.gone = False
        self.removed = False
        self.away = False
        self.asked: list[dict[str, str]] = []
        self._more = asyncio.Event()
        self._rotations = 0
        self._cut = 0
        self._since = ""
        self._follow = False
        self.content = self

    def write(self, *lines: bytes) -> None:
        self.file += lines
        self._wake()

    def rotate(self) -> None:
        self.file = []
        self._wake()

    def cut(self) -> None:
        """Every connection breaks."""
        self._cut += 1
        self._wake()

    def end(self) -> None:
        self.over = True
        self._wake()

    def _wake(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()

    @asynccontextmanager
    async def stream(
        self, path: str, query: Sequence[tuple[str, str]], **_: Any
    ) -> AsyncGenerator[Kubelet]:
        asked = dict(query)
        if self.gone:
            raise ApiRefused(404, Status(message="not found"), None)
        if self.away:
            raise RunnerDown("away")
        self.asked.append(asked)
        self._since, self._follow = (
            asked.get("sinceTime", "").rstrip("Z"),
            asked["follow"] == "true",
        )
        yield self

    async def iter_chunked(self, _: int) -> AsyncGenerator[bytes]:
        if self.removed:
            yield b"unable to retrieve container logs for containerd://b387e3f7"
            return
        since, follow, cut = self._since.encode(), self._follow, self._cut
        file, read = self.file, 0
        while True:
            more = self._more
            for piece in file[read:]:
                if piece[: len(since)] >= since:
                    # Pieces end anywhere.
                    half = len(piece) // 2
                    yield piece[:half]
                    yield piece[half:]
            read = len(file)
            if self._cut > cut:
                raise RunnerDown("the connection broke")
            if file is not self.file:
                file, read = self.file, 0
            elif self.over or not follow:
                return
            else:
                await more.wait()


class Site:
    def __init__(self, most: int = 10) -> None:
        self.kubelet, self.store = Kubelet(), Store()
        clock = SystemClock()
        self.output = PodOutput(cast("Any", self.kubelet), self.store, clock, Namespaces(), 1 << 20)
        self.background = Background(lambda: None, clock)
        self.followers = Followers(self.output, self.background, clock, most)

    async def until(self, text: str) -> None:
        """Until the member's output was read so far."""
        async with asyncio.timeout(60):
            while text not in await self.text():
                await asyncio.sleep(0.01)

    async def text(self) -> str:
        await self.followers.checkpoint(KEY)
        kept = self.store.kept
        return "" if kept is None else zlib.decompress(kept.content).decode()

    async def finish(self) -> str:
        self.kubelet.end()
        assert await self.followers.finish(KEY, 60)
        await self.background.close()
        return await self.text()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers, "RETRY_S", (0.01, 0.02))
    monkeypatch.setattr(followers, "END_S", 0.01)


def test_output_before_a_rotation_is_kept() -> None:
    """Before: only what was written after the last rotation."""

    async def work() -> str:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "first"), line(1, "second"))
        await site.until("second")
        site.kubelet.rotate()
        site.kubelet.write(line(2, "third"))
        await site.until("third")
        site.kubelet.rotate()
        site.kubelet.write(line(3, "last"))
        return await site.finish()

    assert asyncio.run(work()) == "first\nsecond\nthird\nlast\n"


def test_kubelets_message_about_a_removed_container_is_no_output() -> None:
    """Before: it stood in the job's output, below a mark that output may be missing."""

    async def work() -> str:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "up"), line(1, "saved"))
        await site.until("saved")
        site.kubelet.removed = True
        site.kubelet.cut()
        return await site.finish()

    assert asyncio.run(work()) == "up\nsaved\n"


def test_reading_continues_after_an_interruption_where_it_stopped() -> None:
    """Within the same second, too, and in the middle of a line."""

    async def work() -> str:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "one"), line(0.5, "two"))
        await site.until("two")
        site.kubelet.cut()
        site.kubelet.write(line(0.6, "three"))
        await site.until("three")
        site.kubelet.cut()
        site.kubelet.write(line(7, "four"))
        return await site.finish()

    assert asyncio.run(work()) == "one\ntwo\nthree\nfour\n"


def test_another_daemon_continues_where_the_first_one_stored_the_output() -> None:
    async def work() -> str:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "before the rotation"))
        await site.until("before")
        site.kubelet.rotate()
        site.kubelet.write(line(5, "stored"))
        await site.until("stored")
        await site.background.close()
        site.kubelet.write(line(6, "while nobody led"))
        second = Site()
        second.kubelet, second.store = site.kubelet, site.store
        second.output = PodOutput(
            cast("Any", site.kubelet), site.store, SystemClock(), Namespaces(), 1 << 20
        )
        second.followers = Followers(second.output, second.background, SystemClock())
        second.followers.begin(KEY, "gpu-batch")
        await second.until("nobody")
        return await second.finish()

    assert asyncio.run(work()) == "before the rotation\nstored\nwhile nobody led\n"


def test_output_that_was_rotated_away_while_it_could_not_be_read_is_marked() -> None:
    async def work() -> str:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "one"))
        await site.until("one")
        site.kubelet.away = True
        site.kubelet.cut()
        await asyncio.sleep(0)
        site.kubelet.write(line(1, "lost"))
        site.kubelet.rotate()
        site.kubelet.write(line(30, "after"), line(31, "end"))
        site.kubelet.away = False
        await site.until("end")
        return await site.finish()

    text = asyncio.run(work())
    assert text.startswith("one\n")
    assert text.endswith("after\nend\n")
    assert "output of 2026-01-01 12:00:00 to 12:00:30 UTC may be missing here" in text


def test_a_log_that_is_not_followed_waits_for_its_turn() -> None:
    async def work() -> None:
        site = Site(most=1)
        other = (8, 1, 0)
        site.followers.begin(other, "gpu-batch")
        site.followers.begin(KEY, "gpu-batch")
        await asyncio.sleep(0.05)
        assert not await site.followers.checkpoint(KEY)
        site.kubelet.end()
        assert await site.followers.finish(other, 60)
        site.kubelet.over = False
        site.kubelet.write(line(0, "mine"))
        await site.until("mine")
        assert await site.finish()

    asyncio.run(work())


def test_an_end_does_not_wait_for_a_log_that_hangs() -> None:
    async def work() -> None:
        site = Site()
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "so far"))
        await site.until("so far")
        assert not await site.followers.finish(KEY, 0.05)
        await site.background.close()
        kept = site.store.kept
        assert kept is not None
        assert zlib.decompress(kept.content) == b"so far\n"
        assert kept.through is not None, "what follows is read when it can be"

    asyncio.run(work())


def test_a_log_that_hangs_is_given_up_when_its_pod_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: it would have kept its place forever."""
    monkeypatch.setattr(followers, "DROP_S", 0.05)

    async def work() -> None:
        site = Site(most=1)
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "so far"))
        await site.until("so far")
        site.followers.forget(KEY)
        other = (8, 1, 0)
        site.followers.begin(other, "gpu-batch")
        async with asyncio.timeout(60):
            while not await site.followers.checkpoint(other):
                await asyncio.sleep(0.01)
        await site.background.close()

    asyncio.run(work())


def test_a_user_sees_what_was_rotated_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: `odcctl logs` of a running job began after the last rotation."""
    monkeypatch.setattr(followers, "SAVE_BYTES", 1)

    async def work() -> bytes:
        site = Site()
        site.store.is_live = cast("Any", _live)
        site.output.refresh = site.followers.refresh
        site.followers.begin(KEY, "gpu-batch")
        site.kubelet.write(line(0, "one"))
        await site.until("one")
        site.kubelet.rotate()
        site.kubelet.write(line(1, "two"))
        await site.until("two")
        dispatch = cast("Dispatch", _Dispatch())
        shown = [text async for text in site.output.logs(dispatch, 0, follow=False)]
        await site.finish()
        return b"".join(shown)

    assert asyncio.run(work()) == b"one\ntwo\n"


class _Dispatch:
    key = KEY[:2]


async def _live(*_: object) -> bool:
    return True


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_times_are_removed_wherever_the_pieces_end(size: int) -> None:
    texts = ["", "x" * 40_000, "2026-01-01T00:00:00Z looks like a time", "end"]
    log = b"".join(line(number, text) for number, text in enumerate(texts))
    lines = LogLines()
    read = b"".join(lines.feed(log[at : at + size]) for at in range(0, len(log), size))
    assert (read + lines.end()).decode() == "".join(f"{text}\n" for text in texts)
    assert lines.position == Position("2026-01-01T12:00:03.000000000Z", 4)


def test_lines_that_are_stored_out_of_order_are_neither_lost_nor_repeated() -> None:
    log = [line(1.2, "b"), line(1.1, "a"), line(1.3, "c"), line(1.25, "d")]
    for stop in range(1, 5):
        first = LogLines()
        read = b"".join(map(first.feed, log[:stop]))
        second = LogLines(first.position)
        read += b"".join(map(second.feed, log)) + second.end()
        assert read == b"b\na\nc\nd\n"


@given(
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9 - 1)), min_size=1, max_size=6),
    st.integers(0, 200),
)
def test_nothing_is_lost_or_repeated_wherever_reading_is_interrupted(
    steps: list[tuple[int, int]], cut: int
) -> None:
    """Standard output and error are copied each by itself, so a later line may have an earlier
    time. Before: it was lost if it had an earlier second, too, because kubelet left it out."""
    now_s, log = 10.0, list[bytes]()
    for number, (step, back) in enumerate(steps):
        now_s += step / 1e9
        log.append(line(now_s - back / 1e9, f"line {number}"))
    whole = b"".join(log)
    assume(len({one[:30] for one in log}) == len(log))
    first = LogLines()
    read = first.feed(whole[:cut])
    second = LogLines(first.position)
    since = first.position.since[:-1].encode() if first.position else b""
    read += second.feed(b"".join(one for one in log if one[: len(since)] >= since)) + second.end()
    assert read.decode() == "".join(f"line {number}\n" for number in range(len(log)))


def test_an_unfinished_line_is_continued() -> None:
    whole = line(1, "12345")
    first = LogLines()
    read = first.feed(whole[:-4])
    assert first.position is not None
    second = LogLines(first.position)
    assert read + second.feed(whole) == b"12345\n"
    third = LogLines(first.position)
    third.feed(whole[:-1])
    assert read + third.end() == b"12345"


def test_lines_of_one_moment_are_read_once_each() -> None:
    """Found with a log whose lines had the same time: the last one was stored twice."""
    stamp = b"2026-01-01T12:00:00.000000000Z "
    log = b"".join(stamp + line for line in (b"one\n", b"two\n", b"six\n"))
    for cut in range(len(log) + 1):
        first = LogLines()
        read = first.feed(log[:cut])
        position = first.position and Position.parse(str(first.position))
        second = LogLines(position)
        assert read + second.feed(log) + second.end() == b"one\ntwo\nsix\n", cut
