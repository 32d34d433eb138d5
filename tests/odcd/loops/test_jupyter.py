"""Requests for Jupyter: carried out and retried, and failures are recorded."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import RunnerDown, WrongState
from odcd.executor.base import DevServers
from odcd.loops.jupyter import JupyterControl
from odcd.stores.dev_servers import DevServerStore
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql


class JupyterExecutor:
    """An executor that records its requests, or fails."""

    def __init__(self, *failures: Exception, hang: int | None = None) -> None:
        self.failures = list(failures)
        self.hang = hang
        self.calls: list[tuple[int, int, bool]] = []

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        if job_id == self.hang:
            await asyncio.Event().wait()
        self.calls.append((job_id, attempt, on))
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def job_ids(database_url: str) -> tuple[int, int]:
    """Two dev servers whose users want it."""
    now = SystemClock().now()
    fields: dict[str, object] = {"ssh_keys": [], "jupyter": True}
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1, now=now)
        queue = Queue(sql)
        queue.now = now - timedelta(minutes=1)
        made = Reservations(queue)
        return made.active(details=fields), made.active(details=fields)


def run(url: str, executor: JupyterExecutor, seen: dict[int, str]) -> dict[int, Any]:
    """Run until these are recorded; returns all records."""

    async def work() -> dict[int, Any]:
        async with Database(url, size=2) as database:
            jupyters = JupyterControl(
                0,
                DevServerStore(database),
                cast(DevServers, executor),
                SystemClock(),
                timedelta(seconds=30),
            )
            task = asyncio.create_task(jupyters.run())
            try:
                async with asyncio.timeout(60):
                    while True:
                        rows = await database.fetch("select job_id, error from odc.box_jupyter")
                        errors = {row["job_id"]: row["error"] for row in rows}
                        if seen.items() <= errors.items():
                            return errors
                        await asyncio.sleep(0.02)
            finally:
                task.cancel()

    return asyncio.run(work())


def test_jupyter_starts_in_each_dev_server_and_a_slow_one_delays_no_other(
    database_url: str, job_ids: tuple[int, int]
) -> None:
    """ACC-15"""
    executor = JupyterExecutor(hang=job_ids[0])
    assert run(database_url, executor, {job_ids[1]: cast(str, None)}) == {job_ids[1]: None}
    assert executor.calls == [(job_ids[1], 1, True)]


def test_a_failed_start_is_recorded_and_an_unreachable_dev_server_is_retried(
    database_url: str, job_ids: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACC-15: jupyter_error"""
    monkeypatch.setattr("odcd.loops.jupyter.RETRY_S", 0.01)
    executor = JupyterExecutor(RunnerDown("away"), WrongState("there is no jupyter"))
    errors = run(database_url, executor, {job_ids[0]: cast(str, None)})
    assert errors.get(job_ids[1], "there is no jupyter") == "there is no jupyter"
    assert len(executor.calls) >= 2
