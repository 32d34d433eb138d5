"""Send started jobs to the executor. Runs on the leader only."""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.base import Executor
from odcd.isolation import Isolation, IsolationWatch
from odcd.records.dispatch import Dispatch
from odcd.stores.dispatches import DispatchStore

log = logging.getLogger(__name__)

MAX_SENT = 250
"""Jobs sent to the executor at once: they begin to start while the next ones are read."""
MAX_READ_TEXTS = 32
"""How many scripts and environments are read at once."""
MAX_CACHED_TEXTS = 64 * 1024 * 1024
MAX_TRIES = 3
"""A job whose dispatch cannot be read or sent this often fails."""

FailStart = Callable[[int, str], Awaitable[None]]


class Starts:
    def __init__(
        self, term: int, dispatches: DispatchStore, executor: Executor, clock: Clock,
        fail_start: FailStart | None = None, watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """fail_start: ends a job that cannot be sent, with a reason; None: it is only set aside."""
        self._term = term
        self._dispatches = dispatches
        self._executor = executor
        self._fail_start = fail_start
        self._texts = _TextCache(dispatches)
        self._isolation = Isolation[int]("starts", clock, watch)

    async def send(self, job_ids: Iterable[int]) -> bool:
        """Send the running attempts of these jobs to the executor; repeating this is harmless.
        Return whether the executor accepted them. Raises DatabaseBusy."""
        every = list(job_ids)
        try:
            await self._isolation.together(
                every, self._send, most=MAX_SENT, job_id=lambda job_id: job_id
            )
        except RunnerDown as error:
            log.error("plan.runner_down", extra={"why": error.message, "jobs": len(every)})
            return False
        for job_id in every:
            if self._isolation.tries(job_id) >= MAX_TRIES and self._fail_start is not None:
                why = self._isolation.why(job_id)
                await self._isolation.one(job_id, self._fail_start(job_id, why), job_id=job_id)
        return True

    async def _send(self, job_ids: Sequence[int]) -> None:
        dispatches = await self._dispatches.list(self._term, job_ids)
        for part in self._texts.parts(dispatches):
            await self._executor.start(part, await self._texts.of(part))


class _TextCache:
    """Scripts and environments by digest: most jobs of one user share them."""

    def __init__(self, dispatches: DispatchStore) -> None:
        self._dispatches = dispatches
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    def parts(self, dispatches: Iterable[Dispatch]) -> Iterator[list[Dispatch]]:
        """Parts that lack at most MAX_READ_TEXTS texts each: one text has up to 4 MiB."""
        part: list[Dispatch] = []
        missing: set[str] = set()
        for dispatch in dispatches:
            named = {dispatch.script_digest, dispatch.environment_digest} - self._texts.keys()
            if part and len(missing | named) > MAX_READ_TEXTS:
                yield part
                part, missing = [], set()
                named -= self._texts.keys()
            part.append(dispatch)
            missing |= named
        if part:
            yield part

    async def of(self, dispatches: Iterable[Dispatch]) -> dict[str, str]:
        digests = {digest for d in dispatches for digest in (d.script_digest, d.environment_digest)}
        missing = [digest for digest in digests if digest not in self._texts]
        found = {digest: self._texts[digest] for digest in digests if digest in self._texts}
        if missing:
            found |= await self._dispatches.get_texts(missing)
        for digest, text in found.items():
            if digest not in self._texts:
                self._size += sys.getsizeof(text)
            self._texts[digest] = text
            self._texts.move_to_end(digest)
        while self._size > MAX_CACHED_TEXTS:
            _, old = self._texts.popitem(last=False)
            self._size -= sys.getsizeof(old)
        return found
