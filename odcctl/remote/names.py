"""The names of the program; each is a command of Slurm."""

from __future__ import annotations

NAMES = (
    "sbatch", "squeue", "scancel", "scontrol", "sacct", "sinfo", "sacctmgr", "sshare", "sprio",
    "sdiag", "seff", "srun", "salloc", "sattach", "sbcast", "scrontab",
)  # fmt: skip
