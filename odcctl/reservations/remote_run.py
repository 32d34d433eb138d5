"""Run a command in its own reservation: send a folder, run, fetch the folder, end the reservation.

The reservation ends with the command in any case, unless files could not be fetched: they would be
lost.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import tarfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple

from odcctl.exits import (
    INTERRUPTED,
    REFUSED,
    UNREACHABLE,
    Failure,
    Unreachable,
)
from odcctl.http.client import Client
from odcctl.reservations.errors import denied, dropped, not_started
from odcctl.reservations.folders import Amount, Unpacked, measure, pack, unpack
from odcctl.reservations.progress import Progress, follow
from odcctl.ssh import host_files as ssh
from odcctl.ssh.process import SSH_FAILED, Pipe, run_ssh
from odcctl.text.complaints import complaint, describe
from odcctl.text.hours import read_time
from odcctl.text.render import clean, note, when

THERE = "/workspace/run"
"""Not in the home, which may be a permanent disk."""
OF_COMMAND = f"{THERE}.255"
"""A file that exists if the command itself exited with ssh's code for its own failures."""
TIMED_OUT = 124
"""The exit code of timeout(1)."""
DEFAULT_TIMEOUT = "24:00:00"


class Task(NamedTuple):
    command: Sequence[str]
    folder: str | None
    amount: Amount
    fetches: bool
    keeps: bool
    timeout_s: int


def task_of(
    command: Sequence[str], *, send: str | None, fetches: bool, keeps: bool, timeout: str | None
) -> Task:
    """Raises ValueError for wrong usage, and Failure for a folder that cannot be sent."""
    if command[0].startswith("-"):
        raise ValueError(f'"{command[0]}" is an option: write a command after --')
    if not command[0]:
        raise ValueError("the command is empty")
    try:
        timeout_s = read_time(DEFAULT_TIMEOUT if timeout is None else timeout)
    except ValueError as error:
        raise ValueError(f"--timeout takes {error}") from None
    if shutil.which("ssh") is None:
        raise Failure("this machine has no ssh", "Install the OpenSSH client.")
    return Task(
        command=command,
        folder=send,
        amount=Amount(0, 0) if send is None else measure(send),
        fetches=send is not None and fetches,
        keeps=keeps,
        timeout_s=timeout_s,
    )


def see_through(
    client: Client, made: Mapping[str, Any], task: Task, *, verbose: bool, interrupted: bool
) -> int:
    """Run the task; return the command's exit code, or that of the error."""
    run = _Run(client, int(made["id"]), task)
    keeps = task.keeps
    try:
        with _stopped_by_signals(task.timeout_s):
            if interrupted:
                raise KeyboardInterrupt
            code = run.whole(verbose=verbose)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except _Stopped as stopped:
        if stopped.code == TIMED_OUT:
            note("odcctl: the time limit of --timeout was reached")
        code = stopped.code
    except _NotFetched as failure:
        note(describe(failure, "files not fetched"))
        code, keeps = failure.exit_code, True
    except Failure as failure:
        note(describe(failure, "the command did not end"))
        code = failure.exit_code
    except OSError as error:
        note(complaint(str(error), what="the command did not end"))
        code = REFUSED
    if keeps:
        run.report_kept()
    else:
        run.cancel()
    return code


class _Stopped(BaseException):
    """A signal arrived. No Exception, so that the code that it interrupts does not handle it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = TIMED_OUT if number == signal.SIGALRM else 128 + number


@contextmanager
def _stopped_by_signals(timeout_s: int) -> Generator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped(number)

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
    }
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


class _NotFetched(Failure):
    """Files were not fetched. The command's own code is kept if it is not 0."""

    def __init__(self, message: str, hint: str | None, code: int) -> None:
        super().__init__(message, hint)
        self.exit_code = code or REFUSED


