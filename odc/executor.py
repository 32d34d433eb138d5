"""JobExecutor: functions as jobs, with the interface of concurrent.futures."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, InvalidStateError
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from odc.arguments import check_calls, check_executor
from odc.calls import Selector, Value
from odc.client import Client, Job
from odc.ends import End, Ends
from odc.errors import FolderNotShared, JobFailed, OdcError
from odc.folder import NO_PYTHON, NOT_SHARED, SCRIPT, Arguments, CallFolder
from odc.interrupts import note_jobs, noting

P = ParamSpec("P")
T = TypeVar("T")


class JobFuture(Future[T]):
    """job: the job, or the task of an array, that runs the call."""

    def __init__(self, *, alone: bool) -> None:
        """alone: no other call runs in its job."""
        super().__init__()
        self.job: Job
        self._alone = alone

    def cancel(self) -> bool:
        """Cancel the job, also while it runs. False: the call has ended, or shares its job with
        others (chunksize)."""
        if self.done() or not self._alone:
            return self.cancelled()
        self.job.cancel()
        done = super().cancel()
        if done:
            self.set_running_or_notify_cancel()
        return done

    def result(self, timeout: float | None = None) -> T:
        """After Ctrl-C the job goes on, and the KeyboardInterrupt has a note that says so."""
        with noting(self.job.id):
            return super().result(timeout)

    def running(self) -> bool:
        """Whether the job runs now. Asks the daemon."""
        return not self.done() and self.job.status().state in ("RUNNING", "COMPLETING")


@dataclass(frozen=True, slots=True)
class _Submitted:
    """A submit: call i runs in task i // step of the array."""

    folder: CallFolder
    job: Job
    futures: Sequence[JobFuture[Any]]
    step: int
    python: str


