"""Sends the submits that arrive together as one transaction: a commit costs the same for one job
and for a thousand."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any, Protocol

import msgspec

from odcd.clock import Clock, Turns
from odcd.errors import DatabaseDown, Unavailable
from odcd.jobs.submission import Prepared
from odcd.records.job import Submitted

BATCH_JOBS = 2_000
BATCH_BYTES = 8 * 1024 * 1024
BATCH_TERMS = 2_000
"""Dependencies of one transaction, if it has several requests: everybody waits for its turn."""
SMALL_JOBS = SMALL_TERMS = 200
"""A request with more jobs or dependencies has a transaction that others do not wait for: it takes
up to 1 ms for each."""
ANSWER_TIMEOUT_S = 30.0
"""Longer than any commit; a client that waits this long had better ask again."""
_encoder = msgspec.json.Encoder(order="sorted")


class SubmitStore(Protocol):
    async def submit(
        self, requests: str, digests: Sequence[str], texts: Sequence[str], now: datetime
    ) -> list[list[Submitted]]: ...


@dataclass(slots=True, kw_only=True)
class _Waiting:
    number: int
    prepared: Prepared
    answer: asyncio.Future[list[Submitted]]

    @property
    def uid(self) -> int:
        return self.prepared.request["uid"]


class _Lane:
    """Requests that wait for a sender: of each user in their order, of users in turn."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sender: asyncio.Task[None] | None = None
        self.sending: set[int] = set()
        """Users whose requests are in PostgreSQL."""
        self._users: dict[int, deque[_Waiting]] = {}
        """In the order of their turns."""

    def __bool__(self) -> bool:
        return bool(self._users)

    def add(self, waiting: _Waiting) -> None:
        self._users.setdefault(waiting.uid, deque()).append(waiting)

    def first(self, uid: int) -> _Waiting | None:
        """The next request of a user; those whose client has gone are dropped."""
        requests = self._users.get(uid, deque())
        while requests and requests[0].answer.done():
            requests.popleft()
        if not requests:
            self._users.pop(uid, None)
            return None
        return requests[0]

    def take_batch(self, may_go: Callable[[_Waiting], bool]) -> list[_Waiting]:
        batch: list[_Waiting] = []
        jobs = size = terms = 0
        left = list(self._users)
        while left:
            later: list[int] = []
            for uid in left:
                waiting = self.first(uid)
                if waiting is None or not may_go(waiting):
                    continue
                jobs += waiting.prepared.job_count
                size += waiting.prepared.size
                terms += waiting.prepared.terms
                if batch and (jobs > BATCH_JOBS or size > BATCH_BYTES or terms > BATCH_TERMS):
                    return batch
                batch.append(waiting)
                requests = self._users.pop(uid)
                requests.popleft()
                if requests:
                    self._users[uid] = requests
                    later.append(uid)
            left = later
        return batch

    def cancel_all(self) -> None:
        for requests in self._users.values():
            for waiting in requests:
                waiting.answer.cancel()
        self._users.clear()


