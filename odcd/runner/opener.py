"""Open a job's output as the job's user, without the runner waiting for a slow file system."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import stat
from typing import Any, NoReturn


def open_as(path: str, uid: int, gid: int, *, switch_user: bool) -> socket.socket:
    """A socket on which one message will come: {"ok": {...}} with the descriptor, or {"error":
    text}.

    It is closed without a message when the helper dies. Raises OSError when none can be forked.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        _help(theirs, path, uid, gid, switch_user)
    theirs.close()
    ours.setblocking(False)
    return ours


def _help(channel: socket.socket, path: str, uid: int, gid: int, switch_user: bool) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        kept = channel.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, 1 << 20)
        if switch_user:
            os.setgroups(_groups(uid, gid))
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        answer, fds = _open(path)
        socket.send_fds(channel, [json.dumps(answer).encode()], fds)
    finally:
        os._exit(0)


def _groups(uid: int, gid: int) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        return [gid]


def _open(path: str) -> tuple[dict[str, Any], list[int]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return {"missing": True, "error": f"there is no file {path}"}, []
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return {"error": f"cannot open {path}: {why}"}, []
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return {"error": f"{path} is not a regular file: its output cannot be read again"}, []
    return {"ok": {}}, [fd]
