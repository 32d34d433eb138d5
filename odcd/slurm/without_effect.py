"""Options that sbatch accepts although they have no effect here: batch scripts of other clusters
have them, and a job does the same without them."""

from __future__ import annotations

from collections.abc import Iterable

from odcd.slurm.mail import MAIL, NO_MAIL
from odcd.slurm.option import Given

WARNED = ("mail-type", "mail-user", "wckey", "hint", "get-user-env", "mem-bind", "gpu-bind")
"""odcctl submit and run accept these, too, with a warning; of gpu-bind only none."""
WITHOUT_EFFECT = {
    "wckey": "odc has no workload keys",
    "get-user-env": "the job gets the variables that --export selects",
    "propagate": "a job gets its node's resource limits",
    "hint": "odc does not place tasks on cores",
    "mem-bind": "odc does not place tasks on cores",
    "distribution": "odc does not place tasks on cores",
    "ntasks-per-core": "odc does not place tasks on cores",
    "threads-per-core": "odc does not place tasks on cores",
    "gres-flags": "odc does not place tasks on cores",
    "gpu-bind": "odc does not place tasks on cores",
    "cpu-freq": "odc does not set how the machine runs",
    "profile": "odc does not profile jobs",
    "acctg-freq": "odc does not sample accounting data",
    "oversubscribe": "GPUs and CPUs are never shared",
    "overcommit": "GPUs and CPUs are never shared",
    "priority": "odc computes a job's priority",
    "contiguous": "odc places nodes by topology itself",
    "spread-job": "odc places nodes by topology itself",
    "use-min-nodes": "a job gets the nodes that it requests",
    "no-kill": "a job ends when one of its nodes fails",
    "wait-all-nodes": "odc starts all nodes of a job together",
    "batch": "the script runs on the first node",
}


def has_effect(given: Given) -> bool:
    return given.option.long not in WITHOUT_EFFECT


def without_effect(options: Iterable[Given], *, mail: bool = False) -> list[str]:
    """The options among WARNED, each once with the reason. --mail-type=NONE asks for nothing. mail:
    whether this daemon sends mail."""
    names = dict.fromkeys(
        one.option.long
        for one in options
        if one.option.long in WARNED
        and (one.text or "").upper() != "NONE"
        and not (mail and one.option.long in MAIL)
    )
    return [f"--{name} ({WITHOUT_EFFECT.get(name, NO_MAIL)})" for name in names]
