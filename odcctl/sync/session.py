"""Send a job its files when it starts, and fetch its results when its command has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from odcctl.exits import Failure, Refused, Unreachable
from odcctl.follow import Patience
from odcctl.http.client import Client
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.sync import programs
from odcctl.sync.fetching import SHELL, Extraction, first_line, report
from odcctl.sync.kept import Kept
from odcctl.sync.results import Results
from odcctl.sync.step import Ended, Step
from odcctl.text.complaints import describe
from odcctl.text.jobs import LIVE
from odcctl.text.render import clean, note

WAIT_S = 5
"""How long one request waits for the job's end."""
PAUSE_S, LONGEST_PAUSE_S = 0.3, 10.0
TRIES = 20
"""How often a step is tried that fails although the job runs."""
BEGIN_TRIES = 3
_REASONS = {
    programs.NO_FOLDER: "the job has no folder for them",
    programs.NOT_UNPACKED: "tar could not unpack them",
    programs.NOT_WHOLE: "they did not arrive completely",
}


class NotWritten(Failure):
    """The results cannot be written here. The job waits."""


class Session:
    def __init__(self, new_client: Callable[[], Client], kept: Kept) -> None:
        """new_client: threads have clients of their own."""
        self._client = new_client()
        self._new_client = new_client
        self._kept = kept
        self._why = ""
        """The messages of the last step."""
        self._seen = "0"
        """The id of the last event."""
        self._last = self._complete = 0
        """The last attempt that ran, and the last one whose results have arrived."""

    @property
    def is_complete(self) -> bool:
        """Whether the results of the last attempt have arrived."""
        return 0 < self._complete == self._last

    def run(self) -> None:
        """Returns when the job has ended. Raises Failure: then the job was cancelled if its command
        has not started."""
        done, tries = 0, 0
        while (job := self._next(done)) is not None:
            self._last = job["attempt"]
            if self._serve(job):
                done, tries = self._last, 0
                continue
            tries += 1
            if tries > TRIES:
                raise Failure(
                    "the steps that copy the files fail again and again", clean(self._why) or None
                )
            time.sleep(min(PAUSE_S * 2**tries, LONGEST_PAUSE_S))
        if self.is_complete or not self._kept.attempt:
            self._kept.forget()

    def _next(self, done: int) -> dict[str, Any] | None:
        """Wait until an attempt after this one runs; None: the job has ended."""
        while True:
            job = self._look()
            if job["state"] not in LIVE:
                return None
            if job["attempt"] > done and job["state"] == "RUNNING":
                return job
            with suppress(LostAnswer, Unreachable):
                if job["state"] == "PENDING":
                    self._wait_for_change()
                elif job["attempt"] == done:
                    path = f"/v1/jobs/{self._kept.job}"
                    self._client.request("GET", path, {"wait": WAIT_S})
            time.sleep(PAUSE_S)

    def _look(self) -> dict[str, Any]:
        def fetch() -> dict[str, Any]:
            return self._client.request("GET", f"/v1/jobs/{self._kept.job}").json()["jobs"][0]

        patience = Patience()
        patience.reached()
        return patience.try_again(fetch)

    def _wait_for_change(self) -> None:
        """Wait for an event of the pending job."""
        path = f"/v1/jobs/{self._kept.job}/events"
        events = Events(self._client.stream("GET", path, {"after": self._seen}))
        try:
            if events.next(WAIT_S) is not None:
                self._seen = events.last_id or self._seen
        finally:
            events.close()

    def _serve(self, job: dict[str, Any]) -> bool:
        """False: a step failed. Raises Failure."""
        # A node whose command has ended already takes part in no step.
        sent = self._kept.attempt == job["attempt"] or self._send(job)
        return sent and self._fetch(job)

    def _step(
        self, job: dict[str, Any], program: str, *more: str, nodes: int = 1,
        source: IO[bytes] | None = None, sink: Callable[[bytes], None] | None = None,
    ) -> Ended:  # fmt: skip
        place = [f"--nodelist={job['node_names'][0]}"] if nodes == 1 else []
        words = [
            f"--jobid={self._kept.job}", f"--nodes={nodes}", f"--ntasks={nodes}", *place,
            "--overlap", "--job-name=sync", *SHELL, program, "sync", self._kept.prefix,
            str(job["attempt"]), *more,
        ]  # fmt: skip
        ended = Step(self._new_client, words, source=source, sink=sink).run()
        self._why = ended.stderr.rpartition("\n")[0] or f"exit code {ended.code}"
        return ended

    def _runs(self, job: dict[str, Any]) -> bool:
        """Whether this attempt still runs."""
        now = self._look()
        return now["state"] == "RUNNING" and now["attempt"] == job["attempt"]

    # -- there ------------------------------------------------------------------------------------

    def _send(self, job: dict[str, Any]) -> bool:
        nodes = int(job["node_count"])
        goal = "ready" if nodes == 1 else "arrived"
        try:
            with open(self._kept.archive, "rb") as archive:
                ended = self._step(job, programs.RECEIVE, goal, nodes=nodes, source=archive)
        except (Failure, OSError) as error:
            if isinstance(error, Failure) and not self._runs(job):
                return False
            self._cancel()
            raise
        if ended.code and (ended.code not in _REASONS or not self._runs(job)):
            return False  # The step was ended by something else.
        if ended.code:
            self._cancel()
            raise Failure(
                f"the files were not sent: {_REASONS[ended.code]}", first_line(ended.stderr) or None
            )
        if nodes > 1 and not self._begin(job, nodes):
            return False
        self._kept.attempt = job["attempt"]
        self._kept.save()
        return True

    def _begin(self, job: dict[str, Any], nodes: int) -> bool:
        """Let all nodes begin, when all have the files."""
        for _ in range(BEGIN_TRIES):
            if not self._step(job, programs.BEGIN, nodes=nodes).code:
                return True
            if not self._runs(job):
                return False
        # A node may have ended before the step did. One that did not begin reports that itself.
        return True

    def _cancel(self) -> None:
        self._kept.forget()
        with suppress(Failure, LostAnswer):
            self._client.post("/v1/jobs/cancel", {"ids": [self._kept.job]})

    # -- back -------------------------------------------------------------------------------------

    def _fetch(self, job: dict[str, Any]) -> bool:
        kept = self._kept
        results = Results(kept.folder, kept.job, kept.known)
        try:
            with Extraction(results) as extraction:
                ended = self._step(
                    job, programs.RESULTS, source=extraction.answer, sink=extraction.sink
                )
        except Refused:
            if self._runs(job):
                raise
            return False
        finally:
            kept.save()
        if extraction.failure is None:
            # The pod may end before the end of the step arrives.
            if self._complete != job["attempt"]:
                report(results, kept, ended)
            self._complete = job["attempt"]
        elif isinstance(extraction.failure, OSError):
            raise NotWritten(
                f"the results were not written: {extraction.failure}",
                f"The job keeps them for 30 minutes: odcctl sync {kept.job}",
            )
        return ended.code in (0, programs.NOT_READ)


class Copying(threading.Thread):
    """A session beside the command that follows the job."""

    def __init__(self, session: Session, on_not_written: Callable[[], None]) -> None:
        """on_not_written: called in this thread."""
        super().__init__(name="sync", daemon=True)
        self._session = session
        self._on_not_written = on_not_written
        self.failed = False

    def run(self) -> None:
        try:
            self._session.run()
        except (Failure, LostAnswer, OSError) as error:
            self.failed = True
            failure = error if isinstance(error, Failure) else Failure(str(error))
            note(describe(failure, "files not copied"))
            if isinstance(error, NotWritten):
                self._on_not_written()
