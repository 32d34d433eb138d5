"""Several real sessions on one database, advanced one statement at a time in a chosen order.

A program is a list of transactions, a transaction a list of statements; BEGIN goes with the first
statement, COMMIT is a step of its own. Between two steps every session is idle or waits for a lock,
so the order of the steps is all that decides what happens. A session that waits goes on when the
lock is released; nothing here sleeps or steers the code under test.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import asyncpg

from odcd.database.pool import Isolation, connect
from tests.interleave.photo import FINGERPRINT
from tests.interleave.world import World

PLANNER: Isolation = "read committed"
"""The isolation level of the connection that makes passes, as odcd.loops.election opens it."""
DEADLOCK_CHECK = "20ms"
PATIENCE_S = 120.0
TRIES = 4
ROLLED_BACK = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

Step = Callable[["Session"], Awaitable[None]]


class Watch(Protocol):
    """Called at points where no session is running a statement."""

    async def begins(self, watcher: asyncpg.Connection, world: World) -> None: ...
    async def committed(
        self, watcher: asyncpg.Connection, world: World, session: Session
    ) -> None: ...


@dataclass(frozen=True)
class Program:
    """leads: its sessions plan or settle under the term they read when they begin."""

    name: str
    transactions: Sequence[Sequence[Step]]
    leads: bool = False
    isolation: Isolation = "read committed"


@dataclass
class Session:
    """One connection that runs a program. started: what passes of the open transaction start.
    changed_nothing: as the open transaction says itself."""

    program: Program
    connection: asyncpg.Connection
    world: World
    term: int
    started: list[int] = field(default_factory=list)
    on_commit: list[Callable[[], None]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    just_committed: bool = False
    changed_nothing: bool = False
    rolled_back: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    _transaction: int = 0
    _step: int = 0
    _tries: int = 0

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def pid(self) -> int:
        return self.connection.get_server_pid()

    @property
    def position(self) -> int:
        """The number of its transactions that have ended."""
        return self._transaction

    @property
    def has_more(self) -> bool:
        return self._transaction < len(self.program.transactions)

    @property
    def is_open(self) -> bool:
        """True if it keeps locks while it is idle."""
        return self._step > 0

    def advance(self) -> str:
        """Begin the next step; returns its name."""
        statements = self.program.transactions[self._transaction]
        if self._step == len(statements):
            self.task = asyncio.ensure_future(self._commit())
            return f"{self.name}:commit"
        step = statements[self._step]
        self.task = asyncio.ensure_future(self._run(step))
        return f"{self.name}:{step.__name__}"

    def is_waiting(self) -> bool:
        """Record a step that has ended. Raises the errors that must not happen."""
        if self.task is None:
            return False
        if not self.task.done():
            return True
        task, self.task = self.task, None
        task.result()
        return False

    async def fetch(self, text: str, *arguments: Any) -> list[asyncpg.Record]:
        return await self.connection.fetch(text, *arguments)

    async def _run(self, step: Step) -> None:
        if self._step == 0:
            await self.connection.execute(f"begin isolation level {self.program.isolation}")
        self._step += 1
        try:
            await step(self)
        except asyncpg.PostgresError as error:
            await self._undo(error)

    async def _undo(self, error: asyncpg.PostgresError) -> None:
        state = str(error.sqlstate)
        late = isinstance(error, asyncpg.LockNotAvailableError)
        if not late and not isinstance(error, ROLLED_BACK) and not state.startswith("OD"):
            raise error
        await self.connection.execute("rollback")
        self._step = 0
        self.started, self.on_commit = [], []
        if late:
            # On a slow machine take_term waits for at most two seconds, and is called again.
            return
        if isinstance(error, ROLLED_BACK) or state == "OD003":
            self.rolled_back[state] += 1
            self._tries += 1
            assert self._tries < TRIES, f"{self.name} does not get through: {error}"
        else:
            self.refusals.append(f"{state} {error}")
            self._transaction += 1
            self._tries = 0

    async def _commit(self) -> None:
        await self.connection.execute("commit")
        for call in self.on_commit:
            call()
        self.on_commit = []
        self._transaction += 1
        self._step = self._tries = 0
        self.just_committed = True


@dataclass
class Played:
    """The outcome of one schedule. choices: at each step the choice taken, and the number of
    choices. cut: it reached a state from which an earlier schedule continued."""

    steps: list[str]
    choices: list[tuple[int, int]]
    sessions: list[Session]
    cut: bool = False

    def rolled_back(self, *, leads: bool) -> Counter[str]:
        counts: Counter[str] = Counter()
        for session in self.sessions:
            if session.program.leads == leads:
                counts += session.rolled_back
        return counts


class Stage:
    """Connections that stay warm from schedule to schedule, and the one that watches them."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._runner = asyncio.Runner()
        self._connections: list[asyncpg.Connection] = []
        self._watcher: asyncpg.Connection | None = None
        self.seen: set[str] | None = None
        """States in which no transaction was open; None: no schedule is cut short."""

    def close(self) -> None:
        for connection in (*self._connections, self._watcher):
            if connection is not None:
                connection.terminate()
        self._runner.close()

    def play(
        self, world: World, programs: Sequence[Program], choose: Callable[[int], int],
        watch: Watch, known: int = 0,
    ) -> Played:  # fmt: skip
        """known: number of steps already taken by another schedule."""
        return self._runner.run(self._play(world, programs, choose, watch, known))

    async def _play(
        self, world: World, programs: Sequence[Program], choose: Callable[[int], int],
        watch: Watch, known: int,
    ) -> Played:  # fmt: skip
        watcher = await self._opened(len(programs))
        term = await watcher.fetchval("select term from odc.term")
        sessions = [
            Session(program, connection, world, term)
            for program, connection in zip(programs, self._connections, strict=False)
        ]
        played = Played([], [], sessions)
        await watch.begins(watcher, world)
        try:
            while idle := [s for s in sessions if s.task is None and s.has_more]:
                if len(played.choices) >= known and await self._was_here(watcher, played):
                    played.cut = True
                    return played
                choice = min(choose(len(idle)), len(idle) - 1)
                played.choices.append((choice, len(idle)))
                session = idle[choice]
                played.steps.append(session.advance())
                async with asyncio.timeout(PATIENCE_S):
                    await self._settle(watcher, sessions)
                if session.just_committed:
                    session.just_committed = False
                    await watch.committed(watcher, world, session)
                    session.started, session.changed_nothing = [], False
            waiting = [s.name for s in sessions if s.task is not None]
            assert waiting == [], f"{waiting} wait though everyone else is through"
        except BaseException as error:
            error.add_note("steps: " + " ".join(played.steps))
            await self._abandon(sessions)
            raise
        return played

    async def _opened(self, count: int) -> asyncpg.Connection:
        while len(self._connections) < count:
            connection = await connect(self._dsn, name="interleave")
            await connection.execute(f"set deadlock_timeout = '{DEADLOCK_CHECK}'")
            self._connections.append(connection)
        if self._watcher is None:
            self._watcher = await connect(self._dsn, name="interleave watcher")
        return self._watcher

    async def _was_here(self, watcher: asyncpg.Connection, played: Played) -> bool:
        """Committed rows, time and the programs' positions determine everything that may follow."""
        if self.seen is None or any(s.task or s.is_open for s in played.sessions):
            return False
        here = " ".join([
            await watcher.fetchval(FINGERPRINT), str(played.sessions[0].world),
            *(f"{s.position} {s.term}" for s in played.sessions),
        ])  # fmt: skip
        if here in self.seen:
            return True
        self.seen.add(here)
        return False

    async def _settle(self, watcher: asyncpg.Connection, sessions: Sequence[Session]) -> None:
        """Return when every step has ended or waits for a lock of an idle session."""
        agreed = 0
        while waiting := [s for s in sessions if s.is_waiting()]:
            tasks = [s.task for s in waiting if s.task is not None]
            rows = await watcher.fetch(
                "select pid, pg_blocking_pids(pid) as by from unnest($1::integer[]) as w (pid)",
                [s.pid for s in waiting],
            )
            if any(task.done() for task in tasks):
                agreed = 0
                continue
            agreed = agreed + 1 if _all_blocked(rows, sessions) else 0
            if agreed == 2:
                return
            with suppress(TimeoutError):
                await asyncio.wait(tasks, timeout=0.0005, return_when=asyncio.FIRST_COMPLETED)

    async def _abandon(self, sessions: Sequence[Session]) -> None:
        """End the connections of a schedule that failed: some of their statements wait."""
        for connection in self._connections:
            connection.terminate()
        for session in sessions:
            if session.task is not None:
                session.task.cancel()
                await asyncio.gather(session.task, return_exceptions=True)
        self._connections = []


def _all_blocked(rows: Sequence[asyncpg.Record], sessions: Sequence[Session]) -> bool:
    """True if every chain of waiting sessions ends at one that is idle in its transaction."""
    by = {row["pid"]: set(row["by"]) for row in rows}
    idle = {s.pid for s in sessions if s.task is None and s.is_open}

    def ends_idle(pid: int, seen: frozenset[int]) -> bool:
        return pid in idle or (
            pid not in seen and any(ends_idle(other, seen | {pid}) for other in by.get(pid, ()))
        )

    return all(by[pid] and ends_idle(pid, frozenset()) for pid in by)
