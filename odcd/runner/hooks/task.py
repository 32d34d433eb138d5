"""The prolog and the epilog of a task: the batch script, or a task of a step. They run as the job's
user, in the task's cgroup and with its limits."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, NoReturn

from odcd.runner import processes
from odcd.runner.begin import CannotBegin
from odcd.runner.hooks import program
from odcd.runner.hooks.environment import CONTEXTS, owners
from odcd.runner.rules import Rules
from odcd.runner.uids import groups_of

WHY_BYTES = 1000
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def task_hooks(rules: Rules) -> dict[str, Any] | None:
    """The hooks of tasks, as part of an order; None: there are none."""
    if not (rules.task_prolog or rules.task_epilog):
        return None
    return {
        "task_prolog": rules.task_prolog, "task_prolog_s": rules.task_prolog_timeout_s,
        "task_epilog": rules.task_epilog, "task_epilog_s": rules.task_epilog_timeout_s,
        "owners": owners(),
    }  # fmt: skip


def run_task_prolog(hooks: dict[str, Any] | None, env: dict[str, str]) -> dict[str, str]:
    """In the task's process, before its program: returns the environment as the prolog changed it.

    Text that it prints goes to standard output. Raises CannotBegin when it fails.
    """
    if not hooks or not hooks["task_prolog"]:
        return env
    outcome = _run(hooks, "task_prolog", env)
    if outcome.why is not None:
        raise CannotBegin(f"the task prolog failed: {outcome.why}", passing=False)
    if outcome.size > len(outcome.head):
        limit = f"{program.HEAD_BYTES // 1024} KiB"
        raise CannotBegin(f"the task prolog printed more than {limit}", passing=False)
    text, changed = changes(outcome.head.decode(errors="surrogateescape"), env)
    _print(text.encode(errors="surrogateescape"))
    return changed


def changes(output: str, env: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The text to print, and the changed environment. Other lines have no effect, as in Slurm."""
    env, texts = dict(env), list[str]()
    for line in output.split("\n"):
        verb, _, rest = line.partition(" ")
        name, equals, value = rest.partition("=")
        name = name.strip()
        if verb == "print":
            texts.append(f"{rest}\n")
        # The runner finds the task's processes by its mark.
        elif not _NAME.match(name) or name == processes.MARK or "\0" in value:
            continue
        elif verb == "export" and equals:
            env[name] = value
        elif verb == "unset":
            env.pop(name, None)
    return "".join(texts), env


def _print(data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def _run(hooks: dict[str, Any], kind: str, env: dict[str, str]) -> program.Outcome:
    path = hooks[kind]
    why = program.refusal(path, hooks["owners"])
    if why is not None:
        return program.Outcome(why)
    try:
        env = {**env, "SLURM_SCRIPT_CONTEXT": CONTEXTS[kind]}
        return program.run(path, env, hooks[f"{kind}_s"], in_place=True)
    except OSError as error:
        return program.Outcome(f"cannot start: {error.strerror}")


def become_task_epilog(
    order: dict[str, Any], env: dict[str, str], group_fd: int | None, why_fd: int
) -> NoReturn:
    """In a fork of the task's parent: run the epilog as the user. why_fd: receives the reason if it
    fails, and nothing otherwise."""
    try:
        # Not the parent's record, whose lock shows that the parent lives.
        program.close_all_but({why_fd} if group_fd is None else {why_fd, group_fd})
        if group_fd is not None:
            os.write(group_fd, b"0")
        if order["switch_user"]:
            os.setgroups(groups_of(order["uid"], order["gid"]))
            os.setresgid(order["gid"], order["gid"], order["gid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
        os.umask(order["umask"])
        try:
            os.chdir(order["work_dir"])
        except (OSError, ValueError):
            os.chdir("/")
        why = _run(order["hooks"], "task_epilog", env).why
    except (OSError, ValueError) as error:
        why = f"cannot start: {error}"
    if why is not None:
        with contextlib.suppress(OSError):
            line = f"the task epilog failed: {why}"
            os.write(why_fd, line.encode(errors="replace")[:WHY_BYTES])
    os._exit(0)
