"""What the shim does for a job's process before there is one.

A fork copies every page that it touches, and so does the shim while the fork lives: what is done
before costs once, and what is done after the fork costs several times as much.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from odcd.runner import kernel, limits, record
from odcd.runner.begin import CannotBegin
from odcd.runner.uids import groups_of

GROUPS_S = 5.0
"""A user's groups are looked up again after this."""

_TICKS = os.sysconf("SC_CLK_TCK")
_groups: dict[tuple[int, int], tuple[float, list[int]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the job's process needs, in the form in which the kernel takes it."""

    begun: record.Begun
    limits: list[limits.Set]
    ordinary: bool
    """Its scheduling and its OOM score are those of every process."""
    groups: list[int] | None
    """None: it stays the user that the shim is."""
    group_fd: int | None
    """cgroup.procs of the group that it joins."""


@contextmanager
def prepared(order: dict[str, Any]) -> Generator[Prepared]:
    """Until the job's process is made. Raises CannotBegin."""
    # Before anything is written down: a directory server that hangs keeps the job from beginning.
    groups = _groups_of(order["uid"], order["gid"]) if order["switch_user"] else None
    group_fd = _open_group(order["cgroup"]) if order["cgroup"] else None
    try:
        kernel.leave_session_keyring()
        yield Prepared(
            begun=record.Begun(os.getpid(), _ticks_now(), time.time()),
            limits=limits.differing(order["limits"]),
            ordinary=limits.is_ordinary(),
            groups=groups,
            group_fd=group_fd,
        )
    finally:
        # The shim shares none with a job.
        kernel.leave_session_keyring()
        if group_fd is not None:
            os.close(group_fd)


def _groups_of(uid: int, gid: int) -> list[int]:
    at, groups = _groups.get((uid, gid), (-GROUPS_S, []))
    now = time.monotonic()
    if now - at < GROUPS_S:
        return groups
    try:
        groups = groups_of(uid, gid)
    except (OSError, ValueError) as error:
        raise CannotBegin.by(f"cannot become uid {uid}, gid {gid}", error) from None
    _groups.clear()
    _groups[uid, gid] = now, groups
    return groups


def _open_group(group: str) -> int:
    try:
        return os.open(f"{group}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotBegin(f"cannot join {group}: {error.strerror}", passing=True) from None


def _ticks_now() -> int:
    """No process that is made from now on started before this, by /proc/<pid>/stat."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
