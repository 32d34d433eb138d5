"""Client and Job: the API from ordinary code. odc.async_client has the same for asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Literal, TypeVar

from odc import calls, models
from odc.arguments import check_job, check_timeout
from odc.calls import Request, Selector, Selectors, Some, Value
from odc.events_end import READ_AGAIN_S, EventsEnd
from odc.interrupts import noting
from odc.submission import submit_body
from odc.transport import OUTAGE_S, RETRY_FOR_S, Transport, server_of
from odcctl.exits import Failure
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer

T = TypeVar("T")


class Client:
    """server, token: as odcctl's --server and ODC_TOKEN; without them, the client uses odcctl's
    settings. retry_for_s: how long a request is repeated while the daemon restarts; outage_s: the
    same for waiting and following. Threads may share a client. Raises odc.OdcError in every
    method."""

    def __init__(
        self, server: str | None = None, *, token: str | None = None,
        retry_for_s: float = RETRY_FOR_S, outage_s: float = OUTAGE_S,
    ) -> None:  # fmt: skip
        self.transport = Transport(server_of(server, token), retry_for_s, outage_s)

    def submit(
        self, command: str | os.PathLike[str] | Sequence[str], *args: str,
        work_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None, key: str | None = None, **options: Value,
    ) -> Job:  # fmt: skip
        """Submit a script or a command.

        command: the path of a script; the text of a script, which starts with "#!"; or a list: the
        words of a command. args: the arguments of the script. options: those of sbatch, with
        underscores: gpus="h100:2", time=timedelta(hours=4), job_name="train", array="0-9".
        environment: None: that of this process. key: an idempotency key; two submits with the same
        key make one job.
        """
        body = submit_body(command, args, options, work_dir, environment)
        answer = self.send(calls.request(calls.SUBMIT_ARGV, body=body, key=key))
        return Job(self, answer.id, tuple(answer.warnings))

    def preview(
        self, command: str | os.PathLike[str] | Sequence[str], *args: str,
        work_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None, **options: Value,
    ) -> models.Preview:  # fmt: skip
        """Where and when submit() with these arguments would start the job. Submits nothing."""
        body = submit_body(command, args, options, work_dir, environment, test_only=True)
        return self.send(calls.request(calls.TEST_ARGV, body=body)).test_only

    def submit_spec(self, spec: models.JobSpec, *, key: str | None = None) -> Job:
        """Submit a job whose request is typed. Its script may have no #SBATCH lines."""
        return Job(self, self.send(calls.request(calls.SUBMIT_JOB, body=spec, key=key)).id)

    def submit_specs(self, specs: Sequence[models.JobSpec], *, key: str | None = None) -> list[Job]:
        """Submit many jobs, all or none."""
        answer = self.send(calls.request(calls.SUBMIT_JOBS, body={"jobs": specs}, key=key))
        return [Job(self, one) for one in answer.ids]

    def job(self, job_id: Selector) -> Job:
        """The handle of a job that was submitted before. Sends nothing. Raises WrongArgument
        unless it is the id of a job, a task or tasks."""
        return Job(self, check_job(job_id))

    def list_jobs(
        self, *, job: str | int | Sequence[str | int] | None = None, user: Some = None,
        name: Some = None, partition: Some = None, account: Some = None, qos: Some = None,
        state: Some = None, ended: bool = False, ended_since: datetime | None = None,
        ended_before: datetime | None = None,
    ) -> Iterator[models.Job]:  # fmt: skip
        """Jobs that match all filters: live ones, running ones first; with ended also the others,
        newest first. Pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = self.send(
                calls.request(
                    calls.LIST_JOBS, job=job, user=user, name=name, partition=partition,
                    account=account, qos=qos, state=state, ended=ended, ended_since=ended_since,
                    ended_before=ended_before, limit=calls.PAGE_JOBS, cursor=cursor,
                )
            )  # fmt: skip
            yield from page.jobs
            cursor = page.next
            if cursor is None:
                return

    def get_jobs(self, selector: Selector) -> list[models.Job]:
        """A job, or all rows of an array: its waiting tasks as one, and each task that started."""
        found: list[models.Job] = []
        cursor: str | None = None
        while True:
            page = self.send(calls.request(calls.GET_JOB, selector, cursor=cursor))
            found += page.jobs
            cursor = page.next
            if cursor is None:
                return found

    def wait(self, selector: Selector, timeout_s: float | None = None) -> list[models.EndedJob]:
        """Wait until the job, or all tasks of the array, have ended. Raises TimeoutError. After
        Ctrl-C the job goes on, and the KeyboardInterrupt has a note that says so."""
        check_timeout(timeout_s)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = calls.LONG_POLL_S if until is None else until - time.monotonic()
            with noting(selector):
                answer = self.send(calls.wait(selector, min(max(left, 0), calls.LONG_POLL_S)))
            if answer.ended:
                return answer.jobs
            if left <= 0:
                raise TimeoutError(f"job {selector} has not ended after {timeout_s} s")

    def why(self, selector: Selector) -> models.Explanation:
        """Why a job has not started, and when it is planned and expected to."""
        return self.send(calls.request(calls.EXPLAIN_JOB, selector))

    def script(self, selector: Selector) -> str:
        return self.send(calls.request(calls.GET_SCRIPT, selector)).decode("utf-8")

    def logs(
        self, selector: Selector, *, stream: Literal["stdout", "stderr"] = "stdout",
        rank: int | Literal["all"] = 0,
    ) -> str:  # fmt: skip
        """The output until now. Of an array: that of its tasks, each line after the task's id."""
        asked = calls.request(calls.GET_LOGS, selector, stream=stream, rank=rank)
        return self.send(asked).decode("utf-8", "replace")

    def follow_logs(
        self, selector: Selector, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int = 0
    ) -> Iterator[bytes]:
        """The output as it arrives, from the start of the job to its end, or to that of all tasks
        of the array; continues after an outage of the daemon."""
        asked = calls.request(
            calls.GET_LOGS, selector, stream=stream, rank=rank, follow=True, waits=True
        )
        resumed = calls.resumed(selector, self.send(calls.first_row(selector)).jobs)
        ended, retries = False, self.transport.retries(asked)
        while True:
            resumed.begin()
            try:
                answer = self.transport.stream(asked)
                retries.succeeded()
                with closing(answer):
                    for piece in answer:
                        if new := resumed.new(piece):
                            yield new
                if ended:
                    return
                # The daemon ends the stream of a job that is only being started. After the end,
                # what came since is read.
                ended = self.send(calls.wait(selector, calls.SETTLE_S)).ended
            except (Failure, LostAnswer) as error:
                time.sleep(retries.pause_after(error))

    def follow_events(
        self, selector: Selector | None = None, *, after: int | None = None, follow: bool = True
    ) -> Iterator[models.Event]:
        """The events of a job, until it has ended, or of the cluster. after: only those after the
        event of this id; by default, all of a job, and new ones of the cluster. Continues after an
        outage."""
        retries = self.transport.retries(calls.follow_events(selector, after, follow=follow))
        end = EventsEnd(selector, after, follow=follow)
        while True:
            try:
                self._look_for(end, selector)
                asked = calls.follow_events(selector, after, follow=follow and not end.is_over)
                answer = self.transport.stream(asked)
                retries.succeeded()
                with closing(answer):
                    for one in Events(answer):
                        event = calls.event_of(one)
                        after = event.id
                        if event.kind != calls.LAGGED:
                            yield event
                        if end.take(event):
                            self._look_for(end, selector)
                            if end.is_over:
                                break
                if not follow or (end.is_over and end.is_complete):
                    return
                if not end.is_over:
                    raise LostAnswer("the stream of events ended")
                pause_s = READ_AGAIN_S
            except (Failure, LostAnswer) as error:
                pause_s = retries.pause_after(error)
            time.sleep(pause_s)

    def _look_for(self, end: EventsEnd, selector: Selector | None) -> None:
        if end.waits and not end.is_over and selector is not None:
            end.found(self.send(calls.wait(selector, 0)))

    def cancel(self, jobs: Selectors, *, signal: str | int | None = None) -> list[models.Outcome]:
        """Cancel jobs, arrays or tasks; with signal, only send it to those that run."""
        body = {"ids": calls.ids_of(jobs)}
        if signal is None:
            return self.send(calls.request(calls.CANCEL_JOBS, body=body)).jobs
        return self.send(calls.request(calls.SIGNAL_JOBS, body={**body, "signal": signal})).jobs

    def hold(self, jobs: Selectors) -> list[models.Outcome]:
        """Keep pending jobs from starting."""
        return self.send(calls.request(calls.HOLD_JOBS, body={"ids": calls.ids_of(jobs)})).jobs

    def release(self, jobs: Selectors) -> list[models.Outcome]:
        """Let held jobs start."""
        return self.send(calls.request(calls.RELEASE_JOBS, body={"ids": calls.ids_of(jobs)})).jobs

    def requeue(self, jobs: Selectors, *, hold: bool = False) -> list[models.Outcome]:
        """End running jobs and return them to the queue."""
        body = {"ids": calls.ids_of(jobs), "hold": hold}
        return self.send(calls.request(calls.REQUEUE_JOBS, body=body)).jobs

    def list_nodes(self) -> list[models.Node]:
        return self.send(calls.request(calls.LIST_NODES)).nodes

    def send(self, request: Request[T]) -> T:
        return self.transport.send(request)