class _Run:
    def __init__(self, client: Client, number: int, task: Task) -> None:
        self._client = client
        self._number = number
        self._task = task
        self._one: Mapping[str, Any] = {}

    def whole(self, *, verbose: bool) -> int:
        progress = Progress(verbose=verbose)
        try:
            reply = follow(self._client, self._number, progress)
        finally:
            progress.clear()
        self._one = one = reply.json()
        if one["status"] != "active":
            raise not_started(one, reply.now_s)
        if one.get("connect") != "ssh":
            raise Failure(
                f"reservation {self._number} has only a terminal: ssh cannot reach it",
                "On this cluster, run the command as a job: odcctl run --gpus 1 COMMAND",
            )
        ssh.write(self._client, one)
        self._send()
        code = self._command()
        return self._fetch(code) if self._task.fetches else code

    def _send(self) -> None:
        folder = self._task.folder
        if folder is None:
            return
        note(f"odcctl: sending {clean(folder)} to reservation {self._number}: {self._task.amount}")
        code, stderr = self._ssh(
            f"mkdir -p {THERE} && exec tar -xf - -C {THERE}", write=lambda out: pack(folder, out)
        )
        if code:
            raise self._why(
                code, stderr, f"{folder} was not sent: tar on the dev server exited with {code}"
            )

    def _command(self) -> int:
        shown = shlex.join(self._task.command)
        code, stderr = self._ssh(
            f"mkdir -p {THERE} && cd {THERE} || exit 1\n{shown}\n"
            f"code=$?; [ $code -ne {SSH_FAILED} ] || : >{OF_COMMAND}; exit $code",
            inherits=True,
        )
        if code == SSH_FAILED and self._ssh(f"test -e {OF_COMMAND}")[0]:
            why = self._why(code, stderr, "")
            if self._task.fetches and isinstance(why, Unreachable):
                raise _NotFetched(why.message, self._where(), UNREACHABLE)
            raise why
        return code

    def _fetch(self, code: int) -> int:
        folder = self._task.folder
        assert folder is not None
        unpacked: list[Unpacked] = []
        hint = self._where()
        try:
            failed, stderr = self._ssh(
                f"cd {THERE} && exec tar -cf - .",
                read=lambda out: unpacked.append(unpack(out, folder)),
            )
        except (tarfile.TarError, OSError) as error:
            raise _NotFetched(f"{folder}: {error}", hint, code) from error
        if failed:
            why = self._why(failed, stderr, f"tar on the dev server exited with {failed}")
            raise _NotFetched(why.message, hint, code)
        [done] = unpacked
        note(f"odcctl: fetched new files into {clean(folder)}: {done.extracted}")
        for line in done.refused:
            note(f"odcctl: not fetched: {clean(line)}")
        return (code or REFUSED) if done.refused else code

    def _where(self) -> str:
        return f"They are in {THERE} on the dev server until it ends: odcctl connect {self._number}"

    def _why(self, code: int, stderr: bytes, otherwise: str) -> Failure:
        if code != SSH_FAILED:
            return Failure(otherwise)
        if b"Permission denied (" in stderr:
            return denied(self._one)
        return dropped(self._client, self._number)

    def _ssh(
        self,
        command: str,
        *,
        write: Pipe | None = None,
        read: Pipe | None = None,
        inherits: bool = False,
    ) -> tuple[int, bytes]:
        arguments = [*ssh.command(self._client, self._one), "--", command]
        return run_ssh(arguments, write=write, read=read, inherits=inherits)

    # -- the end ------------------------------------------------------------------------------

    def cancel(self) -> None:
        number = self._number
        try:
            self._client.post("/v1/jobs/cancel", {"ids": [str(number)]})
        except (Failure, KeyboardInterrupt) as error:
            why = error.message if isinstance(error, Failure) else "interrupted"
            note(complaint(f"reservation {number} not cancelled: {why}", hint=self._how_to_end()))
            return
        with suppress(OSError):
            ssh.remove(self._client, [number])
        note(f"odcctl: reservation {number} has ended")

    def report_kept(self) -> None:
        until = self._one.get("expires_at")
        stderr = f" until {when(until)}" if until else ""
        note(f"odcctl: reservation {self._number} continues{stderr}\n  {self._how_to_end()}")

    def _how_to_end(self) -> str:
        return f"To cancel it: odcctl cancel {self._number}"
