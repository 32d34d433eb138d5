"""Dev servers of the simulated executor: there are none."""

from __future__ import annotations

from collections.abc import Sequence

from odcd.errors import WrongState
from odcd.executor.base import ByteStream
from odcd.records.dev_server import Activity
from odcd.records.dispatch import Notice


class SimulatedDevServers:
    """Implements odcd.executor.base.DevServers."""

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        """Does nothing: there is no user to notify."""

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        """Does nothing: no one connects."""

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        """Does nothing: no one would use it."""

    async def look(self, job_id: int, attempt: int) -> Activity:
        raise WrongState(f"job {job_id} is simulated: it has no usage to measure")

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> ByteStream:
        raise WrongState(f"job {job_id} is simulated: there is nothing to connect to")
