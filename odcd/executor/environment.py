"""A job's environment variables: Slurm's, odc's own, and the defaults of a login."""

from __future__ import annotations

import pwd
import socket
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from odcd.records.dispatch import Dispatch, Member
from odcd.slurm.hostlists import list_hosts

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OF_GROUPS = (
    "SLURM_JOB_", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_GPUS", "SLURM_MEM_PER", "SLURM_NNODES", "SLURM_NODELIST",
)  # fmt: skip
"""Variables that the script of a heterogeneous job has for each component."""
MASTER_PORTS = range(20_000, 30_000)


def job_environment(
    dispatch: Dispatch,
    member: Member,
    base: Mapping[str, str],
    *,
    cluster: str,
    master_addr: str,
    gpu_ids: Sequence[int] | None = None,
) -> dict[str, str]:
    """The complete environment of a member's process.

    base: the submitted environment, with --export applied. gpu_ids: the member's GPUs as CUDA
    numbers them, if that differs from its gpu_indexes.
    """
    return {
        **base,
        **job_variables(dispatch, base, cluster=cluster, master_addr=master_addr),
        **member_variables(dispatch, member, gpu_ids),
    }


def job_variables(
    dispatch: Dispatch, base: Mapping[str, str], *, cluster: str, master_addr: str
) -> dict[str, str]:
    """Variables that are the same for all members, in addition to the submitted environment.

    Of a heterogeneous job, SLURM_* describe its first component, and SLURM_*_HET_GROUP_N each of
    them; ODC_* describe all its nodes.
    """
    whole = _variables(dispatch, base, cluster=cluster, master_addr=master_addr)
    if dispatch.component_nodes is None:
        return whole
    variables = {name: value for name, value in whole.items() if not name.startswith("SLURM_")}
    count = len(dispatch.component_nodes)
    for number in range(count):
        component = dispatch.component(number)
        found = _variables(component, base, cluster=cluster, master_addr=master_addr)
        found["SLURM_JOB_ID"] = str(dispatch.job_id + number)
        if number == 0:
            variables |= {name: one for name, one in found.items() if name.startswith("SLURM_")}
        variables |= {
            f"{name}_HET_GROUP_{number}": value
            for name, value in found.items()
            if name.startswith(OF_GROUPS)
        }
    return variables | {"SLURM_HET_SIZE": str(count)}


def component_variables(
    dispatch: Dispatch, number: int, base: Mapping[str, str], *, cluster: str, master_addr: str
) -> dict[str, str]:
    """SLURM_JOB_* as tasks in this component of a heterogeneous job see them, beside the job's own
    variables."""
    found = _variables(
        dispatch.component(number), base, cluster=cluster, master_addr=master_addr
    )  # fmt: skip
    return {name: value for name, value in found.items() if name.startswith("SLURM_JOB_")}


