"""The tasks of one step: their processes, pipes and input."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import selectors
import signal
import struct
import termios
from typing import Any

from odcd.runner.prepare import Prepared, Preparer
from odcd.runner.steps import task
from odcd.runner.steps.input import Input, Task
from odcd.runner.steps.journal import ERR, MESSAGE, OUT, Journal
from odcd.runner.terminal import give_terminal

READ_BYTES = 65536


class Tasks:
    def __init__(
        self, order: dict[str, Any], selector: selectors.BaseSelector, journal: Journal,
        record_fd: int,
    ) -> None:  # fmt: skip
        self._order = order
        self._selector = selector
        self._journal = journal
        self._record_fd = record_fd
        self._all = [Task(number, spec) for number, spec in enumerate(order["tasks"])]
        self._by_pid: dict[int, Task] = {}
        self._reading = True
        self._master: int | None = None
        self._held: int | None = None
        """The terminal's master, until no process is left."""
        self._opener: int | None = None
        self._prepared: dict[str | None, Prepared] = {}
        self._nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.cancelled = False
        """Tasks that have not been started will not be."""
        for one in self._all:
            one.takes_input = (
                one.number == 0 if order["pty"]
                else one.spec["in"] is None and order["stdin"] in ("all", one.number)
            )  # fmt: skip
        self.input = Input(self._all, selector)
        self.groups: list[str] = sorted({g for g in order["cgroups"].values() if g})

    # -- starts -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Raises CannotBegin, OSError."""
        preparer = Preparer()
        for group in {self._order["cgroups"].get(str(one.spec["rank"])) for one in self._all}:
            self._prepared[group] = preparer.prepare({**self._order, "cgroup": group})
        first = next(iter(self._prepared.values()))
        # If this process dies from now on, there may be processes to look for.
        first.begun.write(self._record_fd, 0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._nofile[1], self._nofile[1]))
        if any(file["truncate"] for file in self._order["files"]):
            self._opener = os.fork()
            if self._opener == 0:
                task.empty_files(self._order, first)
            return
        self._start_all()

    def _start_all(self) -> None:
        for one in self._all:
            self._start(one)

    def _start(self, one: Task) -> None:
        spec, prepared = one.spec, self._prepared[self._order["cgroups"].get(str(one.spec["rank"]))]
        given: list[int] = []

        def pipe(*, writes: bool = False) -> tuple[int, int]:
            """Our end and the task's."""
            reading, writing = os.pipe2(os.O_CLOEXEC)
            ours, its = (writing, reading) if writes else (reading, writing)
            os.set_blocking(ours, False)
            given.append(its)
            return ours, its

        one.has_terminal = self._order["pty"] and one.number == 0
        terminal = self._open_terminal(prepared) if one.has_terminal else None
        stdin = stdout = stderr = None
        if terminal is None:
            if one.takes_input:
                one.stdin, stdin = pipe(writes=True)
            if spec["out"] is None:
                ours, stdout = pipe()
                one.outputs[ours] = OUT
            if spec["err"] is None:
                ours, stderr = pipe()
                one.outputs[ours] = ERR
        status, its_status = pipe()
        one.outputs[status] = MESSAGE
        if prepared.groups is not None:
            for fd in given[:-1]:
                # So that a program can open /dev/stdout.
                os.fchown(fd, self._order["uid"], self._order["gid"])
        ends = task.Ends(stdin, stdout, stderr, terminal)
        # A signal that arrives before the new process has its own handlers must not be lost.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, task.RESET)
        one.pid = os.fork()
        if one.pid == 0:
            task.become(self._order, spec, prepared, ends, its_status, self._nofile)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._by_pid[one.pid] = one
        for fd in given:
            os.close(fd)
        if terminal is not None:
            os.close(terminal)
            assert self._master is not None
            one.outputs[self._master] = OUT
            one.stdin = fcntl.fcntl(self._master, fcntl.F_DUPFD_CLOEXEC)
            # A program that closes its descriptors before it exits must not be hung up on.
            self._held = fcntl.fcntl(self._master, fcntl.F_DUPFD_CLOEXEC)
        if one.takes_input:
            self.input.write(one)
        for fd in one.outputs:
            self._selector.register(fd, selectors.EVENT_READ, self._reader(one, fd))

    def _open_terminal(self, prepared: Prepared) -> int:
        self._master, slave = os.openpty()
        os.set_blocking(self._master, False)
        os.set_inheritable(self._master, False)
        self.resize(self._order["rows"] or 24, self._order["columns"] or 80)
        give_terminal(slave, self._order, switch_user=prepared.groups is not None)
        return slave

    def resize(self, rows: int, columns: int) -> None:
        if self._master is not None:
            with contextlib.suppress(OSError):
                size = struct.pack("HHHH", rows, columns, 0, 0)
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    # -- ends -------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        return self._opener is None and all(one.status is not None for one in self._all)

    @property
    def live(self) -> list[int]:
        return [one.number for one in self._all if one.status is None]

    @property
    def statuses(self) -> list[int]:
        return [one.status or 0 for one in self._all]

    def host(self, number: int) -> str:
        return self._all[number].spec["host"]

    def ended(self, pid: int, status: int) -> int | None:
        """The task with this process, which has ended; None: it was another process."""
        if pid == self._opener:
            self._opener = None
            if self.cancelled:
                for one in self._all:
                    one.status = signal.SIGTERM
            else:
                self._start_all()
            return None
        one = self._by_pid.pop(pid, None)
        if one is None:
            return None
        if one.program_status is None and self._begin_epilog(one, status):
            return None
        one.status = status if one.program_status is None else one.program_status
        self.input.close(one)
        for fd in list(one.outputs):
            self._drain(one, fd)
        return one.number

    def _begin_epilog(self, one: Task, status: int) -> bool:
        """Whether an epilog follows the program: the task ends with it."""
        if not (self._order.get("hooks") or {}).get("task_epilog"):
            return False
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return False
        if child == 0:
            prepared = self._prepared[self._order["cgroups"].get(str(one.spec["rank"]))]
            task.become_epilog(self._order, one.spec, one.pid, prepared, writing, self._nofile)
        os.close(writing)
        os.set_blocking(reading, False)
        one.program_status = status
        one.outputs[reading] = MESSAGE
        self._selector.register(reading, selectors.EVENT_READ, self._reader(one, reading))
        self._by_pid[child] = one
        return True

    def drain(self) -> None:
        """Read what the tasks' descendants have written."""
        for one in self._all:
            for fd in list(one.outputs):
                self._drain(one, fd)

    def finish(self) -> None:
        """No process is left: keep the rest of the output, and close."""
        self.drain()
        for one in self._all:
            for fd in list(one.outputs):
                self._forget(one, fd)
        if self._held is not None:
            os.close(self._held)
        for prepared in self._prepared.values():
            if prepared.group_fd is not None:
                os.close(prepared.group_fd)
        for group in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(group)

    # -- output -----------------------------------------------------------------------------------

    def _reader(self, one: Task, fd: int) -> Any:
        return lambda: self._read(one, fd)

    def _read(self, one: Task, fd: int) -> bool:
        """Whether more may follow at once."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._forget(one, fd)
            return False
        kind = one.outputs[fd]
        if kind == MESSAGE:
            for line in data.splitlines():
                text = f"slurmstepd-{one.spec['host']}: error: ".encode() + line + b"\n"
                self._journal.add(MESSAGE, one.number, text)
        else:
            self._journal.add(kind, one.number, data)
        return True

    def _drain(self, one: Task, fd: int) -> None:
        # At most a pipe's capacity: another process may continue writing.
        for _ in range(32):
            if not self._read(one, fd):
                return

    def _forget(self, one: Task, fd: int) -> None:
        if fd in one.outputs:
            del one.outputs[fd]
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
            if fd == self._master:
                self._master = None
            os.close(fd)

    def read_output(self, *, on: bool) -> None:
        for one in self._all:
            for fd in one.outputs:
                if on:
                    with contextlib.suppress(KeyError):
                        self._selector.register(fd, selectors.EVENT_READ, self._reader(one, fd))
                else:
                    with contextlib.suppress(KeyError):
                        self._selector.unregister(fd)
