"""srun's options, and the step that they describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from odcd.errors import OdcError
from odcd.records.fields import shown
from odcd.slurm.commands import multi_prog
from odcd.slurm.commands.getopt import SEPARATOR, Arguments, parse_components
from odcd.slurm.commands.srun_groups import of_group, step_groups
from odcd.slurm.commands.srun_options import OPTIONS, check_terminal
from odcd.slurm.components import Room
from odcd.slurm.environment import EXPORT_ALL, Export, parse_export
from odcd.slurm.gangs import parse_nodes, too_many_nodes
from odcd.slurm.gres import parse_gpus, parse_gres
from odcd.slurm.hostlists import expand_hosts
from odcd.slurm.lists import is_number
from odcd.slurm.sizes import parse_mib
from odcd.slurm.times import parse_duration
from odcd.slurm.usage import USAGE_CODE, Usage, fail

MAX_TASKS = 10_000
MAX_COUNT = 1_000_000
MAX_MEM_MIB = 2**31 - 1
KILL_WAIT_S = 30.0
"""From TERM to KILL when a step is ended, as in Slurm's default."""
VARIABLES = {
    "tasks": "SLURM_NTASKS", "cpus": "SRUN_CPUS_PER_TASK",
    "per_node": "SLURM_NTASKS_PER_NODE", "export": "SRUN_EXPORT_ENV", "wait": "SLURM_WAIT",
    "kill": "SLURM_KILL_BAD_EXIT", "mpi": "SLURM_MPI_TYPE", "cpu_bind": "SLURM_CPU_BIND",
    "open_mode": "SLURM_OPEN_MODE", "output": "SLURM_STDOUTMODE", "error": "SLURM_STDERRMODE",
    "input": "SLURM_STDINMODE", "gpus_per_task": "SLURM_GPUS_PER_TASK", "chdir": "SLURM_REMOTE_CWD",
    "name": "SLURM_STEP_NAME",
}  # fmt: skip
"""Variables that srun reads where the option is not given."""
FLAG_VARIABLES = {
    "label": "SLURM_LABELIO", "exact": "SLURM_EXACT", "overlap": "SLURM_OVERLAP",
    "overcommit": "SLURM_OVERCOMMIT",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """A call of srun. wants: for odc.create_step; stdin: "all", a task, "none" or a file."""

    job: str | None
    name: str
    programs: tuple[tuple[str, ...], ...]
    assigned: tuple[int, ...] | None
    """For --multi-prog: the program of each task."""
    wants: Mapping[str, object]
    given_tasks: int | None
    cpus_per_task: int | None
    tasks_per_node: int | None
    gpus_per_task: int | None
    cpu_bind: str | None
    label: bool
    output: str | None
    error: str | None
    stdin: str
    append: bool
    export: Export
    chdir: str | None
    wait_s: int
    kill_on_bad_exit: bool
    pty: bool
    time_s: int | None
    quiet: bool
    warning: str
    """About a step that runs on fewer nodes than asked for."""
    immediate: bool
    allocation: tuple[str, ...]
    """The options for the allocation, if srun makes one, in sbatch's language."""
    parts: Mapping[int, StepCall] = field(default_factory=dict[int, "StepCall"])
    """The part of the step in each component of a heterogeneous job, which may be this one; a step
    of any other job has one, in component 0."""

    @property
    def command(self) -> tuple[str, ...]:
        return self.programs[0]


def parse_srun(
    argv: Sequence[str], environment: Mapping[str, str], read: multi_prog.Read
) -> StepCall:
    """read: the text of a file that argv names. Raises Usage, and what read raises."""
    parts = parse_components("srun", OPTIONS, argv, code=USAGE_CODE, commands=True)
    for found in parts:
        _early(found)
    calls: dict[int, StepCall] = {}
    tasks, room, budget = 0, Room(), multi_prog.Budget(read)
    try:
        for group, found in step_groups(parts):
            own = of_group(environment, group)
            call = calls[group] = _step(_Source(found, own), own, budget)
            wants = cast("dict[str, Any]", call.wants)
            room.take_names(wants["node_list"], wants["exclude"])
            tasks += wants["tasks"] or 1
            if tasks > MAX_TASKS:
                raise fail("srun", f"a step has at most {MAX_TASKS} tasks")
    except OdcError as error:
        raise Usage(f"srun: error: {error.message}\n") from None
    first = calls[min(calls)]
    if set(calls) == {0} or len(parts) == 1:
        return replace(first, parts=calls)
    allocation = [*first.allocation]
    for group in sorted(calls)[1:]:
        allocation += [SEPARATOR, *calls[group].allocation]
    return replace(first, parts=calls, allocation=tuple(allocation))


def _early(found: Arguments) -> None:
    if found.has("help"):
        lines = [
            f"  {f'-{flag.short}, ' if flag.short else '    '}--{flag.long:<20} {flag.help}"
            for flag in OPTIONS
            if flag.help
        ]
        text = "Usage: srun [OPTIONS] COMMAND [ARGS]\n\n" + "\n".join(lines) + "\n"
        raise Usage(out=text, code=0)
    if found.last("mpi") == "list":
        raise Usage(out="MPI plugin types are...\n\tnone\n", code=0)
    if found.has("version"):
        raise Usage(out="slurm 24.11.4\n", code=0)


class _Source:
    """Options of the command line, and variables where an option is not given."""

    def __init__(self, found: Arguments, environment: Mapping[str, str]) -> None:
        self.found = found
        self._environment = environment

    def text(self, key: str) -> str | None:
        text = self.found.last(key)
        if text is None and key in VARIABLES:
            text = self._environment.get(VARIABLES[key]) or None
        return text

    def on(self, key: str) -> bool:
        variable = self._environment.get(FLAG_VARIABLES.get(key, ""), "")
        return self.found.has(key) or variable.lower() not in ("", "0", "no", "false")

    def count(self, key: str, what: str) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        if not is_number(text.strip()) or not 0 < int(text) <= MAX_COUNT:
            raise Usage(f'srun: error: Invalid numeric value "{text[:60]}" for {what}.\n')
        return int(text)


def _step(source: _Source, environment: Mapping[str, str], budget: multi_prog.Budget) -> StepCall:
    found = source.found
    tasks = source.count("tasks", "--ntasks")
    if found.has("per_node") and not found.has("tasks"):
        # An option of this step goes before SLURM_NTASKS, which describes the job.
        tasks = None
    if tasks is not None and tasks > MAX_TASKS:
        raise fail("srun", f"{tasks} tasks are too many: a step has at most {MAX_TASKS}")
    cpus = source.count("cpus", "--cpus-per-task")
    per_node = source.count("per_node", "--ntasks-per-node")
    if per_node is not None and per_node > MAX_TASKS:
        raise fail("srun", f"{per_node} tasks are too many: a step has at most {MAX_TASKS}")
    nodes, warning = _nodes(source, tasks)
    gpus = {key: _gpus(source, key) for key in ("gpus", "gpus_per_node", "gpus_per_task", "gres")}
    programs, assigned = _programs(source, tasks, budget)
    node_list = source.text("node_list")
    exclude = source.text("exclude")
    overlap = source.on("overlap")
    wants = {
        "nodes": nodes, "tasks": len(assigned) if assigned is not None else tasks,
        "tasks_per_node": per_node, "cpus_per_task": cpus or 1,
        "gpus_per_task": gpus["gpus_per_task"] or 0, "gpus": gpus["gpus"],
        "gpus_per_node": gpus["gpus_per_node"] if gpus["gres"] is None else gpus["gres"],
        "mem_mib": _mib(source, cpus or 1),
        "node_list": expand_hosts(node_list) if node_list else None,
        "exclude": expand_hosts(exclude) if exclude else None,
        # -c also means --exact, as in Slurm.
        "exact": source.on("exact") or found.has("cpus"), "overlap": overlap,
        "overcommit": source.on("overcommit"),
    }  # fmt: skip
    mpi = source.text("mpi")
    if mpi not in (None, "none"):
        raise fail("srun", f"--mpi={mpi[:40]} is not supported: odc has no process manager for "
                   "MPI. Use --mpi=none, or start the program with mpirun")  # fmt: skip
    if found.has("pty"):
        check_terminal(found)
    export = source.text("export")
    time = source.text("time")
    wait = source.text("wait")
    return StepCall(
        job=source.text("job") or environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID"),
        name=_one_line(source.text("name") or programs[0][0].rpartition("/")[2]),
        programs=programs, assigned=assigned, wants=wants,
        given_tasks=tasks if found.has("tasks") else None,
        cpus_per_task=cpus, tasks_per_node=per_node, gpus_per_task=gpus["gpus_per_task"],
        cpu_bind=source.text("cpu_bind"), label=source.on("label"),
        output=None if found.has("pty") else source.text("output"),
        error=None if found.has("pty") else source.text("error"),
        stdin=_shortened((None if found.has("pty") else source.text("input")) or "all"),
        append=(source.text("open_mode") or "").startswith("a"),
        export=parse_export(export) if export else EXPORT_ALL,
        chdir=source.text("chdir"), wait_s=_seconds(wait, "--wait") if wait else 0,
        kill_on_bad_exit=_kills(source), pty=found.has("pty"),
        time_s=parse_duration(time) if time else None, quiet=found.has("quiet"), warning=warning,
        immediate=found.has("immediate"), allocation=_allocation(found),
    )  # fmt: skip


def _one_line(name: str) -> str:
    """Others see it in their terminals."""
    return shown(name).replace("\n", "?")


def _shortened(name: str) -> str:
    """A task's number without leading zeros; other names as they are."""
    return str(int(name)) if is_number(name) else name


def _nodes(source: _Source, tasks: int | None) -> tuple[int | None, str]:
    text = source.found.last("nodes")
    if text is None:
        return None, ""
    nodes = parse_nodes(text).minimum
    if tasks is None or tasks >= nodes:
        return nodes, ""
    return tasks, too_many_nodes("srun", tasks, nodes)


def _gpus(source: _Source, key: str) -> int | None:
    text = source.text(key)
    if text is None:
        return None
    return parse_gres(text).count if key == "gres" else parse_gpus(text).count


def _mib(source: _Source, cpus: int) -> int | None:
    whole, each = source.text("mem"), source.text("mem_per_cpu")
    if whole:
        return parse_mib(whole) or None
    return min(parse_mib(each) * cpus, MAX_MEM_MIB) if each else None


def _seconds(text: str, what: str) -> int:
    if not is_number(text.strip()):
        raise Usage(f'srun: error: Invalid numeric value "{text[:60]}" for {what}.\n')
    return min(int(text), 10**8)


def _kills(source: _Source) -> bool:
    text = source.text("kill")
    return text is not None and text != "0"


def _programs(
    source: _Source, tasks: int | None, budget: multi_prog.Budget
) -> tuple[tuple[tuple[str, ...], ...], tuple[int, ...] | None]:
    operands = source.found.operands
    if not source.found.has("multi_prog"):
        return (budget.take(operands),), None
    return multi_prog.parse_multi_prog(budget, operands[0], tasks, operands[1:])


def _allocation(found: Arguments) -> tuple[str, ...]:
    """The options for the job that srun makes outside of one."""
    names = {
        "tasks": "ntasks", "nodes": "nodes", "cpus": "cpus-per-task", "node_list": "nodelist",
        "exclude": "exclude", "per_node": "ntasks-per-node", "gpus_per_task": "gpus-per-task",
        "gpus": "gpus", "gpus_per_node": "gpus-per-node", "gres": "gres", "mem": "mem",
        "mem_per_cpu": "mem-per-cpu", "time": "time",
    }  # fmt: skip
    words: list[str] = []
    for flag, text in found.given:
        name = names.get(flag.key) or flag.key.removeprefix("alloc:")
        if (flag.key in names or flag.key.startswith("alloc:")) and text is not None:
            words.append(f"--{name}={text}")
    return tuple(words)
