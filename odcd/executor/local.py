"""Run jobs as processes of this machine, through the runner that forks them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from odcd.call_metrics import NOBODY, Calls
from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor import starts
from odcd.executor.base import Expected
from odcd.executor.gpus import find_gpus
from odcd.executor.link import Link, RunnerRefused
from odcd.executor.local_dev_servers import LocalDevServers
from odcd.executor.local_output import Key, LocalOutput
from odcd.executor.local_steps import LocalSteps
from odcd.executor.machine import declared_nodes, this_machine
from odcd.executor.output import shares_file
from odcd.executor.starts import Sent
from odcd.executor.terminals import Attached, Replayed
from odcd.executor.wire import MASTER_ADDR, Encoder, facts_of
from odcd.records.dispatch import Dispatch, Fact, Member
from odcd.records.node import Canary, CanaryEnd, DeclaredNode, GpuTypeSize, NodeReport
from odcd.runner.launch import LaunchFailed

log = logging.getLogger(__name__)

Launcher = Callable[[], Awaitable[None]]

GRACE_S = 30.0
"""Time from TERM to KILL after a time limit is over."""
RETRY_S = (0.1, 5.0)
KEPT_ENDS = 50_000


class LocalExecutor:
    """Implements odcd.executor.base.Executor.

    Starts are kept here until the runner has reported every member, and are sent again to a new
    runner: a runner accepts starts before it has written them to disk.
    """

    name = "local"
    keeps_time = True
    keeps_declared = True
    reconciles = False

    def __init__(
        self,
        run_dir: Path,
        launcher: Launcher,
        clock: Clock,
        *,
        nodes: Sequence[DeclaredNode],
        self_node: bool,
        sizes: Callable[[], Awaitable[Mapping[str, GpuTypeSize]]],
        cluster: str = "odc",
        grace_s: float = GRACE_S,
        calls: Calls = NOBODY,
        commands: str | None = None,
        hooks: bool = False,
    ) -> None:
        """launcher: starts a runner, or raises. sizes: of the GPU types in the database. commands:
        a folder with Slurm's commands for the PATH of jobs. hooks: whether the rules have some."""
        self._run_dir = run_dir
        self._calls = calls
        self._launcher = launcher
        self._clock = clock
        self._nodes = nodes
        self._self_node = self_node
        self._sizes = sizes
        self._grace_s = grace_s
        self._hooks = hooks
        self.dev_servers = LocalDevServers(self._connect)
        self._encoder = Encoder(cluster, self._gpu_ids_of, commands)
        self.steps = LocalSteps(
            run_dir, self._ask, clock, cluster=cluster, master_addr=MASTER_ADDR,
            gpu_ids_of=self._gpu_ids_of, term=lambda: self._term,
        )  # fmt: skip
        self._gpu_indexes: tuple[int, ...] | None = None
        self._term: int | None = None
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._unconfirmed: dict[tuple[int, int], Sent] = {}
        self._ranks: dict[tuple[int, int], int] = {}
        self._ended: OrderedDict[Key, None] = OrderedDict()
        self._output = LocalOutput(run_dir, clock, self._is_live, self._ended)

    # -- the connection ---------------------------------------------------------------------------

    async def open(self, term: int) -> None:
        self._term = term
        await self._linked()

    async def _connect(self) -> Link:
        """A connection besides the one for commands."""
        await self._linked()
        return await Link.open(self._run_dir, self._term, self._calls)

    async def _linked(self) -> Link:
        """The commanding connection. If it broke, reconnect, and start a new runner if needed."""
        async with self._connecting:
            if self._link is not None and not self._link.broken:
                return self._link
            await self.close()
            link = await self._reach()
            log.info("runner.reached", extra={"pid": link.about["pid"]})
            if self._hooks and not link.about.get("hooks"):
                log.warning("runner.lacks_hooks", extra={"version": link.about.get("odc")})
            try:
                await starts.send(link, list(self._unconfirmed.values()))
            except BaseException:
                link.close()
                raise
            self._link = link
            return link

    async def _reach(self) -> Link:
        try:
            return await Link.open(self._run_dir, self._term, self._calls)
        except RunnerDown:
            pass
        except RunnerRefused as error:
            raise RunnerDown(error.message) from error
        try:
            await self._launcher()
            return await Link.open(self._run_dir, self._term, self._calls)
        except (LaunchFailed, RunnerRefused) as error:
            raise RunnerDown(
                f"the runner cannot be started: {error}",
                f"See {self._run_dir / 'runner.log'}; running jobs continue meanwhile.",
            ) from error

    async def _ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Send a request; repeat it to the next runner if this one dies. All may be repeated."""
        try:
            return await (await self._linked()).ask(op, **fields)
        except RunnerDown:
            return await (await self._linked()).ask(op, **fields)

    async def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    # -- commands ---------------------------------------------------------------------------------

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        # In a thread: large arrays of large patterns take a while to encode.
        sent = await asyncio.to_thread(self._encode, dispatches, texts)
        for dispatch, one in zip(dispatches, sent, strict=True):
            self._unconfirmed[one.key] = one
            self._ranks[one.key] = len(dispatch.members)
        try:
            await starts.send(await self._linked(), sent)
        except RunnerDown:
            await starts.send(await self._linked(), sent)

    def _encode(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> list[Sent]:
        given = {**texts, **starts.refusal_texts()}
        return [Sent(self._encoder.dispatch(d, texts, self._grace_s), given) for d in dispatches]

    async def stop(
        self, job_id: int, attempt: int, *, signal: int, grace_s: float, again: bool = False
    ) -> None:
        ranks = self._ranks.get((job_id, attempt), 1)
        await self._ask(
            "stop", job=job_id, attempt=attempt, signal=signal, grace_s=grace_s, ranks=ranks
        )

    async def signal(
        self, job_id: int, attempt: int, *, signal: int, batch_only: bool, rank: int | None = None
    ) -> None:
        await self._ask("signal", job=job_id, attempt=attempt, signal=signal, batch_only=batch_only)

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        moment = ends_at.timestamp() if ends_at else None
        await self._ask("set_end", job=job_id, attempt=attempt, ends_at=moment)

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        expected = [key for *key, _ in await read_expected()]
        for job_id, attempt, rank in expected:
            key = job_id, attempt
            self._ranks[key] = max(rank + 1, self._ranks.get(key, 0))
        done = await self._ask("adopt", expected=expected)
        log.info("runner.adopted", extra={"expected": len(expected), **done})

    # -- facts ------------------------------------------------------------------------------------

    async def observe(self) -> AsyncIterator[list[Fact]]:
        """Never ends by itself; a dead runner is replaced. Raises LeadershipLost."""
        pause_s = RETRY_S[0]
        while True:
            link = None
            try:
                # This comes first, so that a new runner gets the starts the old one had not begun.
                link = await self._connect()
                await link.ask("observe")
                pause_s = RETRY_S[0]
                while True:
                    facts = facts_of(await link.read_all(), self._clock.now())
                    if facts:
                        self._note(facts)
                        yield facts
            except (RunnerDown, RunnerRefused, OSError, ValueError) as error:
                log.warning("runner.unreached", extra={"why": str(error)})
            finally:
                if link is not None:
                    link.close()
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S[1])

    def _note(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            key = fact.job_id, fact.attempt
            sent = self._unconfirmed.get(key)
            if sent is not None:
                sent.waiting.discard(fact.rank)
                if not sent.waiting:
                    del self._unconfirmed[key]
            if fact.kind != "started":
                self._ended[(*key, fact.rank)] = None
        while len(self._ended) > KEPT_ENDS:
            self._ended.popitem(last=False)

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        keys = [[f.job_id, f.attempt, f.rank, f.kind] for f in facts]
        await self._ask("acknowledge", facts=keys)
        for fact in facts:
            if fact.kind != "started" and fact.rank == self._ranks.get(_key(fact), 1) - 1:
                self._ranks.pop(_key(fact), None)

    # -- nodes ------------------------------------------------------------------------------------

    async def inventory(self) -> list[NodeReport]:
        reports = declared_nodes(self._nodes, await self._sizes())
        if self._self_node:
            gpus = await asyncio.to_thread(find_gpus)
            self._gpu_indexes = gpus.indexes if gpus else ()
            reports.append(this_machine(gpus))
        return reports

    def waits(self, job_id: int) -> list[str]:
        """Empty: a job starts at once here, or fails."""
        return []

    @property
    def unreached_s(self) -> float:
        """Always 0: its runner is on this machine and is restarted if it dies."""
        return 0.0

    def placed(self) -> Mapping[str, Sequence[int]]:
        return {}

    async def nodes_changed(self) -> None:
        """Never returns: the nodes are fixed when the daemon starts."""
        await asyncio.Event().wait()

    async def try_nodes(self, canaries: Sequence[Canary]) -> list[CanaryEnd]:
        return []  # canaries are never requested here

    def _gpu_ids_of(self, member: Member) -> Sequence[int]:
        if member.virtual or not self._gpu_indexes:
            return member.gpu_indexes
        return [self._gpu_indexes[index] for index in member.gpu_indexes]

    # -- output --------------------------------------------------------------------------------

    def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        return self._output.logs(dispatch, rank, stderr=stderr, follow=follow)

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        return shares_file(dispatch, stderr=stderr)

    async def attach(self, dispatch: Dispatch, rank: int) -> Attached | Replayed:
        """The terminal of a job; if the job has ended, its output. Raises WrongState."""
        return await self._output.attach(dispatch, rank)

    async def _is_live(self, key: Key) -> bool:
        """Whether the runner knows this member and it has not ended."""
        if key in self._ended:
            return False
        job, attempt, rank = key
        answer = await self._ask("state", job=job, attempt=attempt, rank=rank)
        return answer["state"] not in (None, "ended")


def _key(fact: Fact) -> tuple[int, int]:
    return fact.job_id, fact.attempt
