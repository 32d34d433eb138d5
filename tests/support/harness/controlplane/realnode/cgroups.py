"""The control groups of real nodes: one folder per run in every hierarchy."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

import psutil

from tests.support.harness.controlplane.realnode.needs import CGROUPS, HIERARCHIES

_PREFIX = "odc-nodes-"
_OWN = re.compile(rf"^{_PREFIX}(\d+)$")


def root() -> str:
    """The folder of this process."""
    return f"{_PREFIX}{os.getpid()}"


def prepare(node: str) -> None:
    """For one node, with the folder of its pods: without their CPUs, kubelet fails to set them."""
    for hierarchy in HIERARCHIES:
        (CGROUPS / hierarchy / root() / node / "kubepods").mkdir(parents=True, exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        value = (CGROUPS / "cpuset" / name).read_text()
        folder = CGROUPS / "cpuset"
        for part in (root(), node, "kubepods"):
            folder /= part
            (folder / name).write_text(value)


def remove(within_s: float = 10.0) -> None:
    """Those of this process, and those of runs that were killed."""
    until = time.monotonic() + within_s
    while remaining := left():
        for folder in remaining:
            _remove(folder)
        assert time.monotonic() < until, f"cannot remove {remaining}"
        time.sleep(0.05)


def left() -> list[Path]:
    """Folders of this process and of processes that are gone."""
    return [
        folder
        # runc also makes one in the hierarchy of version 2, which has no limits here.
        for folder in CGROUPS.glob(f"*/{_PREFIX}*")
        if (named := _OWN.match(folder.name)) and not _is_other(int(named[1]))
    ]


def _is_other(pid: int) -> bool:
    return pid != os.getpid() and psutil.pid_exists(pid)


def _remove(folder: Path) -> None:
    """A folder cannot be removed while processes in it are ending."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()
