"""A container's memory limit, if this machine's control groups allow one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class MemoryLimit:
    """A control group of one container; without permission to create a group, it limits nothing."""

    def __init__(self, name: str, limit_bytes: int) -> None:
        self._group: Path | None = None
        old = (_ROOT / "memory").is_dir()  # version 1
        group = (_ROOT / "memory" if old else _ROOT) / f"odc-test-{name}"
        try:
            group.mkdir()
            limit = group / ("memory.limit_in_bytes" if old else "memory.max")
            limit.write_text(str(limit_bytes))
            if not old:
                (group / "memory.swap.max").write_text("0")
                (group / "memory.oom.group").write_text("1")
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            return
        self._group = group
        self._events = group / ("memory.oom_control" if old else "memory.events")

    @property
    def procs(self) -> str:
        """The file into which a process writes 0 to be limited; empty when there is none."""
        return str(self._group / "cgroup.procs") if self._group is not None else ""

    def close(self) -> bool:
        """Whether the kernel killed a process in it for memory; the group is removed then."""
        if self._group is None:
            return False
        counters = self._events.read_text().split()
        killed = int(counters[counters.index("oom_kill") + 1]) > 0
        _remove(self._group)
        return killed


def sweep(pod_uids: Iterable[str]) -> None:
    """Removes the groups that a killed kubelet left for these pods."""
    for uid in pod_uids:
        for root in (_ROOT / "memory", _ROOT):
            for group in root.glob(f"odc-test-{uid}-*"):
                _remove(group)


def _remove(group: Path) -> None:
    for _ in range(100):  # its processes end with their namespace, which takes a moment
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)
