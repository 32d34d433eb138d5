"""A fork of the runner that works as a job's user, so the runner never waits for a file system."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from odcd.runner import children
from odcd.runner.loop import Loop
from odcd.runner.uids import groups_of


class Helper:
    """A process of the user, who may stop it: every caller that waits for it sets a time limit."""

    def __init__(self, channel: socket.socket, pidfd: int) -> None:
        self.channel = channel
        """The other end closes it when the process ends, for whatever reason."""
        self._pidfd = pidfd

    def close(self) -> None:
        """Stop listening to the process and kill it: otherwise a user who stopped it would keep it
        forever, even after its answer. The runner's loop reaps it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self.channel.close()
        os.close(self._pidfd)


class Watch:
    """The loop's wait for a helper: it ends when the caller closes it, or when its time is over."""

    def __init__(
        self,
        loop: Loop,
        helper: Helper,
        limit_s: float,
        on_ready: Callable[[socket.socket], None],
        on_late: Callable[[], None],
    ) -> None:
        """on_ready: called with the helper's channel when it can be read. on_late: called after
        limit_s unless the watch was closed; it must close it, as must on_ready at some point."""
        self._loop = loop
        self._helper = helper
        self._on_late = on_late
        self._closed = False
        loop.watch(helper.channel, lambda _: on_ready(helper.channel))
        loop.at(time.time() + limit_s, self._end_wait)

    def _end_wait(self) -> None:
        if not self._closed:
            self._on_late()

    def close(self) -> None:
        """Stop waiting, and close the helper. A repeated close does nothing."""
        if not self._closed:
            self._closed = True
            self._loop.forget(self._helper.channel)
            self._helper.close()


def fork_as(
    uid: int,
    gid: int | None,
    work: Callable[[socket.socket], None],
    *,
    switch_user: bool,
    keep: Sequence[socket.socket] = (),
) -> Helper:
    """Run work in a process of the user. work communicates over a socket.

    gid None: the account's own group. keep: descriptors that stay open there. Raises OSError when
    no process can be forked.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = children.fork()
    if pid == 0:
        _help(theirs, uid, gid, work, switch_user, keep)
    theirs.close()
    ours.setblocking(False)
    try:
        return Helper(ours, os.pidfd_open(pid))
    except OSError:
        os.kill(pid, signal.SIGKILL)
        ours.close()
        raise


def _help(
    channel: socket.socket,
    uid: int,
    gid: int | None,
    work: Callable[[socket.socket], None],
    switch_user: bool,
    keep: Sequence[socket.socket],
) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        _close_all_but(channel, *keep)
        if switch_user:
            _become(uid, pwd.getpwuid(uid).pw_gid if gid is None else gid)
        work(channel)
    finally:
        os._exit(0)


def _become(uid: int, gid: int) -> None:
    os.setgroups(groups_of(uid, gid))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _close_all_but(*kept: socket.socket) -> None:
    start = 3
    for number in sorted(sock.fileno() for sock in kept):
        os.closerange(start, number)
        start = number + 1
    os.closerange(start, 1 << 20)
