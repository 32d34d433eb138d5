"""What the core asks of whatever runs jobs. The core never knows which executor answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from odcd.records.dev_server import Look
from odcd.records.dispatch import Dispatch, Fact, Notice
from odcd.records.node import Canary, CanaryEnd, NodeReport

Expected = tuple[int, int, int, bool]
"""A member that the database holds as live: job, attempt, rank, and whether it has started."""


class ByteStream(Protocol):
    """Both ways to a port of a member."""

    async def read(self) -> bytes:
        """What came; b"" when no more will. Raises RunnerDown, WrongState: it broke."""
        ...

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. Raises OSError, RunnerDown: it broke."""
        ...

    async def write_eof(self) -> None:
        """No more will be written. Where the way knows no such thing, nothing happens."""
        ...

    async def close(self) -> None: ...


class Executor(Protocol):
    """Level triggered and idempotent: any call may be repeated, in any order, by any leader."""

    name: str
    keeps_time: bool
    """It ends attempts at their time limit, and signals them before, by itself."""

    @property
    def unreached_s(self) -> float:
        """For how long what runs the jobs has not answered; 0: it does."""
        ...

    def waits(self, job_id: int) -> list[str]:
        """What members of a job that was told to start wait for, a sentence each, as far as this
        executor knows; empty: it knows of nothing."""
        ...

    reconciles: bool
    """adopt() may be called at any time, and is to be called now and then."""

    async def open(self, term: int) -> None:
        """Become the one that commands, under this term; a lower term is refused from now on.

        Raises LeadershipLost when a higher term already commands, RunnerDown when nothing answers.
        """
        ...

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """Make these attempts run, all members of each; return when the executor has them for good.

        texts: content by digest, for every script and environment the dispatches name. A member
        already there (same job, attempt, rank) is left alone, and so is one that is not `starting`.
        What cannot start comes back from observe() as start_failed; only RunnerDown and
        LeadershipLost are raised.
        """
        ...

    async def stop(self, job_id: int, attempt: int, *, signal: int, grace_s: float) -> None:
        """Send the signal to every process of every member, and KILL when grace_s is over.

        An attempt nobody knows is reported by observe() as lost.
        """
        ...

    async def signal(self, job_id: int, attempt: int, *, signal: int, batch_only: bool) -> None:
        """Send a signal and nothing more (cancel --signal)."""
        ...

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        """Move the time limit of a running attempt."""
        ...

    async def tell(self, job_id: int, attempt: int, notice: Notice) -> None:
        """Tell the user of a running attempt, on its terminal and in the user's home folder.

        Told on one of the two is told. Raises WrongState when it reached neither, or does not run;
        RunnerDown when nobody can be asked; ValueError for a name that is none of a file.
        """
        ...

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        """These lines, and no others, are the SSH keys that enter a running dev server.

        Raises WrongState when it does not run or has no SSH; RunnerDown when nobody can be asked.
        """
        ...

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        """See to it that Jupyter Lab runs in the first member of a running dev server, or does not.

        Raises WrongState with what is in the way, RunnerDown when nobody can be asked.
        """
        ...

    async def look(self, job_id: int, attempt: int) -> Look:
        """How much a running dev server is used. Raises WrongState, RunnerDown: nobody knows."""
        ...

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> ByteStream:
        """To a port of one member. Raises WrongState when the member is not there, or nobody
        listens there; RunnerDown when nobody can be asked."""
        ...

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        """Take over what runs; read_expected tells what the database holds as live.

        Every expected member that is not there is reported as lost (or start_failed when it never
        began); every member that is there and not expected is killed.
        """
        ...

    def observe(self) -> AsyncIterator[list[Fact]]:
        """Facts in batches as they happen, each until acknowledged; repeats are harmless."""
        ...

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        """These facts are committed in the database; the executor may forget them."""
        ...

    async def inventory(self) -> list[NodeReport]:
        """All nodes. Raises RunnerDown when they cannot be looked at."""
        ...

    def placed(self) -> Mapping[str, Sequence[int]]:
        """Jobs that have pods, by the namespace these are in; empty: members are no pods."""
        ...

    async def nodes_changed(self) -> None:
        """Returns when inventory() may answer something new."""
        ...

    async def try_nodes(self, wanted: Sequence[Canary]) -> list[CanaryEnd]:
        """See to it that these canaries, and no others, are on their nodes; how those that are over
        ended. To be called again until each is. Raises RunnerDown when nobody can look.
        """
        ...

    def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncIterator[bytes]:
        """The output of one member, from its beginning; with follow, until it has ended."""
        ...

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        """Do its members write to one file, so that nobody can tell who wrote a line?"""
        ...

    async def close(self) -> None:
        """Let go without touching what runs."""
        ...
