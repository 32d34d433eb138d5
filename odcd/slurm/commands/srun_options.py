"""srun's options as data."""

from __future__ import annotations

from typing import Literal

from odcd.slurm.commands.getopt import Arguments, Flag
from odcd.slurm.usage import Usage

Argument = Literal["none", "optional", "required"]
ALLOCATION = (
    ("partition", "p"), ("account", "A"), ("qos", "q"), ("constraint", "C"), ("exclude", "x"),
    ("reservation", ""), ("dependency", "d"), ("begin", "b"), ("comment", ""), ("nice", ""),
    ("licenses", "L"), ("deadline", ""), ("gpus-per-node", ""), ("gres", ""), ("mem-per-gpu", ""),
    ("cpus-per-gpu", ""), ("switches", ""), ("container-image", ""), ("mail-type", ""),
    ("mail-user", ""),
)  # fmt: skip
"""Options that only describe an allocation. sbatch's parser checks their values."""


def unused(long: str, short: str, argument: str) -> Flag:
    """An option that is accepted and has no effect here."""
    takes: dict[str, Argument] = {"none": "none", "optional": "optional", "required": "required"}
    return Flag("ignored", long, short, takes[argument], ignored=True)


OPTIONS: tuple[Flag, ...] = (
    Flag("tasks", "ntasks", "n", "required", "number of tasks"),
    Flag("nodes", "nodes", "N", "required", "number of nodes"),
    Flag("cpus", "cpus-per-task", "c", "required", "CPUs for each task"),
    Flag("node_list", "nodelist", "w", "required", "nodes to use"),
    Flag("exclude", "exclude", "x", "required", "nodes to leave out"),
    Flag("per_node", "ntasks-per-node", "", "required", "the most tasks on one node"),
    Flag("gpus_per_task", "gpus-per-task", "", "required", "GPUs for each task"),
    Flag("gpus", "gpus", "G", "required", "GPUs of the step"),
    Flag("gpus_per_node", "gpus-per-node", "", "required", "GPUs on each node"),
    Flag("gres", "gres", "", "required", "GPUs on each node"),
    Flag("mem", "mem", "", "required", "memory on each node"),
    Flag("mem_per_cpu", "mem-per-cpu", "", "required", "memory for each CPU"),
    Flag("cpu_bind", "cpu-bind", "", "required", "bind tasks to CPUs"),
    Flag("exact", "exact", "", "none", "use only as many CPUs as the tasks need"),
    Flag("exact", "exclusive", "", "optional", "the same as --exact"),
    Flag("overlap", "overlap", "", "none", "share CPUs and GPUs with other steps"),
    Flag("overlap", "oversubscribe", "s", "optional", "the same as --overlap"),
    Flag("overcommit", "overcommit", "O", "none", "run more tasks than there are CPUs"),
    Flag("label", "label", "l", "none", "begin each line with the number of its task"),
    Flag("unbuffered", "unbuffered", "u", "none", "pass on output at once", ignored=True),
    Flag("output", "output", "o", "required", "file for the tasks' output"),
    Flag("error", "error", "e", "required", "file for the tasks' errors"),
    Flag("input", "input", "i", "required", "file or task for the input"),
    Flag("open_mode", "open-mode", "", "required", "append or truncate"),
    Flag("export", "export", "", "required", "variables the tasks see"),
    Flag("chdir", "chdir", "D", "required", "working directory"),
    Flag("wait", "wait", "W", "required", "end the step so many seconds after its first task"),
    Flag("kill", "kill-on-bad-exit", "K", "optional", "end the step when a task fails"),
    Flag("multi_prog", "multi-prog", "", "none", "the command is a file of programs"),
    Flag("pty", "pty", "", "optional", "give task 0 a terminal"),
    Flag("mpi", "mpi", "", "required", "only none"),
    Flag("time", "time", "t", "required", "time limit"),
    Flag("name", "job-name", "J", "required", "name of the step"),
    Flag("job", "jobid", "", "required", "the job to run in"),
    Flag("quiet", "quiet", "Q", "none", "print errors only"),
    Flag("immediate", "immediate", "I", "optional", "fail if the step cannot start at once"),
    *(Flag(f"alloc:{long}", long, short, "required") for long, short in ALLOCATION
      if long not in ("exclude", "gpus-per-node", "gres")),
    *(unused(long, short, argument) for long, short, argument in (
        ("verbose", "v", "none"), ("distribution", "m", "required"), ("hint", "", "required"),
        ("mem-bind", "", "required"), ("gpu-bind", "", "required"), ("disable-status", "X", "none"),
        ("no-kill", "k", "optional"), ("preserve-env", "E", "none"), ("propagate", "", "optional"),
        ("slurmd-debug", "", "required"), ("threads", "T", "required"), ("whole", "", "none"),
        ("wckey", "", "required"), ("profile", "", "required"), ("acctg-freq", "", "required"),
        ("threads-per-core", "", "required"), ("ntasks-per-core", "", "required"),
        ("interactive", "", "none"), ("network", "", "required"), ("resv-ports", "", "optional"),
        ("cpu-freq", "", "required"),
    )),
    Flag("help", "help", "h", "none"),
    Flag("help", "usage", "", "none"),
    Flag("version", "version", "V", "none"),
    Flag("groups", "het-group", "", "required", "components of a heterogeneous job"),
    Flag("groups", "pack-group", "", "required", "older name of --het-group"),
    Flag("relative", "relative", "r", "required", refused="use --nodelist"),
    Flag("bcast", "bcast", "", "optional", refused="copy the file with sbcast before"),
    Flag("prolog", "prolog", "", "required", refused="run it in the command"),
    Flag("epilog", "epilog", "", "required", refused="run it in the command"),
    Flag("task_prolog", "task-prolog", "", "required", refused="run it in the command"),
    Flag("task_epilog", "task-epilog", "", "required", refused="run it in the command"),
)  # fmt: skip


def check_terminal(found: Arguments) -> None:
    """The tasks of a step with --pty have no files. Raises Usage."""
    for key in ("input", "output", "error"):
        if found.has(key):
            raise Usage(f"srun: error: --{key} incompatible with --pty option\n")