class JobExecutor(Executor):
    """Runs each call as a job, and map() as one array.

    The function and its arguments are written to a folder, which the nodes must see under the same
    path; `python` runs them there, and writes the result next to them. Exceptions of the function
    are raised by the future, with the traceback of the node.

    folder: default ~/.cache/odc/calls. python: the interpreter on the nodes. max_running: how many
    tasks of each array, of map() or submit_array(), may run at the same time; the jobs of submit()
    are not counted. options: those of Client.submit, for every job.
    """

    def __init__(
        self, client: Client | None = None, *, folder: str | os.PathLike[str] | None = None,
        python: str | os.PathLike[str] = sys.executable,
        work_dir: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None, max_running: int | None = None,
        **options: Value,
    ) -> None:  # fmt: skip
        if "array" in options:
            raise ValueError("array is not an option here; submit_array() and map() make arrays")
        check_executor(python, max_running)
        self.client = client or Client()
        self._folder = _default_folder() if folder is None else Path(folder).absolute()
        self._python = os.fspath(python)
        self._work_dir = work_dir
        self._environment = environment
        self._throttle = "" if max_running is None else f"%{max_running}"
        self._options = options
        self._ends = Ends(self.client)
        self._lock = threading.Lock()
        self._submitted: list[_Submitted] = []
        self._cancelled: set[Selector] = set()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Raises NotPicklable, Refused and the other errors of a submit at once."""
        check_calls(fn, ())
        return self._start(fn, [(args, kwargs)], step=1)[0]

    def submit_array(
        self, fn: Callable[..., T], calls: Iterable[Sequence[Any]], *, chunksize: int = 1
    ) -> list[JobFuture[T]]:
        """A future for each call, whose arguments are a tuple. All calls are one array; chunksize:
        calls of one task, one after the other."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1")
        calls = list(calls)
        check_calls(fn, calls)
        arguments: list[Arguments] = [(tuple(one), {}) for one in calls]
        return self._start(fn, arguments, step=chunksize) if arguments else []

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:  # fmt: skip
        """The results in order. All calls are one array. If the iterator is closed early, or a call
        fails, the calls that have not ended are cancelled."""
        calls = list(zip(*iterables, strict=False))
        futures = self.submit_array(fn, calls, chunksize=chunksize)
        until = None if timeout is None else time.monotonic() + timeout
        return self._results(futures, until)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """wait: for all calls; then the folders of those without an error are removed."""
        with self._lock:
            self._closed = True
            submitted = list(self._submitted)
        if cancel_futures:
            for one in submitted:
                self._cancel(one)
        if not wait:
            return
        for one in submitted:
            wait_for(one.futures)
        self._ends.close()
        for one in submitted:
            if all(not each.cancelled() and each.exception() is None for each in one.futures):
                one.folder.remove()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Wait for all calls; after Ctrl-C do not wait: the jobs go on."""
        if not isinstance(error, KeyboardInterrupt):
            self.shutdown(wait=True)
            return
        self.shutdown(wait=False)
        self._ends.close()
        live = [one for one in self._submitted if not all(each.done() for each in one.futures)]
        note_jobs(error, [str(one.job.id) for one in live if one.job.id not in self._cancelled])

    def _start(
        self, fn: Callable[..., T], calls: Sequence[Arguments], *, step: int
    ) -> list[JobFuture[T]]:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        folder = CallFolder.make(self._folder, fn, calls)
        tasks = -(-len(calls) // step)
        futures = [JobFuture[T](alone=step == 1) for _ in calls]
        try:
            self._ends.start()
            job = self._submit(folder, fn, step, len(calls), tasks)
        except BaseException:
            folder.remove()
            raise
        for at, future in enumerate(futures):
            task = Job(self.client, f"{job.id}_{at // step}")
            future.job = job if tasks == 1 else task
        submitted = _Submitted(folder, job, futures, step, self._python)
        with self._lock:
            self._submitted.append(submitted)
        numbers: Iterable[int | None] = (None,) if tasks == 1 else range(tasks)
        self._ends.watch(int(job.id), numbers, lambda task, end: _settle(submitted, task or 0, end))
        return futures

    def _submit(
        self, folder: CallFolder, fn: Callable[..., Any], step: int, count: int, tasks: int
    ) -> Job:
        options: dict[str, Value] = {
            "job_name": getattr(fn, "__name__", "call")[:100],
            "output": folder.path / ("output-%j.txt" if tasks == 1 else "output-%A_%a.txt"),
            **self._options,
        }
        if tasks > 1:
            options["array"] = f"0-{tasks - 1}{self._throttle}"
        return self.client.submit(
            SCRIPT, *folder.words(self._python, step, count), work_dir=self._work_dir,
            environment=self._environment, **options,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip

    def _results(self, futures: list[JobFuture[T]], until: float | None) -> Iterator[T]:
        try:
            for future in futures:
                timeout = None if until is None else until - time.monotonic()
                yield Future[T].result(future, timeout)  # After Ctrl-C these jobs do not go on.
        finally:
            # They are one array, or one job.
            if any(not future.done() for future in futures):
                job_id = int(str(futures[0].job.id).partition("_")[0])
                with suppress(OdcError):
                    self.client.cancel(job_id)
                    self._cancelled.add(job_id)

    def _cancel(self, submitted: _Submitted) -> None:
        if any(not future.done() for future in submitted.futures):
            self.client.cancel(submitted.job.id)


def _settle(submitted: _Submitted, task: int, end: End | OdcError) -> None:
    """Give the futures of an array's task their results."""
    first = task * submitted.step
    for at in range(first, min(first + submitted.step, len(submitted.futures))):
        future = submitted.futures[at]
        if future.done():
            continue
        with suppress(InvalidStateError):  # cancelled meanwhile
            if isinstance(end, OdcError):
                future.set_exception(end)
                continue
            try:
                value = submitted.folder.result(at, expected=end.state == "COMPLETED")
            except FileNotFoundError:
                future.set_exception(_failure(end, submitted.folder.path, submitted.python))
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)


def _failure(end: End, folder: Path, python: str) -> JobFailed:
    """Why there is no result."""
    of: type[JobFailed] = JobFailed
    detail = end.detail
    if end.exit_code == NOT_SHARED or str(folder) in (detail or ""):
        of = FolderNotShared
        detail = f"its node does not see the folder {folder}; choose a shared one with folder="
    elif end.state == "COMPLETED":
        of = FolderNotShared
        detail = f"its result is not in {folder}: the folder is another one on its node"
    elif end.exit_code == NO_PYTHON:
        detail = f"its node has no interpreter {python}; choose one with python="
    return of(end.job_id, end.state, end.exit_code, end.signal, detail)


def _default_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "odc" / "calls"
