"""odcctl run: submit a command, follow its output, exit with its code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Annotated, Any

import typer

from odcctl.cli.call import Call
from odcctl.cli.commands import new_app
from odcctl.commands._submitting import SubmitVerb, submit_argv
from odcctl.ended import explain_ends, report_wait
from odcctl.exits import DONE, REFUSED, Failure, Refused, job_exit_code
from odcctl.follow import SILENCE_S, Patience, outages, output
from odcctl.http.client import Client
from odcctl.http.sse import Events
from odcctl.http.wire import LostAnswer
from odcctl.resumed import ByPosition
from odcctl.text.complaints import describe
from odcctl.text.jobs import LIVE
from odcctl.text.render import harmless, note, put_json

AGAIN_WITHIN_S = 1.0
"""A second Ctrl-C within this time cancels the job."""
SETTLE_S = 5
"""How long one request waits for a job whose output has ended to end or to be requeued."""
EXAMPLE = """\
odcctl run --gpus 1 python train.py
odcctl run --gpus 1 --time 2:00:00 --pty bash
odcctl run --sync . --gpus 1 python train.py"""

app = new_app()


@app.command(cls=SubmitVerb, epilog=EXAMPLE)
def run(
    ctx: typer.Context,
    sync: Annotated[
        str | None,
        typer.Option(
            "--sync", metavar="DIR",
            help="run in a copy of this folder, and bring changed files back; comes first",
        ),
    ] = None,
) -> int:  # fmt: skip
    """Run a command as a job: follow its output, and exit with its exit code.

    OPTIONS are those of submit. Ctrl-C prints the job's state; a second Ctrl-C within a second
    cancels the job. With --pty the job has a terminal: `odcctl run --pty bash` opens a shell on
    its node. Ctrl-] d detaches and leaves it running for `odcctl attach`. With --output FILE
    the output is not followed.

    --sync sends DIR without .git, __pycache__ and what its .odcignore, or else its .gitignore
    files, exclude. When the command has ended, new and changed files come back. A file that was
    changed in DIR meanwhile stays; the job's is kept beside it as NAME.odc-JOB. Keep odcctl
    running; after an interruption, `odcctl sync JOB` fetches the results.
    """
    call = Call.of(ctx, failing="job not run")
    if sync is not None:
        return _run_synced(call, ctx.args, sync)
    try:
        client, answer = submit_argv(call, "run", ctx.args)
    except Refused as refused:
        if "--sync" in refused.message and "unrecognized option" in refused.message:
            raise Failure(
                refused.message, "--sync DIR comes first, before the options of the job."
            ) from None
        raise
    return DONE if "test_only" in answer else RunningJob(client, answer).see_through(call)


def _run_synced(call: Call, argv: list[str], folder: str) -> int:
    from odcctl.sync.session import Copying, Session
    from odcctl.sync.start import prepare

    kept, field = prepare(call.client(), folder)
    try:
        client, answer = submit_argv(call, "run", argv, field)
    except BaseException:
        kept.forget()
        raise
    if "test_only" in answer:
        kept.forget()
        return DONE
    # The server may belong to another user, and the id becomes part of names.
    kept.job, kept.server = str(int(answer["id"])), str(client.addresses[0])
    kept.save()
    copying = Copying(Session(call.new_client, kept), lambda: os.kill(os.getpid(), signal.SIGUSR1))
    signal.signal(signal.SIGUSR1, _leave)
    copying.start()
    watched = RunningJob(client, answer)
    try:
        code = watched.see_through(call)
        if not watched.detached:
            copying.join()
    except _Left:
        return REFUSED
    except KeyboardInterrupt:
        watched.detached = True
        raise
    finally:
        if watched.detached:
            note(f"odcctl: fetch the results with: odcctl sync {kept.job}")
    return (code or REFUSED) if copying.failed else code


class _Left(BaseException):
    """The results cannot be written. No Exception, so that no one handles it on its way."""


def _leave(number: int, frame: FrameType | None) -> None:
    raise _Left


def _use_terminal(watched: RunningJob) -> int:
    from odcctl.terminal import DETACH_KEYS, Detached, attach

    if sys.stdin.isatty():
        note(f"odcctl: connected to the terminal of job {watched.job}; {DETACH_KEYS} detaches")
    try:
        return attach(watched.client, watched.job)
    except Detached:
        watched.detached = True
        note(f"\nodcctl: detached; attach again with: odcctl attach {watched.job}")
        return DONE
    except Refused:
        return watched.follow()  # It has ended: its output is still available.


class RunningJob:
    """The job of this command: prints its output, and passes signals on to it."""

    def __init__(self, client: Client, answer: dict[str, Any]) -> None:
        """answer: to the submit."""
        self.client = client
        self.job = str(answer["id"])
        self.detached = False
        """Whether the user has left its terminal."""
        self._answer = answer
        self._quiet: bool = answer["quiet"]
        self._pty: bool = answer["pty"]
        self._interrupted_at = float("-inf")
        self._cancelled = False

    def see_through(self, call: Call) -> int:
        """Wait for it, print its output, and return its exit code."""
        if call.json:
            put_json(self._answer)
            sys.stdout.flush()
        self.handle_signals()
        self.wait_for_start()
        return _use_terminal(self) if self._pty else self.follow()

    def look(self) -> dict[str, Any]:
        return self.client.request("GET", f"/v1/jobs/{self.job}").json()["jobs"][0]

    def wait_for_start(self) -> None:
        """Wait for events until the job runs or has ended."""
        patience = Patience()
        patience.reached()
        while True:
            with outages(patience):
                events = Events(
                    self.client.stream("GET", f"/v1/jobs/{self.job}/events", {"after": 0})
                )
                try:
                    while not events.ended:
                        event = events.next(None if self._quiet else SILENCE_S)
                        job = self.look()
                        patience.reached()
                        if job["state"] not in ("PENDING", "CONFIGURING"):
                            return
                        if event is None and not self._quiet:
                            self._quiet = True
                            report_wait(self.job, job)
                finally:
                    events.close()
                raise LostAnswer("the stream of events ended")

    def follow(self) -> int:
        """Copy the output of every attempt until the job has ended; return its exit code."""
        patience = Patience()
        patience.reached()
        while True:
            job = patience.try_again(self.look)
            attempt = job["attempt"]
            if job.get("stdout"):
                note(f"odcctl: output of job {self.job} goes to {job['stdout']}")
            else:
                self._copy_output("all" if job["node_count"] > 1 else "0")
            ended = self._settle(attempt, patience)
            if ended is not None:
                explain_ends(self.client, ended)
                return job_exit_code(ended)
            note(f"odcctl: job {self.job} runs again")
            self.wait_for_start()

    def _settle(self, attempt: int, patience: Patience) -> list[dict[str, Any]] | None:
        """The ended jobs; None if another attempt began."""

        def fetch() -> dict[str, Any]:
            return self.client.request("GET", f"/v1/jobs/{self.job}", {"wait": SETTLE_S}).json()

        while True:
            answer = patience.try_again(fetch)
            if answer["ended"]:
                return answer["jobs"]
            now = patience.try_again(self.look)
            if now["state"] in LIVE and now["attempt"] > attempt:
                return None

    def _copy_output(self, rank: str) -> None:
        if self._pty:  # A terminal has one stream.
            return self._copy("stdout", rank)
        errors = threading.Thread(target=self._copy, args=("stderr", rank), daemon=True)
        errors.start()
        self._copy("stdout", rank)
        errors.join()

    def _copy(self, stream: str, rank: str) -> None:
        target = (sys.stderr if stream == "stderr" else sys.stdout).buffer
        params = {"stream": stream, "follow": "true", "rank": rank}
        patience = Patience()
        patience.reached()
        try:
            resumed = None if rank == "all" else ByPosition()
            for piece in output(self.client, self.job, params, patience, resumed=resumed):
                target.write(piece)
                target.flush()
        except Failure as failure:
            note(describe(failure, f"{stream} of job {self.job} lost"))

    def handle_signals(self) -> None:
        """Ctrl-C prints the state; a second one within a second, SIGTERM and SIGHUP cancel."""
        signal.signal(signal.SIGINT, self._interrupted)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._cancel_on)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._cancelled:
            raise KeyboardInterrupt
        if time.monotonic() - self._interrupted_at < AGAIN_WITHIN_S:
            self._cancel()
            return
        try:
            state = self.look()["state"]
        except (Failure, LostAnswer):
            state = "unknown: the daemon is not reached"
        _print_now(f"job {self.job} is {state}; Ctrl-C again within a second cancels it")
        self._interrupted_at = time.monotonic()

    def _cancel_on(self, number: int, frame: FrameType | None) -> None:
        self._cancel()

    def _cancel(self) -> None:
        self._cancelled = True
        try:
            self.client.post("/v1/jobs/cancel", {"ids": [self.job]})
            _print_now(f"cancelling job {self.job}; press Ctrl-C again to stop waiting for it")
        except Failure as failure:
            _print_now(f"job {self.job} not cancelled: {failure.message}")


def _print_now(text: str) -> None:
    # In a signal handler: written to the descriptor, since a print may be interrupted.
    os.write(2, f"odcctl: {harmless(text)}\n".encode())
