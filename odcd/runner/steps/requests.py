"""The daemon's requests about steps."""

from __future__ import annotations

import os
from typing import Any

from odcd.runner import protocol
from odcd.runner.protocol import ProtocolError
from odcd.runner.record import Key
from odcd.runner.steps.book import Steps
from odcd.runner.uids import Users

_FIELDS = {"name": str, "gid": int, "umask": int, "work_dir": str, "env": dict, "node_env": dict,
           "files": list, "programs": list, "tasks": list, "wait_s": int,
           "grace_s": (int, float)}  # fmt: skip
MAX_LIVE = 2000
"""Of one user: each is a process of root, and keeps output on the disk of odc's home."""
STEP_BYTES = 8 * 1024 * 1024
"""The memory of the process that watches a step; it is not in the job's cgroup."""
_OTHERS = ("stdin", "pty", "rows", "columns", "ends_at", "kill_on_bad_exit")


def step_key(request: dict[str, Any]) -> Key:
    """Raises KeyError, TypeError or ValueError when a field is missing or not a number."""
    return Key(int(request["job"]), int(request["attempt"]), int(request["step"]))


def most_live(memory_bytes: int) -> int:
    """How many steps of one user may run: they take a quarter of the memory at most."""
    return max(64, min(MAX_LIVE, memory_bytes // 4 // STEP_BYTES))


class StepRequests:
    def __init__(self, steps: Steps, users: Users, memory_bytes: int | None = None) -> None:
        """memory_bytes: of the machine; None: read it."""
        self._steps = steps
        self._users = users
        if memory_bytes is None:
            memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._most = most_live(memory_bytes)

    def start(self, order: dict[str, Any], job_uid: int) -> None:
        """job_uid: the user of the step's job. Raises ProtocolError, OSError, KeyError, TypeError
        or ValueError."""
        uid = int(order["uid"])
        refusal = self._users.refusal(uid)
        if refusal:
            raise ProtocolError(protocol.BAD_REQUEST, refusal)
        if uid != job_uid:
            raise ProtocolError(protocol.BAD_REQUEST, "the step is not of the job's user")
        if self._steps.find(step_key(order)) is None and self._steps.count_live(uid) >= self._most:
            raise ProtocolError(
                protocol.BAD_REQUEST, f"its user has {self._most} running steps on this machine"
            )
        _check(order)
        self._steps.start(order)


def _check(order: dict[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError when the supervisor could not follow the order."""
    for name, kind in _FIELDS.items():
        if not isinstance(order[name], kind):
            raise TypeError(f"{name} is not of type {kind}")
    for name in _OTHERS:
        order[name]
    if not order["tasks"]:
        raise ValueError("a step has at least one task")
    for task in order["tasks"]:
        order["programs"][task["program"]][0]
        for stream in ("out", "err"):
            if task[stream] is not None:
                order["files"][task[stream]]["path"]
        if not isinstance(task["env"], dict) or not isinstance(task["host"], str):
            raise TypeError("a task needs its host and its variables")
