"""The verbs of odcctl, one module each, imported when they are called."""

from __future__ import annotations

import importlib

from odcctl.exits import WrongUsage
from odcctl.options import Command

GROUPS = {
    "Jobs": (
        "submit", "run", "queue", "show", "why", "wait", "logs", "attach", "cancel", "history",
    ),
    "Dev servers": ("reserve", "list", "connect", "extend", "edit", "disk", "avail", "status"),
    "Changing jobs": ("hold", "release", "requeue", "update", "checkpoint"),
    "The cluster": (
        "nodes", "node", "partition", "policy", "booking", "licence", "plan", "replay", "events",
        "diag", "page",
    ),
    "Accounts and limits": (
        "account", "user", "qos", "shares", "priority", "usage", "idle",
    ),
    "This program": ("login", "logout", "config", "ssh-proxy", "completion"),
}  # fmt: skip
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)

ELSEWHERE = {
    "sbatch": "submit", "srun": "run", "salloc": "reserve", "squeue": "queue", "sinfo": "nodes",
    "scancel": "cancel", "sacct": "history", "scontrol": "show", "sattach": "attach",
    "sprio": "priority", "sshare": "shares", "sreport": "usage", "sacctmgr": "account",
    "sdiag": "diag", "drain": "node drain", "cordon": "node drain", "resume": "node resume",
    "uncordon": "node resume",
}  # fmt: skip
"""Commands of Slurm and Kubernetes, and ours in their place."""


def load(verb: str) -> Command:
    if verb not in VERBS:
        import difflib  # only for those who mistyped

        near = [ELSEWHERE.get(verb), *difflib.get_close_matches(verb, VERBS, n=1)]
        meant = next(filter(None, near), None)
        hint = f"Did you mean: odcctl {meant}" if meant else "See: odcctl --help"
        raise WrongUsage(f'no command "{verb}"', hint)
    return importlib.import_module(f"odcctl.commands.{verb.replace('-', '_')}").COMMAND
