"""The order to start a step: its tasks, their variables and their files.

odcd.runner.steps.supervisor describes the order.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from odcd.errors import BadRequest
from odcd.executor.cpu_bind import bound_cpus
from odcd.executor.environment import component_variables, job_variables, member_variables
from odcd.executor.output import MAX_PATH_BYTES, NO_TASK
from odcd.executor.step_tasks import StepOrder, StepTask, tasks_of
from odcd.slurm.commands.srun import KILL_WAIT_S, StepCall
from odcd.slurm.environment import exported_to_step
from odcd.slurm.hostlists import compress_hosts
from odcd.slurm.lists import is_number

_PATTERN = re.compile(r"%(?:%|([0-9]*)([A-Za-z]))")
MAX_PADDING = 10
MAX_CHARS = 16 * 1024 * 1024
"""Of the paths of a step's files, and of the variables in which its components differ, of all nodes
together."""
VARIABLE_CHARS = 100
"""Each such variable counts as so many, beside its name and its value: it takes memory in the
daemon, the runner and the step."""


def encode_step(
    order: StepOrder, *, cluster: str, master_addr: str, gpu_ids_of: Any, cpus: Sequence[int]
) -> dict[str, Any]:
    """gpu_ids_of: the GPUs of a member as CUDA numbers them. cpus: the CPUs of this machine. Raises
    BadRequest."""
    call, place, d = order.call, order.placement, order.dispatch
    base = exported_to_step(order.environment, call.export)
    work_dir = os.path.normpath(os.path.join(order.work_dir, call.chdir or "."))  # noqa: PTH118
    env = {
        **job_variables(d, base, cluster=cluster, master_addr=master_addr), **base,
        **_step_variables(order), "PWD": work_dir,
    }  # fmt: skip
    files = _Files(order, work_dir)
    programs = [program for part in order.parts.values() for program in part.programs]
    tasks = tasks_of(order)
    firsts: dict[int, StepTask] = {}
    for task in tasks:
        firsts.setdefault(task.node.rank, task)
    more = _of_components(
        order, base, Counter(task.group for task in firsts.values()), cluster=cluster,
        master_addr=master_addr,
    )  # fmt: skip
    node_env = _node_variables(order, firsts, gpu_ids_of, more)
    stdin = call.stdin
    return {
        "job": d.job_id, "attempt": d.attempt, "step": place.step,
        "name": f"{d.job_id}.{place.step}",
        "uid": d.uid, "gid": d.gid, "umask": order.umask, "work_dir": work_dir, "env": env,
        "node_env": node_env,
        "programs": [list(program) for program in programs],
        "tasks": [_encode_task(order, task, files, gpu_ids_of, cpus) for task in tasks],
        "files": files.all,
        "stdin": None if not order.has_input else int(stdin) if is_number(stdin)
        else "all" if stdin == "all" else None,
        "pty": call.pty, "rows": order.window[0] if order.window else None,
        "columns": order.window[1] if order.window else None, "ends_at": order.ends_at,
        "kill_on_bad_exit": call.kill_on_bad_exit, "wait_s": call.wait_s, "grace_s": KILL_WAIT_S,
    }  # fmt: skip


def _of_components(
    order: StepOrder, base: Mapping[str, str], nodes: Mapping[int, int], *, cluster: str,
    master_addr: str,
) -> dict[int, dict[str, str]]:  # fmt: skip
    """By component: the variables in which its tasks differ from those of the first part. nodes:
    how many each component has; each of them gets the variables. Raises BadRequest."""
    if order.dispatch.component_nodes is None:
        return {}
    found: dict[int, dict[str, str]] = {}
    chars = 0
    for group, call in order.parts.items():
        own = exported_to_step(order.environment, call.export)
        found[group] = (
            {name: value for name, value in own.items() if base.get(name) != value}
            | component_variables(order.dispatch, group, base, cluster=cluster,
                                  master_addr=master_addr)
            | _options_of(call)
        )  # fmt: skip
        # The step belongs to the whole job.
        found[group]["SLURM_JOB_ID"] = str(order.dispatch.job_id)
        chars += nodes.get(group, 0) * sum(
            len(name) + len(value) + VARIABLE_CHARS for name, value in found[group].items()
        )
        # Before the next one takes memory.
        if chars > MAX_CHARS:
            raise BadRequest(
                f"the variables in which the components differ have more than {MAX_CHARS} "
                f"characters on all nodes together (each counts as {VARIABLE_CHARS} more)",
                "Name fewer variables in --export.",
            )
    return found


def _node_variables(
    order: StepOrder, firsts: Mapping[int, StepTask], gpu_ids_of: Any,
    more: Mapping[int, Mapping[str, str]],
) -> dict[str, dict[str, str]]:  # fmt: skip
    """By rank: what is the same for all tasks of a node. There may be thousands of tasks, and each
    of their orders is read by the runner, which has one thread. firsts: the first task of each
    node. more: see _of_components."""
    found: dict[str, dict[str, str]] = {}
    for rank, task in firsts.items():
        numbers = ",".join(map(str, range(task.number, task.number + task.node.tasks)))
        own = {} if task.call.gpus_per_task else _member_variables(order, task, gpu_ids_of)
        found[str(rank)] = {**more.get(task.group, {}), **own, "SLURM_GTIDS": numbers}
    return found


def _encode_task(
    order: StepOrder, task: StepTask, files: _Files, gpu_ids_of: Any, cpus: Sequence[int]
) -> dict[str, Any]:
    call = task.call
    own = _member_variables(order, task, gpu_ids_of) if call.gpus_per_task else {}
    out, err = call.output, call.error or call.output
    if order.call.pty:
        # As in Slurm, only the first task has the terminal.
        out = err = None if task.number == 0 else "none"
    return {
        "host": task.node.node, "rank": task.node.rank,
        "env": {**own, "SLURM_PROCID": str(task.number), "SLURM_LOCALID": str(task.local)},
        "program": task.program,
        "in": files.input(task), "out": files.output(out, task), "err": files.output(err, task),
        "cpu_ids": bound_cpus(call, task.local, cpus),
    }  # fmt: skip


def _member_variables(order: StepOrder, task: StepTask, gpu_ids_of: Any) -> dict[str, str]:
    """Those of the task's node and GPUs, which are the same for all tasks of the node unless each
    task has GPUs of its own."""
    call = task.call
    gpus = task.node.gpu_indexes
    if call.gpus_per_task:
        first = task.local * call.gpus_per_task
        gpus = gpus[first : first + call.gpus_per_task]
    member = replace(task.member, gpu_indexes=gpus, cpus=task.node.cpus)
    variables = {
        **member_variables(order.dispatch, member, gpu_ids_of(member)),
        "SLURM_NODEID": str(task.at), "ODC_RANK": str(task.node.rank),
    }  # fmt: skip
    for name in ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS"):
        del variables[name]
    # Variables of the job that the user changed in the script stay as they are.
    variables = {
        name: value for name, value in variables.items()
        if name not in order.environment or name.startswith(("SLURM", "ODC_", "CUDA_", "GPU_"))
    }  # fmt: skip
    if not call.gpus_per_task and gpus == task.member.gpu_indexes:
        variables["CUDA_VISIBLE_DEVICES"] = _narrowed(
            order, variables["CUDA_VISIBLE_DEVICES"], gpu_ids_of
        )
    return variables


def _narrowed(order: StepOrder, ids: str, gpu_ids_of: Any) -> str:
    """The GPUs of a task: all of these, or fewer if the script made them fewer."""
    first = min(order.dispatch.members, key=lambda member: member.rank)
    given = member_variables(order.dispatch, first, gpu_ids_of(first))["CUDA_VISIBLE_DEVICES"]
    own = order.environment.get("CUDA_VISIBLE_DEVICES", given)
    return own if own != given and set(own.split(",")) <= {*ids.split(","), ""} else ids


def _step_variables(order: StepOrder) -> dict[str, str]:
    place, call = order.placement, order.call
    nodes = compress_hosts(node.node for node in place.nodes)
    counts = [node.tasks for node in place.nodes]
    per_node = ",".join(
        str(count) if (times := len(list(group))) == 1 else f"{count}(x{times})"
        for count, group in groupby(counts)
    )
    tasks, hosts = str(place.task_count), str(len(place.nodes))
    variables = {
        "SLURM_JOB_ID": str(place.job_id), "SLURM_JOBID": str(place.job_id),
        "SLURM_STEP_ID": str(place.step), "SLURM_STEPID": str(place.step),
        "SLURM_STEP_NODELIST": nodes, "SLURM_STEP_NUM_NODES": hosts,
        "SLURM_STEP_NUM_TASKS": tasks, "SLURM_STEP_TASKS_PER_NODE": per_node,
        "SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks, "SLURM_NNODES": hosts,
        "SLURM_NODELIST": nodes, "SLURM_TASKS_PER_NODE": per_node, "SLURM_MPI_TYPE": "none",
        "SLURM_UMASK": f"{order.umask:04o}",
    }  # fmt: skip
    return variables | _options_of(call)


def _options_of(call: StepCall) -> dict[str, str]:
    optional = {
        "SLURM_CPUS_PER_TASK": call.cpus_per_task, "SRUN_CPUS_PER_TASK": call.cpus_per_task,
        "SLURM_NTASKS_PER_NODE": call.tasks_per_node, "SLURM_GPUS_PER_TASK": call.gpus_per_task,
        "SLURM_CPU_BIND": call.cpu_bind,
    }  # fmt: skip
    return {name: str(value) for name, value in optional.items() if value is not None}


class _Files:
    """The files of a step's tasks, each once."""

    def __init__(self, order: StepOrder, work_dir: str) -> None:
        self._order = order
        self._dir = work_dir
        self._known: dict[str, int] = {}
        self._chars = 0
        self.all: list[dict[str, Any]] = []

    def input(self, task: StepTask) -> str | None:
        name = self._order.call.stdin
        if name in ("all", "none") or is_number(name):
            return None
        return self._expand(name, task)

    def output(self, pattern: str | None, task: StepTask) -> int | None:
        """The index of the file; None: srun's own output."""
        if pattern is None or pattern == "all":
            return None
        if is_number(pattern):
            if int(pattern) == task.number:
                return None
            pattern = os.devnull
        path = os.devnull if pattern == "none" else self._expand(pattern, task)
        if path not in self._known:
            self._known[path] = len(self.all)
            empties = not self._order.call.append and path != os.devnull
            self.all.append({"path": path, "truncate": empties})
        return self._known[path]

    def _expand(self, pattern: str, task: StepTask) -> str:
        text = pattern.replace("\\", "") if "\\" in pattern else self._replaced(pattern, task)
        path = os.path.normpath(os.path.join(self._dir, text))  # noqa: PTH118
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise _too_long(path)
        self._chars += len(path)
        if self._chars > MAX_CHARS:
            raise BadRequest(
                f"the paths of the tasks' files have more than {MAX_CHARS} characters together",
                "Use shorter paths or fewer tasks.",
            )
        return path

    def _replaced(self, pattern: str, task: StepTask) -> str:
        """Stop at the maximum length of a path: a pattern may name the step thousands of times, and
        its name may be long."""
        parts: list[str] = []
        at = size = 0
        for found in _PATTERN.finditer(pattern):
            parts += (pattern[at : found.start()], self._value(found, task))
            at = found.end()
            size += len(parts[-2]) + len(parts[-1])
            if size > MAX_PATH_BYTES:
                raise _too_long("".join(parts))
        return "".join([*parts, pattern[at:]])

    def _value(self, found: re.Match[str], task: StepTask) -> str:
        d, step = self._order.dispatch, self._order.placement.step
        width, letter = found[1], found[2]
        if letter is None:
            return "%"
        numbers = {
            "j": d.job_id, "s": step, "t": task.number, "n": task.at,
            "A": d.job_id if d.array_job_id is None else d.array_job_id,
            "a": NO_TASK if d.array_task_id is None else d.array_task_id,
        }  # fmt: skip
        names = {
            "J": f"{d.job_id}.{step}", "N": task.node.node.partition(".")[0], "u": d.user,
            "x": task.call.name,
        }  # fmt: skip
        if letter in numbers:
            return str(numbers[letter]).zfill(min(int(width[:9] or 0), MAX_PADDING))
        return names.get(letter, found[0])


def _too_long(path: str) -> BadRequest:
    return BadRequest(f"the path of an output file is too long: {path[:60]}…")
