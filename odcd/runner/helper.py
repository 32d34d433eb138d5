"""A fork of the runner that works as a job's user, so the runner never waits for a file system."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
from collections.abc import Callable, Sequence
from typing import NoReturn

from odcd.runner import children
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