def _variables(
    dispatch: Dispatch, base: Mapping[str, str], *, cluster: str, master_addr: str
) -> dict[str, str]:
    d = dispatch
    nodes = list_hosts(m.node for m in d.members)
    count = str(len(d.members))
    variables = {
        "SLURM_JOB_ID": str(d.job_id), "SLURM_JOBID": str(d.job_id), "SLURM_JOB_NAME": d.name,
        "SLURM_JOB_NODELIST": nodes, "SLURM_NODELIST": nodes,
        "SLURM_JOB_NUM_NODES": count, "SLURM_NNODES": count,
        "SLURM_JOB_CPUS_PER_NODE": _counted(m.cpus for m in d.members),
        "SLURM_JOB_PARTITION": d.partition, "SLURM_JOB_ACCOUNT": d.account,
        "SLURM_JOB_QOS": d.qos, "SLURM_JOB_USER": d.user, "SLURM_JOB_UID": str(d.uid),
        "SLURM_JOB_GID": str(d.gid), "SLURM_CLUSTER_NAME": cluster,
        "SLURM_SUBMIT_DIR": _submit_dir(d, base),
        "SLURM_SUBMIT_HOST": d.submit_host or socket.gethostname(),
        "SLURM_JOB_START_TIME": str(int(d.started_at.timestamp())),
        "SLURM_LAUNCH_NODE_IPADDR": master_addr,
        "ODC_JOB_ID": str(d.job_id), "ODC_ATTEMPT": str(d.attempt), "ODC_NODE_COUNT": count,
        "ODC_NODELIST": nodes, "ODC_PEERS": ",".join(m.node for m in d.members),
        "ODC_PARTITION": d.partition,
        "MASTER_ADDR": master_addr,
        "MASTER_PORT": str(MASTER_PORTS[d.job_id % len(MASTER_PORTS)]),
        "PWD": d.work_dir,
    }  # fmt: skip
    if d.ends_at is not None:
        variables["SLURM_JOB_END_TIME"] = str(int(d.ends_at.timestamp()))
    if d.booking is not None:
        variables["SLURM_JOB_RESERVATION"] = d.booking
    if d.licences:
        variables["SLURM_JOB_LICENSES"] = ",".join(
            f"{name}:{count}" for name, count in sorted(d.licences.items())
        )
    if d.restarts:
        variables["SLURM_RESTART_COUNT"] = str(d.restarts)
    return variables | _tasks(d) | _array(d) | _requested(d) | _login(d, base)


