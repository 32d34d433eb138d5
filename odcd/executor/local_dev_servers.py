"""Dev servers that are processes of this machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from odcd.errors import RunnerDown, WrongState
from odcd.executor import notices
from odcd.executor.base import ByteStream
from odcd.executor.link import Link
from odcd.records.dev_server import Activity
from odcd.records.dispatch import Notice


class LocalDevServers:
    """Implements odcd.executor.base.DevServers."""

    def __init__(self, connect: Callable[[], Awaitable[Link]]) -> None:
        """connect: opens a connection to the runner. It is not the one for commands, because a slow
        home folder must not delay these."""
        self._connect = connect

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        notices.check(notice)
        try:
            await self._notify(job_id, attempt, notice)
        except RunnerDown:
            await self._notify(job_id, attempt, notice)

    async def _notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        link = await self._connect()
        try:
            await notices.notify(link, job_id, attempt, notice)
        finally:
            link.close()

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        raise _no_ssh(job_id)

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        raise _no_ssh(job_id)

    async def look(self, job_id: int, attempt: int) -> Activity:
        raise WrongState(f"the usage of reservation {job_id} is not measured here")

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> ByteStream:
        raise _no_ssh(job_id)


def _no_ssh(job_id: int) -> WrongState:
    return WrongState(
        f"job {job_id} runs as processes of this machine, without its own SSH server",
        f"Open its terminal with: odcctl connect {job_id}",
    )
