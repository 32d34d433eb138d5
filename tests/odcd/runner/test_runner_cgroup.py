"""If cgroup v2 is available, it is found, used and reported; if not, one line explains why."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.runner import cgroup
from odcd.runner.cgroup import Cgroups, describe_cgroups


def a_hierarchy(root: Path, controllers: str = "cpuset cpu io memory pids") -> Path:
    """The files of a cgroup v2 root, as the kernel shows them."""
    root.mkdir()
    (root / "cgroup.controllers").write_text(controllers + "\n")
    (root / "cgroup.subtree_control").write_text("")
    (root / "cgroup.procs").write_text("")
    return root


def a_group(root: Path, path: str, pids: str = "") -> Path:
    group = root / path
    group.mkdir(parents=True)
    for name in ("cgroup.events", "cgroup.controllers", "cgroup.subtree_control"):
        (group / name).write_text("")
    (group / "cgroup.procs").write_text(pids)
    return group


def test_as_root_groups_are_made_on_the_machines_hierarchy(tmp_path: Path) -> None:
    root = a_hierarchy(tmp_path / "cgroup")
    cgroups = Cgroups(Path("/run"), root, "0::/user.slice\n")
    assert (root / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"
    path = cgroups.create("7-1-0", {"cpus": 3, "mem_mib": 512})
    assert path is not None
    group = Path(path)
    assert group.parent.parent == root
    assert (group / "memory.max").read_text() == str(512 * 1024 * 1024)
    assert (group / "memory.oom.group").read_text() == "1"
    assert (group / "cpu.max").read_text() == "300000 100000"
    assert int((group / "pids.max").read_text()) == cgroup.MAX_PROCESSES
    assert cgroups.statement == (f"memory and CPU limits are enforced by cgroup v2 below {root}")


def test_a_member_of_a_declared_node_has_a_group_without_limits(tmp_path: Path) -> None:
    cgroups = Cgroups(Path("/run"), a_hierarchy(tmp_path / "cgroup"), "0::/\n")
    path = cgroups.create("7-1-0", None)
    assert path is not None
    assert list(Path(path).iterdir()) == []


def test_a_delegated_group_is_used_after_its_processes_moved_to_a_leaf(tmp_path: Path) -> None:
    root = a_hierarchy(tmp_path / "cgroup")
    (root / "cgroup.events").write_text("")
    own = a_group(root, "system.slice/odcd.service", pids="12\n")
    (own / "odc-daemon").mkdir()
    (own / "odc-daemon" / "cgroup.procs").write_text("")
    cgroups = Cgroups(Path("/run"), root, "0::/system.slice/odcd.service\n")
    assert (own / "odc-daemon" / "cgroup.procs").read_text() == "12"
    path = cgroups.create("7-1-0", None)
    assert path is not None
    assert Path(path).parent.parent == own


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda root: root.mkdir(), "this machine has no cgroup hierarchy at"),
        (lambda root: (root / "memory").mkdir(parents=True), "this machine has only cgroup v1 at"),
        (lambda root: a_hierarchy(root, "cpu pids"), "has no memory controller"),
    ],
)
def test_why_nothing_is_enforced_is_one_plain_line(tmp_path: Path, make: object, why: str) -> None:
    root = tmp_path / "cgroup"
    make(root)  # type: ignore[operator]
    cgroups = Cgroups(Path("/run"), root, "0::/\n")
    group = cgroups.create("7-1-0", {"cpus": 1, "mem_mib": 1})
    # A hierarchy without controllers still lists a member's processes.
    assert group is None or list(Path(group).iterdir()) == []
    assert cgroups.statement == describe_cgroups(root, "0::/\n")
    assert cgroups.statement.startswith("memory and CPU limits are not enforced: ")
    assert why in cgroups.statement
    assert "\n" not in cgroups.statement


def test_a_group_that_is_not_delegated_is_left_alone(tmp_path: Path) -> None:
    root = a_hierarchy(tmp_path / "cgroup")
    (root / "cgroup.events").write_text("")
    statement = describe_cgroups(root, "0::/user.slice/session-3.scope\n")
    assert statement.endswith(
        "the cgroup /user.slice/session-3.scope is not delegated to this user"
    )


def test_a_setup_that_the_kernel_refuses_is_reported(tmp_path: Path) -> None:
    root = a_hierarchy(tmp_path / "cgroup")
    (root / "cgroup.subtree_control").unlink()
    (root / "cgroup.subtree_control").mkdir()
    cgroups = Cgroups(Path("/run"), root, "0::/\n")
    assert "cannot set up" in cgroups.statement
    assert cgroups.create("7-1-0", None) is None


def test_out_of_memory_kills_are_counted(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    assert cgroup.oom_kills(str(group)) == 0
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\n")
    assert cgroup.oom_kills(str(group)) == 2
