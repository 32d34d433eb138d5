"""/v1/jobs/{id}/logs: a job's output, from the executor that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from odcd.api.array_logs import ArrayLogs
from odcd.api.http.context import Api
from odcd.api.http.routing import Call, Operation
from odcd.api.http.streaming import Begun, Streamed
from odcd.api.merged_lines import Lines, merged
from odcd.errors import BadRequest, WrongState
from odcd.executor.base import Executor
from odcd.records.dispatch import Dispatch
from odcd.records.job import Selector

MEDIA_TYPE = "application/octet-stream"
AT_ONCE = 4
"""How many members' outputs are read at a time if they are not followed."""


class LogsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    stream: Literal["stdout", "stderr"] = "stdout"
    follow: bool = False
    """Wait for the job to start, and continue until it has ended."""
    rank: Annotated[str, msgspec.Meta(pattern="^([0-9]{1,6}|all)$")] = "0"
    """The member of a gang. all: every line of all members, prefixed with the rank; if they share
    one file, that file unchanged."""


class LogRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/jobs/{id}/logs",
                tag="jobs",
                serve=self.logs,
                query=LogsQuery,
                media_type=MEDIA_TYPE,
                summary="Show a job's output",
            ),
        )

    async def logs(self, call: Call) -> Response:
        query, selector = call.query(LogsQuery), call.selector()
        if await self._is_array(selector):
            return await self._of_array(call, selector, query)
        job_id = await self._api.own_job(call.who, selector)
        last_event = await self._api.store.events.get_last()
        dispatch = await self._api.store.dispatches.get(job_id)
        if dispatch is None and not query.follow:
            raise _not_started(call.part("id"))
        executor = self._api.executor()
        if dispatch is not None:
            _check_rank(dispatch, query.rank)
        pieces = self._pieces(call.who.uid, executor, job_id, dispatch, last_event, query)
        begun = await Begun(pieces).begin()
        return Streamed(begun, media_type=MEDIA_TYPE, stopping=self._api.events.closing)

    async def _is_array(self, selector: Selector) -> bool:
        """Whether it names an array or several of its tasks."""
        return not selector.is_one_task and await self._api.store.jobs.is_array(selector.job_id)

    async def _of_array(self, call: Call, selector: Selector, query: LogsQuery) -> Response:
        await self._api.own_job(call.who, Selector(job_id=selector.job_id))
        executor = self._api.executor()

        def output(dispatch: Dispatch) -> AsyncGenerator[bytes]:
            return self._pieces(call.who.uid, executor, dispatch.job_id, dispatch, 0, query)

        logs = ArrayLogs(self._api, call.who.uid, selector, output)
        if query.follow:
            pieces = logs.follow()
        else:
            tasks = await self._api.store.jobs.list_tasks(selector)
            if not tasks:
                raise _not_started(call.part("id"))
            pieces = logs.read(tasks)
        begun = await Begun(pieces).begin()
        return Streamed(begun, media_type=MEDIA_TYPE, stopping=self._api.events.closing)

    async def _pieces(
        self,
        uid: int,
        executor: Executor,
        job_id: int,
        dispatch: Dispatch | None,
        last_event: int,
        query: LogsQuery,
    ) -> AsyncGenerator[bytes]:
        if dispatch is None:
            dispatch = await self._started(job_id, last_event)
        if dispatch is None:
            return
        stderr = query.stream == "stderr"
        if query.rank == "all" and not executor.shares_output(dispatch, stderr=stderr):
            pieces = self._all_ranks(uid, executor, dispatch, query)
        else:
            rank = 0 if query.rank == "all" else int(query.rank)
            if rank >= len(dispatch.members):
                return
            pieces = _one_rank(executor, dispatch, rank, stderr=stderr, follow=query.follow)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def _all_ranks(
        self, uid: int, executor: Executor, dispatch: Dispatch, query: LogsQuery
    ) -> AsyncGenerator[bytes]:
        """Lines of all members as they arrive, each prefixed with its rank."""
        stderr = query.stream == "stderr"
        few = asyncio.Semaphore(AT_ONCE)

        async def copy(lines: Lines, rank: int) -> None:
            # Outputs that are not followed end soon, so they do not wait for those that are.
            async with self._api.fairness.outputs.place(uid) if query.follow else few:
                pieces = _one_rank(executor, dispatch, rank, stderr=stderr, follow=query.follow)
                await lines.copy(b"%d: " % rank, pieces)

        async def fill(lines: Lines, readers: asyncio.TaskGroup) -> None:
            for member in dispatch.members:
                copying = copy(lines, member.rank)
                readers.create_task(copying, name=f"logs-{dispatch.job_id}-{member.rank}")

        async with aclosing(merged(fill, f"logs-{dispatch.job_id}")) as lines:
            async for line in lines:
                yield line

    async def _started(self, job_id: int, after: int) -> Dispatch | None:
        """The dispatch of a job once it has started; None if it ended without starting."""
        changes = self._api.events.stream(after, job_id=job_id)
        async with aclosing(changes):
            async for _ in changes:
                dispatch = await self._api.store.dispatches.get(job_id)
                if dispatch is not None:
                    return dispatch
                if await self._api.store.events.get_results(Selector(job_id=job_id)) is not None:
                    return None
        return None


def _not_started(selector: str) -> WrongState:
    return WrongState(
        f"job {selector} has not started, so it has written nothing",
        f"`odcctl logs --follow {selector}` waits for its start.",
    )


def _check_rank(dispatch: Dispatch, rank: str) -> None:
    if rank != "all" and int(rank) >= len(dispatch.members):
        raise BadRequest(
            f"job {dispatch.job_id} has no rank {rank}",
            f"Its ranks are 0 to {len(dispatch.members) - 1}.",
        )


async def _one_rank(
    executor: Executor, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
) -> AsyncGenerator[bytes]:
    pieces = executor.logs(dispatch, rank, stderr=stderr, follow=follow)
    try:
        async for piece in pieces:
            yield piece
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
