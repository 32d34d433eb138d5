"""The commands of Slurm that odc has."""

from __future__ import annotations

from dataclasses import dataclass

from odcd.api.slurm.accounting import sacctmgr, sdiag, seff, sprio, sshare
from odcd.api.slurm.remote import Run
from odcd.api.slurm.sacct import sacct
from odcd.api.slurm.salloc import salloc, sattach
from odcd.api.slurm.sbatch import sbatch
from odcd.api.slurm.sbcast import sbcast
from odcd.api.slurm.scancel import scancel
from odcd.api.slurm.scontrol import scontrol
from odcd.api.slurm.sinfo import sinfo
from odcd.api.slurm.squeue import squeue
from odcd.api.slurm.srun import srun


@dataclass(frozen=True, slots=True)
class Command:
    """reads_only: it changes nothing, so the audit log leaves it out. submits: a job or a step,
    with the words of a program."""

    run: Run
    reads_only: bool = False
    submits: bool = False


COMMANDS: dict[str, Command] = {
    "srun": Command(srun, submits=True),
    "salloc": Command(salloc, submits=True),
    "sattach": Command(sattach, reads_only=True),
    "sbcast": Command(sbcast, reads_only=True),
    "sbatch": Command(sbatch, submits=True),
    "squeue": Command(squeue, reads_only=True),
    "scancel": Command(scancel),
    "scontrol": Command(scontrol),
    "sacct": Command(sacct, reads_only=True),
    "sinfo": Command(sinfo, reads_only=True),
    "sacctmgr": Command(sacctmgr, reads_only=True),
    "sshare": Command(sshare, reads_only=True),
    "sprio": Command(sprio, reads_only=True),
    "sdiag": Command(sdiag, reads_only=True),
    "seff": Command(seff, reads_only=True),
}
