"""Open a job's output as the job's user, without the runner waiting for a slow file system."""

from __future__ import annotations

import json
import os
import socket
import stat
from typing import Any

from odcd.runner import kernel
from odcd.runner.helper import Helper, fork_as

OPEN_S = 2.0
"""A file that takes longer to open is not opened: its user may have stopped who opens it."""


def open_as(path: str, uid: int, gid: int, *, switch_user: bool) -> Helper:
    """On its channel one message will come: {"ok": {...}} with the descriptor, or {"error": text}.

    It is closed without a message when the helper dies. Raises OSError when none can be forked.
    """

    def work(channel: socket.socket) -> None:
        answer, fds = _open(path)
        socket.send_fds(channel, [json.dumps(answer).encode()], fds)

    return fork_as(uid, gid, work, switch_user=switch_user)


def open_for(
    path: str, uid: int, gid: int, answer_to: socket.socket, *, switch_user: bool
) -> Helper:
    """The same by answer_to, past the runner: whoever closes such a file may have to wait for its
    file system. The channel is closed when it is over."""

    def work(_: socket.socket) -> None:
        answer, fds = _open(path)
        socket.send_fds(answer_to, [json.dumps(answer).encode()], fds)

    return fork_as(uid, gid, work, switch_user=switch_user, keep=[answer_to])


def open_kept(path: str, uid: int) -> tuple[dict[str, Any], list[int]]:
    """Output that odc keeps, opened by the runner: nobody else enters its folder. It is for the
    user whose file it is."""
    answer, fds = _open(path)
    if fds and os.geteuid() == 0 and os.fstat(fds[0]).st_uid != uid:
        os.close(fds[0])
        return {"error": f"{path} does not belong to user id {uid}"}, []
    return answer, fds


def _open(path: str) -> tuple[dict[str, Any], list[int]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return {"missing": True, "error": f"file {path} does not exist"}, []
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return {"error": f"cannot open {path}: {why}"}, []
    try:
        readable = stat.S_ISREG(os.fstat(fd).st_mode) and not kernel.is_kernels_own(fd)
    except OSError:
        readable = False
    if not readable:
        os.close(fd)
        return {"error": f"{path} is not a regular file: its output cannot be read again"}, []
    return {"ok": {}}, [fd]