class Job:
    """A submitted job or array. warnings: of the submit."""

    def __init__(self, client: Client, job_id: Selector, warnings: tuple[str, ...] = ()) -> None:
        self.client = client
        self.id = job_id
        self.warnings = warnings

    def __repr__(self) -> str:
        return f"Job({self.id})"

    def status(self) -> models.Job:
        """The job now. Of an array: its newest row; tasks() has all."""
        return self.client.get_jobs(self.id)[-1]

    def tasks(self) -> list[models.Job]:
        """All rows of an array: its waiting tasks as one, and each task that started, by
        the number of the task."""
        return calls.by_task(self.client.get_jobs(self.id))

    def wait(self, timeout_s: float | None = None, *, check: bool = False) -> models.EndedJob:
        """Wait for the end. Of an array: of all tasks; the answer is about the first that failed.

        check: raise JobFailed unless all have COMPLETED. Raises TimeoutError.
        """
        ended = calls.worst(self.client.wait(self.id, timeout_s))
        if check and not ended.is_ok:
            rows = self.client.get_jobs(ended.id)
            raise calls.failure(ended, rows)
        return ended

    def why(self) -> models.Explanation:
        return self.client.why(self.id)

    def logs(
        self, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int | Literal["all"] = 0
    ) -> str:
        """See Client.logs."""
        return self.client.logs(self.id, stream=stream, rank=rank)

    def follow_logs(
        self, *, stream: Literal["stdout", "stderr"] = "stdout", rank: int = 0
    ) -> Iterator[bytes]:
        """See Client.follow_logs."""
        return self.client.follow_logs(self.id, stream=stream, rank=rank)

    def events(self, *, follow: bool = True) -> Iterator[models.Event]:
        return self.client.follow_events(self.id, follow=follow)

    def cancel(self) -> None:
        """Raises Refused. Cancelling a job that has ended does nothing."""
        calls.check_outcomes(self.client.cancel(self.id))

    def signal(self, signal: str | int) -> None:
        """Send a signal to the running job, such as "USR1". Raises Refused."""
        calls.check_outcomes(self.client.cancel(self.id, signal=signal))
