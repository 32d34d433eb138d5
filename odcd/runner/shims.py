"""The runner's shims: forked when needed, given one member after the other over a socket."""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Callable
from typing import Any

from odcd.runner import children, shim
from odcd.runner.limits import Limits
from odcd.runner.loop import Loop
from odcd.runner.members import Member

MAX_IDLE = 2 * (os.cpu_count() or 1) + 10
"""So many idle shims wait for the next members in a burst: forking a shim takes longer than
starting a job."""
KEPT_IDLE = 8
"""So many idle shims remain after a burst."""


class Shim:
    __slots__ = ("channel", "member", "pid")

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self.channel = channel
        self.member: Member | None = None


class Shims:
    def __init__(
        self,
        loop: Loop,
        limits: Limits,
        on_answer: Callable[[Member, dict[str, Any]], None],
        on_death: Callable[[Member], None],
    ) -> None:
        """on_answer: receives a shim's reports about its member. on_death: the shim died before it
        reported the end."""
        self._loop = loop
        self._limits = limits
        self._on_answer = on_answer
        self._on_death = on_death
        self._idle: list[Shim] = []

    def give(self, member: Member, record_fd: int, order: dict[str, Any], gate: int | None) -> None:
        """Give the member to a shim. The caller keeps record_fd. Raises OSError: no shim accepted
        it."""
        shim_of_it = self._idle.pop() if self._idle else self._fork()
        order_fd = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            view = memoryview(json.dumps(order).encode())
            while view:
                view = view[os.write(order_fd, view) :]
            fds = [record_fd, order_fd] + ([] if gate is None else [gate])
            socket.send_fds(shim_of_it.channel, [b"order"], fds)
        except OSError:
            self._release(shim_of_it)
            raise
        finally:
            os.close(order_fd)
        shim_of_it.member = member
        member.shim_pid = shim_of_it.pid

    def _fork(self) -> Shim:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Exclude all existing objects from garbage collection: a collection would copy the shared
        # pages.
        gc.freeze()
        pid = children.fork()
        if pid == 0:
            shim.run(theirs, self._limits)
        theirs.close()
        ours.setblocking(False)
        made = Shim(pid, ours)
        self._loop.watch(ours, lambda _: self._receive(made))
        return made

    def _receive(self, sender: Shim) -> None:
        try:
            data = sender.channel.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._bury(sender)
            return
        member = sender.member
        if member is None:
            return
        answer = json.loads(data)
        if answer["e"] != "started":
            sender.member = None
            self._release(sender)
        self._on_answer(member, answer)

    def _release(self, idle: Shim) -> None:
        if len(self._idle) < MAX_IDLE:
            self._idle.append(idle)
        else:
            self._bury(idle)

    def let_go(self) -> None:
        """While idle: end an idle shim that only a burst would need."""
        if len(self._idle) > KEPT_IDLE:
            self._bury(self._idle[0])

    def _bury(self, dead: Shim) -> None:
        """Close its channel, which also ends it if it lives."""
        self._loop.forget(dead.channel)
        dead.channel.close()
        if dead in self._idle:
            self._idle.remove(dead)
        if dead.member:
            member, dead.member = dead.member, None
            self._on_death(member)
