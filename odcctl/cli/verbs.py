"""The verbs of odcctl, each a module of odcctl.commands, and other names that lead to them."""

from __future__ import annotations

GROUPS = {
    "Jobs": (
        "submit", "run", "sync", "queue", "show", "why", "wait", "logs", "attach", "cancel",
        "history",
    ),
    "Dev servers": ("reserve", "list", "connect", "extend", "edit", "disk", "avail", "status"),
    "Changing jobs": ("hold", "release", "requeue", "update", "checkpoint", "cron"),
    "The cluster": (
        "nodes", "node", "partition", "policy", "booking", "licence", "plan", "replay", "events",
        "diag", "page",
    ),
    "Accounts and limits": (
        "account", "user", "qos", "shares", "priority", "usage", "idle",
    ),
    "This program": ("login", "logout", "config", "notify", "slurm", "ssh-proxy", "completion"),
}  # fmt: skip
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)

ALIASES = {"license": "licence"}
"""Other spellings, which help does not list."""
ELSEWHERE = {
    "sbatch": "submit", "srun": "run", "salloc": "reserve", "squeue": "queue", "sinfo": "nodes",
    "scancel": "cancel", "sacct": "history", "scontrol": "show", "sattach": "attach",
    "sprio": "priority", "sshare": "shares", "sreport": "usage", "sacctmgr": "account",
    "sdiag": "diag", "scrontab": "cron", "crontab": "cron",
    "drain": "node drain", "cordon": "node drain", "resume": "node resume",
    "uncordon": "node resume",
}  # fmt: skip
"""Commands of Slurm and Kubernetes, and the command of odcctl to suggest instead."""