class SubmitBatcher:
    """Submits that arrive in one tick of the event loop, and those that arrive while a batch is in
    PostgreSQL, become the next batch. Large requests have batches of their own, at the same time.

    A transaction holds what limits its users (pending_bound, stored_bound) to its end, so small
    requests of a user never share one with others' while a large one of hers is being written.
    """

    def __init__(
        self, store: SubmitStore, clock: Clock, *, pending: int | None = None,
        stored_bytes: int | None = None, check_disk: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """pending: jobs that a user may have pending; stored_bytes: what a user's submits may add
        to the database per day. Operators have no limits. check_disk: raises DiskAlmostFull."""
        self._check_disk = check_disk
        self._limits = limits_of(pending, stored_bytes)
        self._store = store
        self._clock = clock
        self._numbers = count()
        self._small = _Lane("send-submits")
        self._large = _Lane("send-large-submits")

    async def submit(self, prepared: Prepared) -> list[Submitted]:
        """An answer for each job of the request, in order.

        Raises DatabaseDown when PostgreSQL did not answer; it may have committed then, and the same
        idempotency key answers that. Raises DiskAlmostFull. If cancelled before its batch was sent,
        the request is dropped.
        """
        if not prepared.request["dry_run"]:
            self._check_disk()
        answer: asyncio.Future[list[Submitted]] = asyncio.get_running_loop().create_future()
        many = prepared.job_count > SMALL_JOBS or prepared.terms > SMALL_TERMS
        large = many or prepared.size > BATCH_BYTES
        lane = self._large if large else self._small
        lane.add(_Waiting(number=next(self._numbers), prepared=prepared, answer=answer))
        self._start(lane)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise DatabaseDown(
                f"PostgreSQL did not answer for {ANSWER_TIMEOUT_S:.0f} s",
                "Send it again with the same idempotency key: if it was accepted, you get its id.",
            ) from None

    def _start(self, lane: _Lane) -> None:
        if lane and lane.sender is None:
            # Not in a TaskGroup: it belongs to all who wait, and gives every error to them.
            # Nor is it the user's who came first: its statements are the daemon's own.
            lane.sender = asyncio.create_task(
                self._send(lane), name=lane.name, context=contextvars.Context()
            )

    async def _send(self, lane: _Lane) -> None:
        other = self._small if lane is self._large else self._large
        try:
            while batch := lane.take_batch(self._may_go(lane)):
                lane.sending = {waiting.uid for waiting in batch}
                try:
                    await self._send_batch(batch)
                finally:
                    lane.sending = set()
                # Start the lane that waited for these users.
                self._start(other)
        except BaseException:
            lane.cancel_all()
            other.cancel_all()
            raise
        finally:
            lane.sender = None

    def _may_go(self, lane: _Lane) -> Callable[[_Waiting], bool]:
        """Not beside a large request of the same user, nor, if it is large itself, before a small
        one that came earlier."""
        if lane is self._small:
            return lambda waiting: waiting.uid not in self._large.sending

        def large_may_go(waiting: _Waiting) -> bool:
            earlier = self._small.first(waiting.uid)
            return earlier is None or earlier.number > waiting.number

        return large_may_go

    async def _send_batch(self, batch: list[_Waiting]) -> None:
        try:
            answers = await self._submit([waiting.prepared for waiting in batch])
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.answer.cancel()
            raise
        except Unavailable as error:
            for waiting in batch:
                _fail(waiting, type(error)(error.message, error.hint))
        except Exception as error:
            if len(batch) == 1:
                _fail(batch[0], error)
                return
            # Nothing was committed: find the request that spoils the batch.
            for waiting in batch:
                await self._send_batch([waiting])
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)

    async def _submit(self, batch: list[Prepared]) -> list[list[Submitted]]:
        texts: dict[str, str] = {}
        for prepared in batch:
            texts |= prepared.texts
        turns = Turns()
        compact = [
            await compact_request(prepared.request, self._limits, turns) for prepared in batch
        ]
        requests = _encoder.encode(compact).decode()
        return await self._store.submit(
            requests, list(texts), list(texts.values()), self._clock.now()
        )


def limits_of(pending: int | None, stored_bytes: int | None) -> dict[str, int]:
    """Of a request; None: no limit."""
    both = {"pending_limit": pending, "stored_limit": stored_bytes}
    return {name: limit for name, limit in both.items() if limit is not None}


async def compact_request(
    request: dict[str, Any], limits: dict[str, int], turns: Turns
) -> dict[str, Any]:
    """With the limits of its user, and without what is null or empty: half of most jobs, and
    PostgreSQL would read it all."""
    jobs: list[dict[str, Any]] = []
    for job in request["jobs"]:
        jobs.append({name: value for name, value in job.items() if value or value == 0})
        if turns.are_due():
            await turns.take()
    if not request["operator"] and not request["dry_run"]:
        return {**request, "jobs": jobs, **limits}
    return {**request, "jobs": jobs}


def _fail(waiting: _Waiting, error: BaseException) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
