"""Keep one item that cannot be processed from stopping all others.

Users create most of what the leader's loops process: texts, numbers, times, names, pods. A step
that fails because of one of them would meet it again forever. So each loop processes its items
through Isolation: it finds the item at fault, sets it aside, and tries it again later by itself. An
error that no item causes, such as a lost connection or a lost term, is raised and sets nothing
aside. See docs/decisions/0045.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError, Unavailable

log = logging.getLogger(__name__)

RETRY_S = (30.0, 600.0)
"""After how long an item is tried again: at first, and at most. Each time is twice the last."""
RESTART_S = (1.0, 60.0)
"""The same for a loop that failed."""
STEADY_S = 60.0
"""A loop that ran this long is restarted after the shortest pause."""
SLOW_TRIES = 3
"""An item whose statement alone exceeds the statement timeout this often is set aside."""
MAX_WHY = 500
LOOPS = (
    "passes", "starts", "facts", "stops", "signals", "sweep", "inventory", "expiry", "idle",
    "node-notices", "jupyter", "quarantine", "disks", "elastic", "builds", "cron", "gpu-use",
    "pods", "forecasts", "history", "mail", "webhooks", "outbox", "loops",
)  # fmt: skip
"""The loops that isolate items, as in metrics and in the log; loops: whole loops that failed."""

T = TypeVar("T")


class IsolationWatch(Protocol):
    def isolated(self, loop: str) -> None:
        """An item was set aside, or failed for good."""
        ...

    def count_aside(self, loop: str, more: int) -> None:
        """So many more items of a loop are set aside than before; negative: fewer."""
        ...


class _Nobody:
    def isolated(self, loop: str) -> None: ...
    def count_aside(self, loop: str, more: int) -> None: ...


NOBODY: IsolationWatch = _Nobody()


def is_at_fault(error: BaseException) -> bool:
    """Whether the processed item may be the cause. Unavailable is not its fault: a connection, a
    term, a lock or the time ran out. A group is at fault if all of its errors are."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_at_fault(one) for one in error.exceptions)
    return isinstance(error, Exception) and not isinstance(error, Unavailable | MemoryError)


