"""The quick way from a shim to a script: no copy of the shim in between.

posix_spawn cannot switch users or open files as one, so the shim does both itself, keeping root as
its saved uid, and takes root back when the process is made. The process has none of it: exec makes
its saved uid the user's. While the shim's real uid is the user's, for some 100 µs, the user could
kill it; that ends the user's own job as lost and nothing else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from odcd.runner import job
from odcd.runner.begin import (
    CannotBegin,
    close,
    enter,
    groups_of,
    open_input,
    open_outputs,
    open_spool,
)  # fmt: skip


def suits(order: dict[str, Any], gate_fd: int | None) -> bool:
    """Can it be spawned? Not into a terminal or a cgroup, and not where an open may wait."""
    if order["terminal"] or order["cgroup"] or gate_fd is not None:
        return False
    paths = [order["stdin"]]
    if not order["spool"]:
        paths += [output["path"] for output in (order["stdout"], order["stderr"]) if output]
    base = order["work_dir"]
    return all(_opens_at_once(os.path.join(base, path)) for path in paths if path)


def _opens_at_once(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return True
    return path == "/dev/null" or stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def spawn(order: dict[str, Any], record_fd: int) -> int:
    """The job's process. Raises CannotBegin, NotImplementedError (a libc without setsid here)."""
    job.write_begun(record_fd, 0, os.getpid())
    fds = open_spool(order)
    try:
        with _as_user(order):
            os.umask(order["umask"])
            enter(order["work_dir"])
            fds = [open_input(order), *fds]
            if len(fds) == 1:
                fds += open_outputs(order)
            pid = _spawn(order, fds)
    finally:
        close(fds)
    job.write_begun(record_fd, pid, os.getpid())
    return pid


def _spawn(order: dict[str, Any], fds: list[int]) -> int:
    script = order["script"]
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)]
    try:
        return os.posix_spawn(
            script, [script, *order["args"]], order["env"],
            file_actions=actions, setsid=True, setsigmask=(), setsigdef=job.RESET_SIGNALS,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise CannotBegin.by("cannot execute the script", error) from None


@contextmanager
def _as_user(order: dict[str, Any]) -> Generator[None]:
    """Be the user, with a way back; also back in / with a mask of our own."""
    try:
        if order["switch_user"]:
            uid, gid = order["uid"], order["gid"]
            try:
                os.setgroups(groups_of(uid, gid))
                os.setresgid(gid, gid, 0)
                os.setresuid(uid, uid, 0)
            except OSError as error:
                raise CannotBegin.by(f"cannot become uid {uid}, gid {gid}", error) from None
        yield
    finally:
        if order["switch_user"]:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.setgroups([])
        os.umask(0o077)
        os.chdir("/")
