"""The output of an array: that of its tasks, each line after the task's id, as 7_3."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from odcd.api.events import of_tasks
from odcd.api.http.context import Api
from odcd.api.merged_lines import Lines, Pieces, merged
from odcd.errors import RunnerDown, WrongState
from odcd.events import Event, Lagged
from odcd.records.dispatch import Dispatch
from odcd.records.job import Selector

Output = Callable[[Dispatch], Pieces]
"""Begins to read the output of one attempt."""


class ArrayLogs:
    """output: of one task. A task whose output cannot be read has a line that says why."""

    def __init__(self, api: Api, uid: int, selector: Selector, output: Output) -> None:
        """uid: who reads it."""
        self._api = api
        self._uid = uid
        self._selector = selector
        self._output = output
        self._attempts: dict[int, int] = {}
        """Of the tasks seen so far."""

    def read(self, tasks: Sequence[int]) -> AsyncGenerator[bytes]:
        """The output of these tasks until now, one after the other."""

        async def fill(lines: Lines, readers: asyncio.TaskGroup) -> None:
            for job_id in tasks:
                dispatch = await self._api.store.dispatches.get(job_id)
                if dispatch is not None:
                    await self._copy(lines, dispatch)

        return merged(fill, f"logs-{self._selector.job_id}")

    def follow(self) -> AsyncGenerator[bytes]:
        """The output of all tasks as it arrives, also of those that start later, until all have
        ended."""
        return merged(self._follow, f"logs-{self._selector.job_id}")

    async def _follow(self, lines: Lines, readers: asyncio.TaskGroup) -> None:
        store, selector = self._api.store, self._selector
        matches = of_tasks(selector.tasks) if selector.tasks else None
        while not self._api.events.closing.is_set():
            after = await store.events.get_last()
            for job_id in await store.jobs.list_tasks(selector):
                await self._look(job_id, lines, readers)
            if await store.events.get_results(selector) is not None:
                return
            events = self._api.events.stream(after, job_id=selector.job_id, matches=matches)
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Lagged):
                        break  # Events were lost: look at all tasks again.
                    if isinstance(event, Event) and event.kind == "started" and event.job_id:
                        await self._look(event.job_id, lines, readers)
                    elif await store.events.get_results(selector) is not None:
                        return
        # Otherwise the client would take the output for complete.
        raise RunnerDown("the daemon stops, so it cannot follow the output")

    async def _look(self, job_id: int, lines: Lines, readers: asyncio.TaskGroup) -> None:
        """Copy the output of the task's last attempt, unless that was begun before: beside the
        others if it runs, else here, so that few files are open at a time."""
        dispatch = await self._api.store.dispatches.get(job_id)
        if dispatch is None or self._attempts.get(job_id) == dispatch.attempt:
            return
        self._attempts[job_id] = dispatch.attempt
        if any(member.state != "ended" for member in dispatch.members):
            readers.create_task(self._copy_beside(lines, job_id), name=f"logs-{job_id}")
        else:
            await self._copy(lines, dispatch)

    async def _copy_beside(self, lines: Lines, job_id: int) -> None:
        """The dispatch is read again, so that outputs that wait for their place keep none. The
        job's arguments may be large, and do not matter."""
        async with self._api.fairness.outputs.place(self._uid):
            dispatch = await self._api.store.dispatches.get(job_id, self._attempts[job_id])
            if dispatch is not None:
                await self._copy(lines, replace(dispatch, args=()))

    async def _copy(self, lines: Lines, dispatch: Dispatch) -> None:
        label = f"{dispatch.array_job_id}_{dispatch.array_task_id}: ".encode()
        try:
            await lines.copy(label, self._output(dispatch))
        except WrongState as error:
            await lines.put(label + f"odc: {error.message}\n".encode())