def explain(error: BaseException) -> str:
    """The error as one short line of printable text."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = error.message if isinstance(error, OdcError) else f"{type(error).__name__}: {error}"
    return "".join(c if c.isprintable() else " " for c in text)[:MAX_WHY]


@dataclass(slots=True)
class _Aside(Generic[T]):
    item: T
    pause_s: float
    again_s: float
    tries: int
    why: str


class Isolation(Generic[T]):
    """The items of one loop."""

    def __init__(
        self, loop: str, clock: Clock, watch: IsolationWatch | None = None,
        key: Callable[[T], Hashable] = lambda item: item,
    ) -> None:  # fmt: skip
        """key: identifies an item that is met again."""
        self._loop, self._clock = loop, clock
        self._watch = watch or NOBODY
        self._key = key
        self._aside: dict[Hashable, _Aside[T]] = {}
        self._slow: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._aside)

    def ready(self, items: Sequence[T]) -> list[T]:
        """Those that may be tried now. Items that failed before come last."""
        if not self._aside:
            return list(items)
        now_s = self._clock.monotonic()
        known = [item for item in items if self._key(item) in self._aside]
        due = [item for item in known if self._aside[self._key(item)].again_s <= now_s]
        return [item for item in items if self._key(item) not in self._aside] + due

    def due(self) -> list[T]:
        """Items set aside whose time has come."""
        now_s = self._clock.monotonic()
        return [aside.item for aside in self._aside.values() if aside.again_s <= now_s]

    def aside(self) -> list[T]:
        """Items that wait for their next try."""
        now_s = self._clock.monotonic()
        return [aside.item for aside in self._aside.values() if aside.again_s > now_s]

    def put(self, item: T, error: BaseException, *, job_id: int | None = None) -> None:
        """Set an item aside: it is at fault. Log it once, and count it each time."""
        key = self._key(item)
        known = self._aside.get(key)
        pause_s = RETRY_S[0] if known is None else min(2 * known.pause_s, RETRY_S[1])
        tries = 1 if known is None else known.tries + 1
        self._aside[key] = _Aside(
            item, pause_s, self._clock.monotonic() + pause_s, tries, explain(error)
        )
        self._slow.pop(key, None)
        self.report(key, error, job_id=job_id, again_s=pause_s, new=known is None)
        if known is None:
            self._watch.count_aside(self._loop, 1)

    def report(
        self, name: object, error: BaseException, *, job_id: int | None = None,
        again_s: float | None = None, new: bool = True,
    ) -> None:  # fmt: skip
        """Log and count an item that was isolated. again_s None: it is not tried again."""
        self._watch.isolated(self._loop)
        facts = {"loop": self._loop, "item": str(name)[:MAX_WHY], "why": explain(error)}
        if job_id is not None:
            facts["job_id"] = str(job_id)
        if again_s is not None:
            facts["again_s"] = f"{again_s:g}"
        # The first time with its traceback: an operator must act.
        trace = error if new and not isinstance(error, OdcError) else None
        log.log(
            logging.ERROR if new else logging.WARNING, "loop.isolated", extra=facts, exc_info=trace
        )

    def clear(self, item: T) -> None:
        """The item was processed."""
        key = self._key(item)
        self._slow.pop(key, None)
        if self._aside.pop(key, None) is not None:
            log.info("loop.released", extra={"loop": self._loop, "item": str(key)[:MAX_WHY]})
            self._watch.count_aside(self._loop, -1)

    def tries(self, item: T) -> int:
        """How often the item has failed."""
        aside = self._aside.get(self._key(item))
        return 0 if aside is None else aside.tries

    def why(self, item: T) -> str:
        """Why the item failed last."""
        aside = self._aside.get(self._key(item))
        return "" if aside is None else aside.why

    def keep_only(self, items: Sequence[T]) -> None:
        """Forget items that no longer exist."""
        if self._aside:
            keys = {self._key(item) for item in items}
            gone = self._aside.keys() - keys
            for key in gone:
                del self._aside[key]
            self._watch.count_aside(self._loop, -len(gone))

    @contextmanager
    def guard(self, item: T, *, job_id: int | None = None) -> Generator[None]:
        """Set the item aside if the block fails because of it."""
        try:
            yield
        except Exception as error:
            if not is_at_fault(error):
                raise
            self.put(item, error, job_id=job_id)
        else:
            self.clear(item)

    async def each(
        self, items: Sequence[T], act: Callable[[T], Awaitable[object]],
        job_id: Callable[[T], int | None] = lambda _: None,
    ) -> list[T]:  # fmt: skip
        """Process items one by one; return those that were processed. Raises the errors that are
        not an item's fault."""
        done: list[T] = []
        for item in self.ready(items):
            if await self.one(item, act(item), job_id=job_id(item)):
                done.append(item)
        return done

    async def one(self, item: T, work: Awaitable[object], *, job_id: int | None = None) -> bool:
        """Await the work on one item; return whether it succeeded."""
        done = False
        with self.guard(item, job_id=job_id):
            await work
            done = True
        return done

    async def together(
        self, items: Sequence[T], act: Callable[[Sequence[T]], Awaitable[object]], *,
        most: int | None = None, busy_s: float | None = None,
        job_id: Callable[[T], int | None] = lambda _: None,
    ) -> list[T]:  # fmt: skip
        """Process items in batches; return those that were processed. A batch that fails is halved
        until it is only the item at fault, which is set aside; the others go on.

        most: items per batch; None: all. busy_s: retry after this pause while the database is busy,
        with half of the batch, which may be too large for the statement timeout; None: raise.
        """
        left, done = self.ready(items), list[T]()
        size = limit = max(1, most or len(left))
        while left:
            # An item that failed before is tried alone: it would only halve its batch again.
            batch = left[: 1 if self._key(left[0]) in self._aside else size]
            try:
                await act(batch)
            except DatabaseBusy as error:
                if busy_s is None:
                    raise
                log.warning(
                    "loop.batch_busy",
                    extra={"loop": self._loop, "items": len(batch), "why": error.message},
                )
                if len(batch) == 1 and error.too_slow and self._is_too_slow(batch[0]):
                    self.put(left.pop(0), error, job_id=job_id(batch[0]))
                size = max(1, len(batch) // 2)
                await self._clock.sleep(busy_s)
                continue
            except Exception as error:
                if not is_at_fault(error):
                    raise
                if len(batch) == 1:
                    self.put(left.pop(0), error, job_id=job_id(batch[0]))
                size = max(1, len(batch) // 2)
                continue
            for item in batch:
                self.clear(item)
            done += batch
            left = left[len(batch) :]
            size = min(limit, 2 * size)
        return done

    def _is_too_slow(self, item: T) -> bool:
        key = self._key(item)
        self._slow[key] = self._slow.get(key, 0) + 1
        return self._slow[key] >= SLOW_TRIES


async def keep(
    name: str, loop: Callable[[], Awaitable[None]], clock: Clock,
    watch: IsolationWatch | None = None,
) -> None:  # fmt: skip
    """Run a loop, and restart it after errors that do not end the term: the other loops go on.

    A statement that waited too long changed nothing. Any other error is a defect of odc, or caused
    by an item that was not isolated; it is repeated after a growing pause.
    """
    pause_s = RESTART_S[0]
    while True:
        begun_s = clock.monotonic()
        try:
            await loop()
            return
        except Exception as error:
            if (ending := _ends_term(error)) is not None:
                raise ending from error
            if clock.monotonic() - begun_s >= STEADY_S:
                pause_s = RESTART_S[0]
            if is_at_fault(error):
                (watch or NOBODY).isolated("loops")
                log.error(
                    "leader.loop_failed",
                    extra={"loop": name, "why": explain(error), "again_s": f"{pause_s:g}"},
                    exc_info=error,
                )
                rest_s, pause_s = pause_s, min(2 * pause_s, RESTART_S[1])
            else:
                log.warning("leader.loop_busy", extra={"loop": name, "why": explain(error)})
                rest_s = RESTART_S[0]
        await clock.sleep(rest_s)


def _ends_term(error: BaseException) -> Unavailable | None:
    """The first error in a group because of which another daemon must be able to lead."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_ends_term, error.exceptions)), None)
    busy = isinstance(error, DatabaseBusy)
    return error if isinstance(error, Unavailable) and not busy else None
