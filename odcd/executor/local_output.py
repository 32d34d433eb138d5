"""The output of members of the local executor, and the terminals of jobs that have one.

The runner opens the files as the job's user, because the daemon may be unable to read them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Container
from functools import partial
from pathlib import Path
from typing import Any

from odcd.clock import Clock
from odcd.errors import WrongState
from odcd.executor.file_threads import FileThreads
from odcd.executor.link import RunnerRefused, ask_for_descriptor, open_output
from odcd.executor.output import streams
from odcd.executor.tail import tail
from odcd.executor.terminals import Attached, Replayed
from odcd.records.dispatch import Dispatch
from odcd.runner import protocol

Key = tuple[int, int, int]
"""Job, attempt, rank."""

ATTACH_WAIT_S = 10.0
START_WAIT_S = 10.0
LOOK_S = 0.05
ASK_AGAIN_S = 5.0


class LocalOutput:
    def __init__(
        self,
        run_dir: Path,
        clock: Clock,
        is_live: Callable[[Key], Awaitable[bool]],
        ended: Container[Key],
    ) -> None:
        """is_live: asks the runner. ended: members recently reported as ended."""
        self._run_dir = run_dir
        self._clock = clock
        self._is_live = is_live
        self._ended = ended
        self._threads = FileThreads()

    async def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        """See odcd.executor.base. Raises WrongState when the output cannot be read."""
        key = dispatch.job_id, dispatch.attempt, rank
        follows = follow and await self._begins(dispatch, rank)
        fd = await self._open(dispatch, rank, stderr=stderr)
        while fd is None and follows and await self._is_live(key):
            await self._clock.sleep(LOOK_S)
            fd = await self._open(dispatch, rank, stderr=stderr)
        if fd is None and follows:
            # The file may have been created, and the job ended, between the two attempts.
            fd = await self._open(dispatch, rank, stderr=stderr)
        if fd is None:
            return
        is_over = self._watch(key) if follows else None
        try:
            async for data in tail(fd, self._clock, is_over, self._threads, dispatch.uid):
                yield data
        except OSError as error:
            raise WrongState(
                f"the output of job {dispatch.job_id} cannot be read: {error.strerror}"
            ) from error
        finally:
            self._threads.close(dispatch.uid, fd)

    async def _begins(self, dispatch: Dispatch, rank: int) -> bool:
        """Whether the member is live. One that was placed a moment ago may not be with the runner
        yet."""
        key = dispatch.job_id, dispatch.attempt, rank
        until = self._clock.monotonic() + START_WAIT_S
        while not await self._is_live(key):
            is_due = dispatch.members[rank].state == "starting" and key not in self._ended
            if not is_due or self._clock.monotonic() > until:
                return False
            await self._clock.sleep(LOOK_S)
        return True

    async def _open(self, dispatch: Dispatch, rank: int, *, stderr: bool) -> int | None:
        """None: the file does not exist (yet)."""
        terminal = bool(dispatch.options.get("pty")) and rank == 0
        fields: dict[str, Any] = {"uid": dispatch.uid, "gid": dispatch.gid}
        if dispatch.options.get("spool_output") or dispatch.options.get("pty"):
            fields |= {
                "job": dispatch.job_id, "attempt": dispatch.attempt, "rank": rank,
                "spool": "err" if stderr and not terminal else "out",
            }  # fmt: skip
        else:
            files = streams(dispatch, dispatch.members[rank])
            output = files.stderr if stderr and files.stderr else files.stdout
            fields["path"] = output.path
        try:
            work = partial(open_output, self._run_dir, fields)
            return await self._threads.run(dispatch.uid, work, drop=os.close)
        except RunnerRefused as error:
            if error.kind == protocol.NOT_FOUND:
                return None
            raise WrongState(
                f"the output of job {dispatch.job_id} cannot be read: {error.reason}"
            ) from error

    def _watch(self, key: Key) -> Callable[[], Awaitable[bool]]:
        """A check whether the member has ended: from reports, and regularly by asking the
        runner."""
        ask_at = self._clock.monotonic() + ASK_AGAIN_S

        async def is_over() -> bool:
            nonlocal ask_at
            if key in self._ended:
                return True
            now = self._clock.monotonic()
            if now < ask_at:
                return False
            ask_at = now + ASK_AGAIN_S
            return not await self._is_live(key)

        return is_over

    async def attach(self, dispatch: Dispatch, rank: int) -> Attached | Replayed:
        """The terminal of a job; if the job has ended, its output. Raises WrongState."""
        key = dispatch.job_id, dispatch.attempt, rank
        fields = {"job": dispatch.job_id, "attempt": dispatch.attempt, "rank": rank}
        deadline = self._clock.monotonic() + ATTACH_WAIT_S
        while True:
            try:
                work = partial(ask_for_descriptor, self._run_dir, "attach", fields)
                fd = await self._threads.run(dispatch.uid, work, drop=os.close)
                return await Attached.open(fd)
            except RunnerRefused as error:
                if not await self._is_live(key):
                    break
                if error.kind != protocol.NOT_READY or self._clock.monotonic() > deadline:
                    raise WrongState(
                        f"the terminal of job {dispatch.job_id} is not available: {error.reason}",
                        "Try again in a moment.",
                    ) from error
                await self._clock.sleep(LOOK_S)
        kept = await self._open(dispatch, rank, stderr=False)
        if kept is None:
            return Replayed(None, None)
        return Replayed(kept, tail(kept, self._clock, None, self._threads, dispatch.uid))