def member_variables(
    dispatch: Dispatch, member: Member, gpu_ids: Sequence[int] | None = None
) -> dict[str, str]:
    """Variables of a single rank."""
    rank = str(member.rank)
    variables = {
        "SLURM_PROCID": rank, "SLURM_NODEID": rank, "SLURM_LOCALID": "0", "SLURM_GTIDS": rank,
        "SLURM_CPUS_ON_NODE": str(member.cpus), "SLURMD_NODENAME": member.node,
        "ODC_RANK": rank, "ODC_NODE": member.node, "ODC_GPU_TYPE": member.gpu_type,
        "ODC_GPUS": str(len(member.gpu_indexes)),
        # An empty value hides the machine's GPUs from a job that has none.
        "CUDA_VISIBLE_DEVICES": "",
    }  # fmt: skip
    if not {"mem_per_cpu_mib", "mem_per_gpu_mib"} & dispatch.options.keys():
        variables["SLURM_MEM_PER_NODE"] = str(member.mem_mib)
    if member.gpu_indexes:
        indexes = ",".join(map(str, member.gpu_indexes))
        ids = indexes if gpu_ids is None else ",".join(map(str, gpu_ids))
        variables |= {
            # Always a plain number: launchers calculate with it, and GPUS_PER_NODE may be h100:8.
            "SLURM_GPUS_ON_NODE": str(len(member.gpu_indexes)),
            "SLURM_JOB_GPUS": indexes, "SLURM_STEP_GPUS": indexes,
            "CUDA_VISIBLE_DEVICES": ids, "GPU_DEVICE_ORDINAL": ids,
            # odc uses NVML's indexes; by default CUDA orders GPUs by speed.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }  # fmt: skip
    return variables


def path_with(commands: str | None, base: Mapping[str, str]) -> dict[str, str]:
    """PATH with the folder of Slurm's commands in front; {} if there is none."""
    if commands is None:
        return {}
    others = [folder for folder in base.get("PATH", PATH).split(":") if folder != commands]
    return {"PATH": ":".join([commands, *others])}


def _tasks(d: Dispatch) -> dict[str, str]:
    """Task counts. NTASKS is set only if the job requests tasks, because tools take it as the sign
    of an srun task.

    STEP_ID belongs to srun tasks, too: MPI libraries that see it look for srun's process manager.
    """
    nodes = len(d.members)
    per_node, total = _number(d, "ntasks_per_node"), _number(d, "ntasks")
    variables: dict[str, str] = {}
    if per_node is not None:
        variables["SLURM_NTASKS_PER_NODE"] = str(per_node)
    if total is None and per_node is not None:
        total = per_node * nodes
    if total is None:
        spread = [1] * nodes
    else:
        variables["SLURM_NTASKS"] = variables["SLURM_NPROCS"] = str(total)
        limit = per_node or -(-total // nodes)
        spread = [min(limit, total - limit * at) for at in range(nodes)] if per_node else [
            total // nodes + (at < total % nodes) for at in range(nodes)
        ]  # fmt: skip
    variables["SLURM_TASKS_PER_NODE"] = _counted(max(0, tasks) for tasks in spread)
    cpus = _number(d, "cpus_per_task")
    if cpus is not None:
        variables["SLURM_CPUS_PER_TASK"] = variables["SRUN_CPUS_PER_TASK"] = str(cpus)
    if nodes > 1 and not d.holds(1):
        # Members that all run the script correspond to what srun would start: one task per node.
        variables |= {
            "SLURM_STEP_NODELIST": list_hosts(m.node for m in d.members),
            "SLURM_STEP_NUM_NODES": str(nodes), "SLURM_STEP_NUM_TASKS": str(nodes),
            "SLURM_STEP_TASKS_PER_NODE": _counted([1] * nodes),
        }  # fmt: skip
    return variables


def _array(d: Dispatch) -> dict[str, str]:
    if d.array_job_id is None:
        return {}
    facts = {
        "JOB_ID": d.array_job_id, "TASK_ID": d.array_task_id, "TASK_COUNT": d.array_count,
        "TASK_MIN": d.array_min, "TASK_MAX": d.array_max, "TASK_STEP": d.array_step,
    }  # fmt: skip
    return {
        f"{prefix}_ARRAY_{name}": str(value)
        for prefix in ("SLURM", "ODC")
        for name, value in facts.items()
        if value is not None
    }


def _requested(d: Dispatch) -> dict[str, str]:
    """GPUs, memory and the mode of output files, as given in the options."""
    variables: dict[str, str] = {}
    spec = d.options.get("gpus_spec")
    if isinstance(spec, Mapping):
        for option, text in spec.items():
            variables[f"SLURM_{str(option).upper()}"] = str(text)
    for option in ("mem_per_cpu", "mem_per_gpu"):
        amount = _number(d, f"{option}_mib")
        if amount is not None:
            variables[f"SLURM_{option.upper()}"] = str(amount)
    if d.open_mode == "append":
        # srun reads it: a requeued job also appends to the files of its steps.
        variables["SLURM_OPEN_MODE"] = "a"
    return variables


def _login(d: Dispatch, base: Mapping[str, str]) -> dict[str, str]:
    """Defaults of a login, for variables that the submitted environment lacks."""
    home, shell = _account(d.uid)
    sane = {
        "HOME": home, "SHELL": shell, "USER": d.user, "LOGNAME": d.user, "PATH": PATH,
        "TMPDIR": "/tmp",
    }  # fmt: skip
    return {name: value for name, value in sane.items() if name not in base}


@lru_cache(maxsize=1000)
def _account(uid: int) -> tuple[str, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return "/", "/bin/sh"
    return entry.pw_dir, entry.pw_shell or "/bin/sh"


def _submit_dir(d: Dispatch, base: Mapping[str, str]) -> str:
    """The folder from which the job was submitted, which --chdir does not change."""
    submitted_in = base.get("PWD", "")
    return submitted_in if submitted_in.startswith("/") else d.work_dir


def _number(d: Dispatch, option: str) -> int | None:
    value = d.options.get(option)
    return value if isinstance(value, int) else None


def _counted(values: Iterable[int]) -> str:
    """Slurm's notation for per-node values: 96(x2),48."""
    parts: list[str] = []
    for value, group in groupby(values):
        count = sum(1 for _ in group)
        parts.append(str(value) if count == 1 else f"{value}(x{count})")
    return ",".join(parts)
