"""The interface between the core and whatever runs jobs. The core knows no concrete executor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from odcd.executor.step_tasks import StepOrder
from odcd.records.dev_server import Activity
from odcd.records.dispatch import Dispatch, Fact, Notice
from odcd.records.node import Canary, CanaryEnd, NodeReport
from odcd.records.step import StepKey

Expected = tuple[int, int, int, bool]
"""A member that is live in the database: job, attempt, rank, and whether it has started."""


class ByteStream(Protocol):
    """A connection to a port of a member."""

    async def read(self) -> bytes:
        """Received bytes; b"" at the end. Raises RunnerDown or WrongState when the stream
        breaks."""
        ...

    async def write(self, data: bytes) -> None:
        """Returns when more may be written. Raises OSError or RunnerDown when the stream breaks."""
        ...

    async def write_eof(self) -> None:
        """Close the sending direction. Has no effect where the transport cannot express that."""
        ...

    async def close(self) -> None: ...


class DevServers(Protocol):
    """The running dev servers of an executor."""

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        """Notify the user of a running attempt, on its terminal and in the user's home folder.

        The call succeeds if either channel delivers the notice. Raises WrongState when neither
        does or the attempt does not run; RunnerDown when the executor cannot be reached;
        ValueError for a name that is not a valid file name.
        """
        ...

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        """Replace the SSH keys that may connect to a running dev server with these lines.

        Raises WrongState when it does not run or has no SSH; RunnerDown when the executor cannot
        be reached.
        """
        ...

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        """Start or stop Jupyter Lab in the first member of a running dev server.

        Raises WrongState with the obstacle, RunnerDown when the executor cannot be reached.
        """
        ...

    async def look(self, job_id: int, attempt: int) -> Activity:
        """Measure the use of a running dev server. Raises WrongState or RunnerDown if unknown."""
        ...

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> ByteStream:
        """Connect to a port of one member. Raises WrongState when the member does not run or
        nothing listens there; RunnerDown when the executor cannot be reached."""
        ...


class StepStream(Protocol):
    """The output of a step, from any point. Frames are those of odcd.runner.steps.journal."""

    @property
    def has_marks(self) -> bool:
        """Whether there is no single order of frames: then a position is how many bytes were read
        of each kind and task."""
        ...

    async def read(self, offset: int, marks: Mapping[str, int]) -> list[tuple[bytes, int, bytes]]:
        """Kind, task and data of the frames from that position on; waits until there are some. An
        empty list: the step has ended, and this was all. marks: by kind and task, as in "o12"; for
        streams that have them. Raises WrongState."""
        ...

    async def acknowledge(self, offset: int) -> None:
        """The frames before the offset are not needed any longer."""
        ...

    @property
    def begin(self) -> int:
        """The first offset that is still there."""
        ...

    def close(self) -> None: ...


class StepChannel(Protocol):
    """A connection for the input and the signals of a step; see odcd.runner.steps.clients."""

    @property
    def hello(self) -> dict[str, Any]: ...

    async def send(self, kind: bytes, data: bytes) -> bool:
        """False: the step has ended."""
        ...

    async def read(self) -> tuple[bytes, bytes] | None:
        """The next frame; None: the step has ended."""
        ...

    def close(self) -> None: ...


class Steps(Protocol):
    """The steps of running jobs. Every call may be repeated."""

    shares_files: bool
    """Whether the nodes of a job have the files of the machine where commands are called."""
    has_terminals: bool
    """Whether a task can have a terminal."""

    @property
    def term(self) -> int:
        """Of the daemon that commands the executor. Raises RunnerDown if this one does not."""
        ...

    def variables(self, dispatch: Dispatch, environment: Mapping[str, str]) -> dict[str, str]:
        """Variables that describe a running job, for a shell outside of it."""
        ...

    def answer_calls(self, on_call: Callable[[Any], Awaitable[None]]) -> None:
        """on_call: answers calls of Slurm's commands in jobs that cannot reach the daemon."""
        ...

    def nodes_of(self, dispatch: Dispatch, hosts: Sequence[str]) -> list[str]:
        """The nodes of a job's hosts, as its variables name them; other names stay as they are."""
        ...

    async def start(self, order: StepOrder) -> None:
        """Raises WrongState when it cannot start; BadRequest for an impossible option."""
        ...

    async def stop(self, key: StepKey, signal: int, grace_s: float) -> None: ...

    async def signal(self, key: StepKey, signal: int) -> None: ...

    async def find(self, key: StepKey) -> tuple[bool, dict[str, Any] | None]:
        """Whether the step is known, and how it ended; see odcd.records.step.StepEnd."""
        ...

    async def list(self, keys: Sequence[StepKey]) -> dict[StepKey, dict[str, Any] | None]:
        """These steps, as far as they are known, and steps whose end was not acknowledged; and how
        they ended."""
        ...

    async def acknowledge(self, key: StepKey, *, forget: bool) -> None:
        """Its end is recorded. forget: its output is not needed any longer."""
        ...

    async def open(self, key: StepKey, uid: int, *, owner: bool) -> StepStream: ...

    async def connect(self, key: StepKey, uid: int) -> StepChannel | None: ...

    async def release(self, job_id: int, attempt: int, exit_code: int) -> None:
        """End a job that only holds its nodes, as if its script had exited with that code."""
        ...


