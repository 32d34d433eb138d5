"""Follow the ends of many jobs with one stream of events, for JobExecutor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from odc import calls, models
from odc.client import Client
from odc.errors import NotFound, OdcError
from odcctl.exits import Failure
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer

LOOK_S = 30.0
"""How often the state of jobs is read, in case an event was lost."""
TURN_S = 0.5
START_S = 10.0
IDS_PER_REQUEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    job_id: int
    state: str
    exit_code: int | None = None
    signal: int | None = None
    detail: str | None = None


Callback = Callable[[int | None, End | OdcError], None]
"""Called with the array's task, None for a single job."""


class Ends:
    """One thread that calls back when jobs end. close() ends it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Callback, set[int | None]]] = {}
        self._thread: threading.Thread | None = None
        self._streaming = threading.Event()
        self._after: int | None = None
        self._closed = False

    def start(self) -> None:
        """Before the submit: wait until events arrive, so that none of a job is missed."""
        with self._lock:
            self._begin()
        self._streaming.wait(START_S)

    def _begin(self) -> None:
        if self._thread is None:
            self._streaming.clear()
            self._thread = threading.Thread(target=self._run, name="odc-ends", daemon=True)
            self._thread.start()

    def watch(self, job_id: int, tasks: Iterable[int | None], callback: Callback) -> None:
        """tasks: of an array; (None,) for a single job. They may have ended already."""
        with self._lock:
            self._open[job_id] = (callback, set(tasks))
            self._begin()  # It may have given up since start().
        with suppress(OdcError):  # Otherwise the next look finds its end.
            self._replay(job_id)

    def close(self) -> None:
        self._closed = True

    def _run(self) -> None:
        retries = self._client.transport.retries(calls.follow_events(None, None, follow=True))
        while not self._closed:
            asked = calls.follow_events(None, self._after, follow=True)
            try:
                events = Events(self._client.transport.stream(asked))
                try:
                    retries.succeeded()
                    self._follow(events)
                finally:
                    events.close()
            except (Failure, LostAnswer) as error:
                try:
                    pause_s = retries.pause_after(error)
                except OdcError as lost:
                    return self._give_up(lost)
                time.sleep(pause_s)
            except OdcError as error:
                return self._give_up(error)
            except Exception as error:
                return self._give_up(OdcError(f"an event of the daemon cannot be read: {error}"))

    def _follow(self, events: Events) -> None:
        if self._after is None:
            for job_id in self._ids():
                self._replay(job_id)
        self._streaming.set()
        looked = time.monotonic()
        while not self._closed:
            event = events.next(TURN_S)
            if event is not None:
                one = calls.event_of(event)
                self._after = one.id
                if one.kind == calls.LAGGED:
                    raise LostAnswer("the daemon sent events faster than they were read")
                self._take(one)
            elif events.ended:
                raise LostAnswer("the stream of events ended")
            if time.monotonic() - looked > LOOK_S:
                self._look(self._ids())
                looked = time.monotonic()

    def _ids(self) -> list[int]:
        with self._lock:
            return list(self._open)

    def _replay(self, job_id: int) -> None:
        """Take the events of the job until now."""
        for event in self._client.follow_events(job_id, follow=False):
            self._take(event)

    def _take(self, event: models.Event) -> None:
        if event.kind != "ended" or event.job_id is None:
            return
        job_id = event.job_id if event.array_job_id is None else event.array_job_id
        with self._lock:
            known = self._open.get(job_id)
        if known is None:
            return
        task = event.array_task_id
        if task in known[1]:
            self._settle(job_id, {task: _end_of(event.job_id, event.detail)})
        else:
            self._look([job_id])  # a range of waiting tasks

    def _look(self, ids: Sequence[int]) -> None:
        """Read the state of these jobs and report those that have ended as a whole."""
        for first in range(0, len(ids), IDS_PER_REQUEST):
            some = ids[first : first + IDS_PER_REQUEST]
            rows = self._client.list_jobs(job=some) if len(some) > 1 else ()
            live = {row.id if row.array_job_id is None else row.array_job_id for row in rows}
            for job_id in some:
                if job_id not in live:
                    self._look_at(job_id)

    def _look_at(self, job_id: int) -> None:
        try:
            answer = self._client.send(calls.wait(job_id, 0))
        except NotFound as error:
            return self._fail(job_id, error)
        if answer.ended:
            self._settle_all(job_id, answer.jobs)

    def _settle_all(self, job_id: int, ended: list[models.EndedJob]) -> None:
        with self._lock:
            tasks = set(self._open[job_id][1]) if job_id in self._open else set[int | None]()
        if not tasks:
            return
        by_task = {one.array_task_id: one for one in ended}
        details = {row.id: row.end_detail for row in self._client.get_jobs(job_id)}
        ends: dict[int | None, End] = {}
        for task in tasks:
            # The tasks of a range that was cancelled while it waited have one row, without a task.
            one = by_task.get(task) or by_task.get(None) or ended[0]
            ends[task] = End(
                job_id=one.id, state=one.state, exit_code=one.exit_code, signal=one.signal,
                detail=details.get(one.id),
            )  # fmt: skip
        self._settle(job_id, ends)

    def _settle(self, job_id: int, ends: Mapping[int | None, End]) -> None:
        with self._lock:
            known = self._open.get(job_id)
            if known is None:
                return
            callback, tasks = known
            mine = [task for task in ends if task in tasks]
            tasks.difference_update(mine)
            if not tasks:
                del self._open[job_id]
        for task in mine:
            callback(task, ends[task])

    def _fail(self, job_id: int, error: OdcError) -> None:
        with self._lock:
            known = self._open.pop(job_id, None)
        if known is not None:
            callback, tasks = known
            for task in tasks:
                callback(task, error)

    def _give_up(self, error: OdcError) -> None:
        """The daemon cannot be reached for long: report that for every job."""
        with self._lock:
            ids, self._thread = list(self._open), None
        self._streaming.set()
        for job_id in ids:
            self._fail(job_id, error)


def _end_of(job_id: int, detail: Mapping[str, Any]) -> End:
    return End(
        job_id=job_id, state=str(detail.get("state")), exit_code=detail.get("exit_code"),
        signal=detail.get("signal"), detail=detail.get("detail"),
    )  # fmt: skip
