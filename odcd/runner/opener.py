"""Open a job's output as the job's user, so the runner never waits for a slow file system."""

from __future__ import annotations

import json
import os
import socket
import stat
from typing import Any

from odcd.runner import kernel
from odcd.runner.helper import Helper, fork_as

OPEN_S = 2.0
"""A file that takes longer is not opened: its user may have stopped the process that opens it."""


def open_as(path: str, uid: int, gid: int, *, switch_user: bool) -> Helper:
    """Its channel receives one message: {"ok": {...}} with the descriptor, or {"error": text}.

    If the helper dies, the channel closes without a message. Raises OSError when no process can be
    forked.
    """

    def work(channel: socket.socket) -> None:
        answer, fds = _open(path)
        socket.send_fds(channel, [json.dumps(answer).encode()], fds)

    return fork_as(uid, gid, work, switch_user=switch_user)


def open_for(
    path: str, uid: int, gid: int, answer_to: socket.socket, *, switch_user: bool
) -> Helper:
    """The same, but the helper sends its answer to answer_to and not through the runner, because
    closing such a file can block on its file system. The channel closes when the helper is done."""

    def work(_: socket.socket) -> None:
        answer, fds = _open(path)
        socket.send_fds(answer_to, [json.dumps(answer).encode()], fds)

    return fork_as(uid, gid, work, switch_user=switch_user, keep=[answer_to])


def open_kept(path: str, uid: int) -> tuple[dict[str, Any], list[int]]:
    """Open output that odc keeps. The runner itself does it, because only the runner can enter the
    folder. Only the owner of the file gets it."""
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