class Executor(Protocol):
    """Level triggered and idempotent: any leader may repeat any call, in any order."""

    name: str
    keeps_time: bool
    """Whether the executor itself ends attempts at their time limit, and signals them before."""
    keeps_declared: bool
    """Whether nodes that operators declared stay up although its inventory does not have them."""

    @property
    def steps(self) -> Steps | None:
        """None: this executor runs no steps."""
        ...

    @property
    def dev_servers(self) -> DevServers: ...

    @property
    def unreached_s(self) -> float:
        """How long the system that runs the jobs has not responded; 0: it responds."""
        ...

    def waits(self, job_id: int) -> list[str]:
        """Sentences about what the members of a started job still wait for, as far as this executor
        knows; empty: nothing is known."""
        ...

    reconciles: bool
    """Whether adopt() may be called at any time, and should be called regularly."""

    async def open(self, term: int) -> None:
        """Take command under this term; lower terms are refused from now on.

        Raises LeadershipLost when a higher term already commands, RunnerDown when nothing answers.
        """
        ...

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """Start all members of these attempts; return when the executor has stored them durably.

        texts: content by digest, for every script and environment the dispatches refer to. Members
        that already exist (same job, attempt, rank), and those that are not `starting`, are left
        alone. observe() reports failures as start_failed; this raises only RunnerDown and
        LeadershipLost.
        """
        ...

    async def stop(
        self, job_id: int, attempt: int, *, signal: int, grace_s: float, again: bool = False
    ) -> None:
        """Send the signal to every process of every member, and KILL after grace_s. again: the job
        may run again elsewhere, so its members must be certain to run no longer.

        observe() reports an unknown attempt as lost.
        """
        ...

    async def signal(
        self, job_id: int, attempt: int, *, signal: int, batch_only: bool, rank: int | None = None
    ) -> None:
        """Only send a signal (cancel --signal). rank: only to this member, if the executor does not
        keep time limits itself. Raises OdcError if a member did not receive it; others may have."""
        ...

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        """Change the time limit of a running attempt."""
        ...

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        """Take over what runs. read_expected returns the members that are live in the database.

        Every expected member that does not run is reported as lost (or as start_failed if it
        never began); every running member that is not expected is killed.
        """
        ...

    def observe(self) -> AsyncIterator[list[Fact]]:
        """Facts in batches as they happen, each until acknowledged; repeated facts are harmless."""
        ...

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        """Drop these facts: they are committed in the database."""
        ...

    async def inventory(self) -> list[NodeReport]:
        """All nodes. Raises RunnerDown when they cannot be read."""
        ...

    def placed(self) -> Mapping[str, Sequence[int]]:
        """The ids of jobs that have pods, by namespace; empty for executors without pods."""
        ...

    async def nodes_changed(self) -> None:
        """Returns when inventory() may return something new."""
        ...

    async def try_nodes(self, canaries: Sequence[Canary]) -> list[CanaryEnd]:
        """Make exactly these canaries run on their nodes, and return the results of those that
        ended. Call again until each has ended. Raises RunnerDown when they cannot be read.
        """
        ...

    def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncIterator[bytes]:
        """The output of one member, from the beginning; with follow, until it has ended."""
        ...

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        """Whether the members write to one file, so that the writer of a line is unknown."""
        ...

    async def close(self) -> None:
        """Disconnect without touching what runs."""
        ...
