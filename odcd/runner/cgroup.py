"""Memory, CPU and process limits of members by cgroup v2, where the machine allows it.

A base group contains one group per member; the runner and its shims stay outside of them. There are
two possible places. Root uses the machine's own hierarchy, /sys/fs/cgroup/odc-<run dir>. Otherwise
the base is below this process's group, if that group was delegated (systemd's Delegate=yes, or a
container with a writable hierarchy). The group's processes then move to a leaf beside the members,
as the kernel requires.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "cpu", "pids")
MAX_PROCESSES = 32768
_CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place for the members' groups. If there is none, parent is None and reason says why."""

    parent: Path | None
    evict: bool
    """Processes in parent itself must first move into a leaf."""
    reason: str = ""
    tracks: Path | None = None
    """A hierarchy in which groups have no limits, but list a member's processes and can kill them.
    """


def find_place(root: Path = ROOT, own: str | None = None) -> Place:
    """Inspect only; change nothing. own: the text of /proc/self/cgroup."""

    def nowhere(reason: str) -> Place:
        return Place(parent=None, evict=False, reason=reason, tracks=_find_tracking(root))

    if not (root / "cgroup.controllers").exists():
        kind = "only cgroup v1" if (root / "memory").exists() else "no cgroup hierarchy"
        return nowhere(f"this machine has {kind} at {root}")
    offered = (root / "cgroup.controllers").read_text().split()
    absent = [name for name in CONTROLLERS if name not in offered]
    if absent:
        return nowhere(f"cgroup v2 at {root} has no {' and no '.join(absent)} controller")
    # Every group except the hierarchy's own root has cgroup.events.
    if not (root / "cgroup.events").exists() and os.access(
        root / "cgroup.subtree_control", os.W_OK
    ):
        return Place(parent=root, evict=False)
    text = Path("/proc/self/cgroup").read_text() if own is None else own
    path = next((line[3:] for line in text.splitlines() if line.startswith("0::")), "/")
    group = root / path.lstrip("/")
    needed = ("cgroup.subtree_control", "cgroup.procs")
    if os.access(group, os.W_OK) and all(os.access(group / name, os.W_OK) for name in needed):
        return Place(parent=group, evict=True)
    return nowhere(f"the cgroup {path} is not delegated to this user")


def _find_tracking(root: Path) -> Path | None:
    """The cgroup v2 hierarchy that systemd mounts beside version 1, without controllers."""
    for place in (root, root / "unified"):
        if (place / "cgroup.controllers").exists() and not (place / "cgroup.events").exists():
            return place if os.access(place / "cgroup.procs", os.W_OK) else None
    return None


def describe_cgroups(root: Path = ROOT, own: str | None = None) -> str:
    """One line for people: whether memory and CPUs of jobs are limited here, and the reason if
    not."""
    place = find_place(root, own)
    if place.parent is None:
        return f"memory and CPU limits are not enforced: {place.reason}"
    return f"memory and CPU limits are enforced by cgroup v2 below {place.parent}"


class Cgroups:
    """The groups of this runner's members. Does nothing where the machine does not allow groups."""

    def __init__(self, run_dir: Path, root: Path = ROOT, own: str | None = None) -> None:
        self._base: Path | None = None
        place = find_place(root, own)
        self.statement = describe_cgroups(root, own)
        self._limits = place.parent is not None
        if place.parent is None:
            if place.tracks is not None:
                self._track(place.tracks / _name(run_dir))
            return
        base = place.parent / _name(run_dir)
        try:
            if place.evict:
                _evict(place.parent)
            _enable(place.parent)
            base.mkdir(exist_ok=True)
            _enable(base)
        except OSError as error:
            self.statement = (
                f"memory and CPU limits are not enforced: cannot set up {base}: {error.strerror}"
            )
            return
        self._base = base

    def _track(self, base: Path) -> None:
        with contextlib.suppress(OSError):
            base.mkdir(exist_ok=True)
            self._base = base

    def find(self, name: str) -> str | None:
        """The path of an existing group."""
        path = f"{self._base}/{name}"
        return path if self._base is not None and os.path.isdir(path) else None

    def create(self, name: str, limits: dict[str, int] | None) -> str | None:
        """The path of a new group, or None if this machine has no groups. limits: {"cpus",
        "mem_mib"}; without limits the group only lists the member's processes. Raises OSError."""
        if self._base is None:
            return None
        path = f"{self._base}/{name}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        if limits and self._limits:
            group = Path(path)
            (group / "memory.max").write_text(str(limits["mem_mib"] * 1024 * 1024))
            # When a job runs out of memory, the whole job ends, not just one of its processes.
            (group / "memory.oom.group").write_text("1")
            with contextlib.suppress(OSError):
                (group / "memory.swap.max").write_text("0")
            (group / "cpu.max").write_text(f"{limits['cpus'] * _CPU_PERIOD_US} {_CPU_PERIOD_US}")
            (group / "pids.max").write_text(str(MAX_PROCESSES))
        return path


def _name(run_dir: Path) -> str:
    return f"odc-{zlib.crc32(str(run_dir).encode()):08x}"


def remove(group: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(group)


def kill(group: str) -> None:
    """KILL all its processes at once; kernels before 5.14 cannot do that."""
    with contextlib.suppress(OSError), open(f"{group}/cgroup.kill", "w") as file:
        file.write("1")


def populated(group: str) -> bool:
    """Whether a process of the group is alive."""
    with contextlib.suppress(OSError):
        return "populated 1" in Path(group, "cgroup.events").read_text()
    return False


def oom_kills(group: str) -> int:
    """How often the kernel killed a process of the group for lack of memory."""
    with contextlib.suppress(OSError, ValueError), open(f"{group}/memory.events") as file:
        for line in file:
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _evict(group: Path) -> None:
    leaf = group / "odc-daemon"
    leaf.mkdir(exist_ok=True)
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(pid)


def _enable(group: Path) -> None:
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
