"""The environment of hooks: what odc knows about the job, and nothing of the user's own."""

from __future__ import annotations

import os
import pwd

from odcd.runner.hooks.program import PATH
from odcd.runner.members import Member

_NAMES = ("SLURM_", "SLURMD_", "ODC_")
_ALSO = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GPU_DEVICE_ORDINAL"})
MAX_BYTES = 64 * 1024
"""A longer variable is left out. Linux accepts 128 KiB."""
CONTEXTS = {
    "prolog": "prolog_slurmd", "epilog": "epilog_slurmd",
    "task_prolog": "prolog_task", "task_epilog": "epilog_task",
}  # fmt: skip
"""Slurm's SLURM_SCRIPT_CONTEXT of each hook."""


def node_environment(member: Member) -> dict[str, str]:
    """For prolog and epilog of a member that is queued. Raises KeyError, TypeError or ValueError
    when its order is malformed."""
    assert member.order is not None
    dispatch, part = member.order["dispatch"], member.order["member"]
    given = {**dispatch["env"], **part["env"]}
    env = {
        str(name): str(value)
        for name, value in given.items()
        if name.startswith(_NAMES) or name in _ALSO
    }
    # The runner does not trust the daemon about the user.
    env |= {
        "SLURM_JOB_ID": str(member.key.job), "SLURM_JOBID": str(member.key.job),
        "SLURM_JOB_UID": str(member.uid), "SLURM_UID": str(member.uid),
        "SLURM_JOB_GID": str(member.gid),
        "SLURM_JOB_WORK_DIR": str(dispatch["work_dir"]),
        "ODC_JOB_ID": str(member.key.job), "ODC_ATTEMPT": str(member.key.attempt),
        "ODC_RANK": str(member.key.rank),
        "PATH": PATH, "HOME": "/", "LANG": "C.UTF-8",
    }  # fmt: skip
    return {name: value for name, value in env.items() if _can_be_given(name, value)}


def _can_be_given(name: str, value: str) -> bool:
    """Whether a program can have the variable. Users choose some values, and must not be able to
    make a hook fail."""
    try:
        size = len(os.fsencode(f"{name}{value}"))
    except UnicodeEncodeError:
        return False
    return size <= MAX_BYTES and "\0" not in f"{name}{value}" and "=" not in name


def user_name(uid: str) -> str:
    """The name of the user, or the number if this machine has no such account. May wait for a
    directory server."""
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError):
        return uid


def owners() -> list[int]:
    """The user ids that may own hooks: root, and the account that runs them."""
    return sorted({0, os.geteuid()})
