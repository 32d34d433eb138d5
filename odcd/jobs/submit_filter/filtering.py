"""Passes submits through the site's filter, and checks what it made of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import msgspec

from odcd.clock import Turns
from odcd.errors import DaemonBusy, FilterFailed, OdcError, SubmitRejected
from odcd.jobs.submit_filter.changes import Kind, changed_spec, failed
from odcd.jobs.submit_filter.process import FilterProcess, Reply
from odcd.jobs.submit_filter.settings import SubmitFilterSettings
from odcd.records.fields import shown
from odcd.records.job import Identity, JobSpec, ReservationSpec

log = logging.getLogger(__name__)

AT_ONCE = 32
AT_ONCE_PER_USER = 2
LOAD_S = 30.0
"""For the check of a start, when the machine may be busy."""
WAIT_S = 30.0
"""A request that has waited this long for its turn is refused."""
MAX_MESSAGE = 2000
HIDDEN = frozenset({"kind"})
SECRET_DETAILS = frozenset({"ssh_keys"})


class Runs(Protocol):
    async def ask(self, parts: Sequence[bytes], limit_s: float) -> Reply: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """specs: in the order of the request. warnings: for the user. changed: the fields that differ
    in any of them."""

    specs: Sequence[JobSpec]
    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    failed: str | None = None
    rejected: str | None = None
    job: int = 0
    changes: dict[int, dict[str, Any]] = {}
    warnings: list[str] = []


class SubmitFilter:
    """At most AT_ONCE requests are filtered at the same time, AT_ONCE_PER_USER of each user: a
    filter that hangs on the requests of one user delays no one else."""

    def __init__(self, process: Runs, *, limit: timedelta, accept_on_failure: bool) -> None:
        self._process = process
        self._limit_s = limit.total_seconds()
        self._accept = accept_on_failure
        self._places = asyncio.Semaphore(AT_ONCE)
        self._own: dict[int, asyncio.Semaphore] = {}
        self._users: Counter[int] = Counter()

    async def check(self) -> None:
        """Load the site's code once. Raises OdcError, with what it printed."""
        reply = await self._process.ask([b'{"facts":{},"jobs":[]}'], max(LOAD_S, self._limit_s))
        try:
            await _read(reply, (), "batch", Turns())
        except FilterFailed as error:
            raise OdcError(
                f"ODC_SUBMIT_FILTER: {error.message}",
                f"It printed: {shown(reply.printed.strip()) or 'nothing'}",
            ) from None

    async def apply(
        self, who: Identity, specs: Sequence[JobSpec], kind: Kind, turns: Turns, *, dry_run: bool
    ) -> Filtered:
        """Raises SubmitRejected, FilterFailed, or DaemonBusy if the request's turn does not
        come."""
        facts = {
            "user": who.user, "uid": who.uid, "gid": who.gid, "operator": who.operator,
            "kind": kind, "dry_run": dry_run,
        }  # fmt: skip
        parts = await _encode(facts, specs, turns)
        async with self._turn(who):
            reply = await self._process.ask(parts, self._limit_s)
        try:
            return await _read(reply, specs, kind, turns)
        except FilterFailed as error:
            log.error(
                "submit_filter.failed",
                extra={"user": who.user, "why": error.message, "output": shown(reply.printed),
                       "accepted": self._accept},
            )  # fmt: skip
            if self._accept:
                return Filtered(specs=specs)
            raise

    @asynccontextmanager
    async def _turn(self, who: Identity) -> AsyncGenerator[None]:
        own = self._own.setdefault(who.uid, asyncio.Semaphore(AT_ONCE_PER_USER))
        self._users[who.uid] += 1
        taken: list[asyncio.Semaphore] = []
        try:
            try:
                async with asyncio.timeout(WAIT_S):
                    for places in (own, self._places):
                        await places.acquire()
                        taken.append(places)
            except TimeoutError:
                raise DaemonBusy(
                    f"job not accepted: the site's submit filter had no time for it in {WAIT_S:g} "
                    "s",
                    "Send it again later, or several jobs in one request.",
                ) from None
            yield
        finally:
            for places in taken:
                places.release()
            self._users[who.uid] -= 1
            if not self._users[who.uid]:
                del self._users[who.uid], self._own[who.uid]


def start_filter(settings: SubmitFilterSettings) -> SubmitFilter | None:
    """None: the site has no submit filter. Call it before any thread or event loop exists: it forks
    the process that runs the filter. Raises OSError."""
    if settings.submit_filter is None:
        return None
    return SubmitFilter(
        FilterProcess(settings.submit_filter),
        limit=settings.submit_filter_timeout,
        accept_on_failure=settings.submit_filter_failure == "accept",
    )


async def _encode(facts: dict[str, Any], specs: Sequence[JobSpec], turns: Turns) -> list[bytes]:
    parts = [b'{"facts":', msgspec.json.encode(facts), b',"jobs":[']
    for index, spec in enumerate(specs):
        job = {
            name: value for name, value in msgspec.to_builtins(spec).items() if name not in HIDDEN
        }
        if isinstance(spec, ReservationSpec):
            job["details"] = {
                name: value for name, value in job["details"].items() if name not in SECRET_DETAILS
            }
        parts += [b"," if index else b"", msgspec.json.encode(job)]
        if turns.are_due():
            await turns.take()
    parts.append(b"]}")
    return parts


async def _read(reply: Reply, specs: Sequence[JobSpec], kind: Kind, turns: Turns) -> Filtered:
    if reply.why is not None:
        raise failed(reply.why.replace("exit code", "ended with exit code"))
    try:
        answer = msgspec.json.decode(reply.answer, type=_Answer)
    except msgspec.DecodeError as error:
        raise failed(f"gave no answer that can be read: {error}") from None
    if answer.failed is not None:
        raise failed(f"ended with {shown(answer.failed)[:100]}")
    if answer.rejected is not None:
        raise _rejected(answer, len(specs))
    changed: set[str] = set()
    made = list(specs)
    for index, fields in answer.changes.items():
        if not 0 <= index < len(made):
            raise failed(f"changed job {index}, which the request does not have")
        made[index] = changed_spec(made[index], fields, kind)
        changed |= fields.keys()
        if turns.are_due():
            await turns.take()
    return Filtered(
        specs=made if changed else specs,
        warnings=tuple(_shortened(text) for text in answer.warnings),
        changed=tuple(sorted(changed)),
    )


def _rejected(answer: _Answer, jobs: int) -> SubmitRejected:
    text = _shortened(answer.rejected or "") or "no reason was given"
    where = f"job {answer.job} of the batch: " if jobs > 1 else ""
    return SubmitRejected(
        f"{where}rejected by the site's submit filter: {text}",
        "The operators of this site set its rules.",
        text=text,
    )


def _shortened(text: str) -> str:
    return shown(text.strip()[:MAX_MESSAGE])
