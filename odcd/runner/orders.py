"""Turn a dispatch from the daemon into members, and into the order for a shim.

{"job", "attempt", "uid", "gid", "umask", "work_dir", "script", "environment" (digests), "env",
 "args", "started_at", "ends_at", "grace_s", "signal": [number, before_s, batch_only] | null,
 "spool", "pty", "members": [{"rank", "hold", "env", "stdin", "stdout", "stderr", "shared",
 "limits"}]}
Times are seconds since 1970. env: variables added to the environment of the digest.
stdout, stderr: {"path", "truncate", "append"}; stderr null: the same descriptor as stdout.
shared: other ranks write the same file, so only rank 0 may truncate it, before the others open it.
hold: optional; the member runs nothing but keeps its node until it is stopped.
"refusal": text, optional: it cannot start, for this reason, and its members end at once.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

from odcd.runner import processes
from odcd.runner.hooks.task import task_hooks
from odcd.runner.members import EndSignal, Member
from odcd.runner.record import Key
from odcd.runner.rules import Rules
from odcd.runner.texts import Texts

_MIB = 1024 * 1024
HOLD = "trap '' HUP INT QUIT USR1 USR2 ALRM; exec sleep 2147483647"
"""The command of a member that only keeps its node. Signals for its job do not end it."""


def members_of(dispatch: dict[str, Any]) -> list[Member]:
    """Raises KeyError, TypeError or ValueError when a field is missing or has a wrong type."""
    members: list[Member] = []
    for part in dispatch["members"]:
        key = Key(int(dispatch["job"]), int(dispatch["attempt"]), int(part["rank"]))
        member = Member(key, uid=int(dispatch["uid"]), state="queued")
        member.gid = int(dispatch["gid"])
        member.order = {"dispatch": dispatch, "member": part, "shared": bool(part["shared"])}
        member.limits = part["limits"]
        member.grace_s = float(dispatch["grace_s"])
        member.ends_at = None if dispatch["ends_at"] is None else float(dispatch["ends_at"])
        if dispatch["signal"]:
            number, before_s, batch_only = dispatch["signal"]
            member.end_signal = EndSignal(number, before_s, batch_only)
        members.append(member)
    return members


def mark_of(key: Key, run_dir: Path) -> str:
    """A value in the environment of every process of the member; no other runner uses the same
    one."""
    return f"{key}@{zlib.crc32(str(run_dir).encode()):08x}"


def order_of(
    member: Member, run_dir: Path, texts: Texts, rules: Rules, *, gated: bool
) -> dict[str, Any]:
    """The data that the shim needs. Raises OSError or KeyError when the script cannot be
    written."""
    assert member.order is not None
    dispatch, part = member.order["dispatch"], member.order["member"]
    key = member.key
    member.mark = mark_of(key, run_dir)
    terminal = bool(dispatch["pty"]) and key.rank == 0
    kept = f"{run_dir}/output/{key}"
    env = {
        **texts.environment(dispatch["environment"]), **dispatch["env"], **part["env"],
        processes.MARK: member.mark,
    }  # fmt: skip
    member.home = env.get("HOME")
    script = texts.script_file(dispatch["script"], member.uid, dispatch["gid"])
    member.script = script.rpartition("/")[2]
    args = dispatch["args"]
    if part.get("hold"):
        script, args = "/bin/sh", ["-c", HOLD]
    return {
        "uid": member.uid, "gid": dispatch["gid"], "switch_user": os.geteuid() == 0,
        "umask": dispatch["umask"], "work_dir": dispatch["work_dir"],
        "script": script,
        "args": args,
        "env": env,
        "stdin": part["stdin"], "stdout": part["stdout"], "stderr": part["stderr"],
        "wait_gate": gated and key.rank > 0,
        "spool": [f"{kept}.out", f"{kept}.err"] if dispatch["spool"] or dispatch["pty"] else None,
        "spool_bytes": rules.output_mib * _MIB // max(1, len(dispatch["members"])),
        "terminal": f"{run_dir}/terminals/{key}" if terminal else None,
        "cgroup": member.cgroup, "limits": rules.limits,
        "hooks": None if part.get("hold") else task_hooks(rules),
    }  # fmt: skip
