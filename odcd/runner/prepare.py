"""Work of the shim for a job's process before that process exists.

While a fork lives, every page that it or the shim writes to is copied. So work done before the fork
costs a fraction of the same work after it.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from odcd.runner import kernel, limits, record
from odcd.runner.begin import CannotBegin
from odcd.runner.uids import groups_of

GROUPS_S = 5.0
"""A user's groups are read again after this time."""

_TICKS = os.sysconf("SC_CLK_TCK")


class Prepared(NamedTuple):
    """The settings of the job's process, in the kernel's format."""

    begun: record.Begun
    limits: list[limits.Set]
    ordinary: bool
    """Whether its scheduling and its OOM score are the defaults."""
    groups: list[int] | None
    """None: it keeps the shim's user."""
    group_fd: int | None
    """cgroup.procs of the group to join."""


class Preparer:
    """One per shim. Work that is the same for all jobs is done once."""

    def __init__(self) -> None:
        """Created after the shim has dropped the runner's limits."""
        self._ordinary = limits.is_ordinary()
        self._has_new_keyring = kernel.leave_session_keyring()
        self._limits: Any = None
        self._differing: list[limits.Set] = []
        self._user: tuple[int, int] | None = None
        self._groups: list[int] = []
        self._looked_at = 0.0

    def prepare(self, order: dict[str, Any]) -> Prepared:
        """Raises CannotBegin."""
        # Before anything is recorded: if a directory server hangs, the job must not count as begun.
        groups = self._groups_of(order["uid"], order["gid"]) if order["switch_user"] else None
        if order["limits"] != self._limits:
            self._differing = limits.differing(order["limits"])
            self._limits = order["limits"]
        group_fd = _open_group(order["cgroup"]) if order["cgroup"] else None
        if not self._has_new_keyring:
            kernel.leave_session_keyring()
        begun = record.Begun(os.getpid(), _ticks_now(), time.time())
        return Prepared(begun, self._differing, self._ordinary, groups, group_fd)

    def finish(self, prepared: Prepared) -> None:
        """The job's process was created, or never will be."""
        # The next job gets this keyring: the shim shares none with a job.
        self._has_new_keyring = kernel.leave_session_keyring()
        if prepared.group_fd is not None:
            os.close(prepared.group_fd)

    def _groups_of(self, uid: int, gid: int) -> list[int]:
        now = time.monotonic()
        if self._user != (uid, gid) or now - self._looked_at > GROUPS_S:
            try:
                self._groups = groups_of(uid, gid)
            except (OSError, ValueError) as error:
                raise CannotBegin.by(f"cannot become uid {uid}, gid {gid}", error) from None
            self._user, self._looked_at = (uid, gid), now
        return self._groups


def _open_group(group: str) -> int:
    try:
        return os.open(f"{group}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotBegin(f"cannot join {group}: {error.strerror}", passing=True) from None


def _ticks_now() -> int:
    """Any process created from now on has at least this start time in /proc/<pid>/stat."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
