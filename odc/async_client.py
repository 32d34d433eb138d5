"""AsyncClient and AsyncJob: odc.client for asyncio, with the same names and arguments."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Literal, TypeVar

from odc import calls, models
from odc.arguments import check_job, check_timeout
from odc.async_transport import AsyncTransport
from odc.calls import Request, Selector, Selectors, Some, Value
from odc.events_end import READ_AGAIN_S, EventsEnd
from odc.retries import Retries
from odc.submission import submit_body
from odc.transport import OUTAGE_S, RETRY_FOR_S, server_of
from odcctl.exits import Failure
from odcctl.http.sse import Parser
from odcctl.http.wire import LostAnswer

T = TypeVar("T")


class AsyncClient:
    """The arguments of odc.Client."""

    def __init__(
        self, server: str | None = None, *, token: str | None = None,
        retry_for_s: float = RETRY_FOR_S, outage_s: float = OUTAGE_S,
    ) -> None:  # fmt: skip
        self.transport = AsyncTransport(server_of(server, token), retry_for_s, outage_s)

    async def submit(
        self, command: str | os.PathLike[str] | Sequence[str], *args: str,
        work_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None, key: str | None = None, **options: Value,
    ) -> AsyncJob:  # fmt: skip
        """See Client.submit."""
        body = await asyncio.to_thread(submit_body, command, args, options, work_dir, environment)
        answer = await self.send(calls.request(calls.SUBMIT_ARGV, body=body, key=key))
        return AsyncJob(self, answer.id, tuple(answer.warnings))

    async def preview(
        self, command: str | os.PathLike[str] | Sequence[str], *args: str,
        work_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None, **options: Value,
    ) -> models.Preview:  # fmt: skip
        """See Client.preview."""
        body = await asyncio.to_thread(
            submit_body, command, args, options, work_dir, environment, test_only=True
        )
        return (await self.send(calls.request(calls.TEST_ARGV, body=body))).test_only

    async def submit_spec(self, spec: models.JobSpec, *, key: str | None = None) -> AsyncJob:
        """See Client.submit_spec."""
        answer = await self.send(calls.request(calls.SUBMIT_JOB, body=spec, key=key))
        return AsyncJob(self, answer.id)

    async def submit_specs(
        self, specs: Sequence[models.JobSpec], *, key: str | None = None
    ) -> list[AsyncJob]:
        """Submit many jobs, all or none."""
        answer = await self.send(calls.request(calls.SUBMIT_JOBS, body={"jobs": specs}, key=key))
        return [AsyncJob(self, one) for one in answer.ids]

    def job(self, job_id: Selector) -> AsyncJob:
        """The handle of a job that was submitted before. Sends nothing. Raises WrongArgument
        unless it is the id of a job, a task or tasks."""
        return AsyncJob(self, check_job(job_id))

    async def list_jobs(
        self, *, job: str | int | Sequence[str | int] | None = None, user: Some = None,
        name: Some = None, partition: Some = None, account: Some = None, qos: Some = None,
        state: Some = None, ended: bool = False, ended_since: datetime | None = None,
        ended_before: datetime | None = None,
    ) -> AsyncIterator[models.Job]:  # fmt: skip
        """See Client.list_jobs."""
        cursor: str | None = None
        while True:
            page = await self.send(
                calls.request(
                    calls.LIST_JOBS, job=job, user=user, name=name, partition=partition,
                    account=account, qos=qos, state=state, ended=ended, ended_since=ended_since,
                    ended_before=ended_before, limit=calls.PAGE_JOBS, cursor=cursor,
                )
            )  # fmt: skip
            for one in page.jobs:
                yield one
            cursor = page.next
            if cursor is None:
                return

    async def get_jobs(self, selector: Selector) -> list[models.Job]:
        """See Client.get_jobs."""
        found: list[models.Job] = []
        cursor: str | None = None
        while True:
            page = await self.send(calls.request(calls.GET_JOB, selector, cursor=cursor))
            found += page.jobs
            cursor = page.next
            if cursor is None:
                return found

    async def wait(
        self, selector: Selector, timeout_s: float | None = None
    ) -> list[models.EndedJob]:
        """See Client.wait."""
        check_timeout(timeout_s)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = calls.LONG_POLL_S if until is None else until - time.monotonic()
            answer = await self.send(calls.wait(selector, min(max(left, 0), calls.LONG_POLL_S)))
            if answer.ended:
                return answer.jobs
            if left <= 0:
                raise TimeoutError(f"job {selector} has not ended after {timeout_s} s")

    async def why(self, selector: Selector) -> models.Explanation:
        """See Client.why."""
        return await self.send(calls.request(calls.EXPLAIN_JOB, selector))

    async def script(self, selector: Selector) -> str:
        return (await self.send(calls.request(calls.GET_SCRIPT, selector))).decode("utf-8")

    async def logs(
        self, selector: Selector, *, stream: Literal["stdout", "stderr"] = "stdout",
        rank: int | Literal["all"] = 0,
    ) -> str:  # fmt: skip
        """See Client.logs."""
        asked = calls.request(calls.GET_LOGS, selector, stream=stream, rank=rank)
        return (await self.send(asked)).decode("utf-8", "replace")

    async def follow_logs(
        self, selector: Selector, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int = 0
    ) -> AsyncIterator[bytes]:
        """See Client.follow_logs."""
        asked = calls.request(
            calls.GET_LOGS, selector, stream=stream, rank=rank, follow=True, waits=True
        )
        resumed = calls.resumed(selector, (await self.send(calls.first_row(selector))).jobs)
        ended, retries = False, self.transport.retries(asked)
        while True:
            resumed.begin()
            try:
                async with aclosing(self._pieces(asked, retries)) as pieces:
                    async for piece in pieces:
                        if new := resumed.new(piece):
                            yield new
                if ended:
                    return
                ended = (await self.send(calls.wait(selector, calls.SETTLE_S))).ended
                continue
            except (Failure, LostAnswer) as error:
                pause_s = retries.pause_after(error)
            await asyncio.sleep(pause_s)

    async def follow_events(
        self, selector: Selector | None = None, *, after: int | None = None, follow: bool = True
    ) -> AsyncIterator[models.Event]:
        """See Client.follow_events."""
        retries = self.transport.retries(calls.follow_events(selector, after, follow=follow))
        end = EventsEnd(selector, after, follow=follow)
        while True:
            try:
                await self._look_for(end, selector)
                asked = calls.follow_events(selector, after, follow=follow and not end.is_over)
                async with aclosing(self._events(asked, retries)) as events:
                    async for event in events:
                        after = event.id
                        if event.kind != calls.LAGGED:
                            yield event
                        if end.take(event):
                            await self._look_for(end, selector)
                            if end.is_over:
                                break
                if not follow or (end.is_over and end.is_complete):
                    return
                if not end.is_over:
                    raise LostAnswer("the stream of events ended")
                pause_s = READ_AGAIN_S
            except (Failure, LostAnswer) as error:
                pause_s = retries.pause_after(error)
            await asyncio.sleep(pause_s)

    async def _events(
        self, asked: Request[models.Event], retries: Retries
    ) -> AsyncGenerator[models.Event]:
        parser = Parser()
        async with aclosing(self._pieces(asked, retries)) as pieces:
            async for piece in pieces:
                for event in map(calls.event_of, parser.feed(piece)):
                    yield event

    async def _look_for(self, end: EventsEnd, selector: Selector | None) -> None:
        if end.waits and not end.is_over and selector is not None:
            end.found(await self.send(calls.wait(selector, 0)))

    async def cancel(
        self, jobs: Selectors, *, signal: str | int | None = None
    ) -> list[models.Outcome]:
        """See Client.cancel."""
        body = {"ids": calls.ids_of(jobs)}
        if signal is None:
            return (await self.send(calls.request(calls.CANCEL_JOBS, body=body))).jobs
        body = {**body, "signal": signal}
        return (await self.send(calls.request(calls.SIGNAL_JOBS, body=body))).jobs

    async def hold(self, jobs: Selectors) -> list[models.Outcome]:
        """Keep pending jobs from starting."""
        asked = calls.request(calls.HOLD_JOBS, body={"ids": calls.ids_of(jobs)})
        return (await self.send(asked)).jobs

    async def release(self, jobs: Selectors) -> list[models.Outcome]:
        """Let held jobs start."""
        asked = calls.request(calls.RELEASE_JOBS, body={"ids": calls.ids_of(jobs)})
        return (await self.send(asked)).jobs

    async def requeue(self, jobs: Selectors, *, hold: bool = False) -> list[models.Outcome]:
        """End running jobs and return them to the queue."""
        body = {"ids": calls.ids_of(jobs), "hold": hold}
        return (await self.send(calls.request(calls.REQUEUE_JOBS, body=body))).jobs

    async def list_nodes(self) -> list[models.Node]:
        return (await self.send(calls.request(calls.LIST_NODES))).nodes

    async def send(self, request: Request[T]) -> T:
        return await self.transport.send(request)

    async def _pieces(self, asked: Request[T], retries: Retries) -> AsyncGenerator[bytes]:
        answer = await self.transport.stream(asked)
        retries.succeeded()
        try:
            while piece := await answer.read():
                yield piece
        finally:
            answer.close()


class AsyncJob:
    """A submitted job or array. warnings: of the submit."""

    def __init__(
        self, client: AsyncClient, job_id: Selector, warnings: tuple[str, ...] = ()
    ) -> None:
        self.client = client
        self.id = job_id
        self.warnings = warnings

    def __repr__(self) -> str:
        return f"AsyncJob({self.id})"

    async def status(self) -> models.Job:
        """See Job.status."""
        return (await self.client.get_jobs(self.id))[-1]

    async def tasks(self) -> list[models.Job]:
        """See Job.tasks."""
        return calls.by_task(await self.client.get_jobs(self.id))

    async def wait(self, timeout_s: float | None = None, *, check: bool = False) -> models.EndedJob:
        """See Job.wait."""
        ended = calls.worst(await self.client.wait(self.id, timeout_s))
        if check and not ended.is_ok:
            raise calls.failure(ended, await self.client.get_jobs(ended.id))
        return ended

    async def why(self) -> models.Explanation:
        return await self.client.why(self.id)

    async def logs(
        self, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int | Literal["all"] = 0
    ) -> str:
        return await self.client.logs(self.id, stream=stream, rank=rank)

    def follow_logs(
        self, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int = 0
    ) -> AsyncIterator[bytes]:
        return self.client.follow_logs(self.id, stream=stream, rank=rank)

    def events(self, *, follow: bool = True) -> AsyncIterator[models.Event]:
        return self.client.follow_events(self.id, follow=follow)

    async def cancel(self) -> None:
        """See Job.cancel."""
        calls.check_outcomes(await self.client.cancel(self.id))

    async def signal(self, signal: str | int) -> None:
        """See Job.signal."""
        calls.check_outcomes(await self.client.cancel(self.id, signal=signal))
