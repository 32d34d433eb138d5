"""A step's order as text for the shells of its pods: variables, files and programs of the tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from odcd.executor.kubernetes.environment import DEVICES, HERE, MASTER_PORT
from odcd.executor.kubernetes.launch import RUN
from odcd.executor.kubernetes.naming import host_domain, pod_name
from odcd.executor.step_tasks import StepOrder
from odcd.executor.steps import encode_step
from odcd.records.dispatch import Dispatch, Member
from odcd.records.step import StepKey

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BLOCK = 4096
OUTPUT_BYTES = 256 * 1024 * 1024
"""For the output of all tasks of a pod that odcd has not read, three times at most: the volume has
1 GiB."""
CHUNK_BYTES = (256 * 1024, 8 * 1024 * 1024)
"""The least and the most for one file."""
KEEP_BYTES = 4 * 1024 * 1024
"""How much of a stream is kept that was read already: the daemon may die before it has passed it
on."""
LOGIN = ("PATH", "TMPDIR", "SHELL", "HOME")


def folder_of(step: int) -> str:
    return f"{RUN}/step-{step}"


def mark_of(key: StepKey) -> str:
    return "-".join(map(str, key))


def quote(text: str) -> str:
    return "'" + text.replace("\0", "").replace("'", "'\\''") + "'"


def keep_bytes(tasks: int) -> int:
    """tasks: of one pod."""
    return min(KEEP_BYTES, chunk_bytes(tasks))


def chunk_bytes(tasks: int) -> int:
    return max(CHUNK_BYTES[0], min(CHUNK_BYTES[1], OUTPUT_BYTES // (2 * max(1, tasks))))


def encode(
    order: StepOrder, *, cluster: str, namespace: str, cluster_domain: str
) -> dict[str, Any]:
    """As for the local executor, but the hosts are the pods, and the variables are those that
    differ from the container's own. Raises BadRequest."""
    d = order.dispatch
    domain = host_domain(namespace, cluster_domain)
    hosts = {m.rank: pod_name(*d.key, m.rank) for m in d.members}
    seen = replace(
        order,
        dispatch=replace(d, members=tuple(replace(m, node=hosts[m.rank]) for m in d.members)),
        placement=replace(
            order.placement,
            nodes=tuple(replace(n, node=hosts[n.rank]) for n in order.placement.nodes),
        ),
        environment=_own(order.environment) if order.inside else _foreign(order.environment),
        work_dir=order.work_dir if order.inside else d.work_dir,
    )  # fmt: skip
    first = f"{hosts[0]}.{domain}"
    found = encode_step(
        seen, cluster=cluster, master_addr=first, gpu_ids_of=_numbers_of(d), cpus=()
    )
    found["env"] |= {
        "MASTER_ADDR": first, "MASTER_PORT": str(MASTER_PORT),
        "ODC_PEERS": ",".join(f"{hosts[m.rank]}.{domain}" for m in d.members),
    } if not order.inside else {}  # fmt: skip
    given = {*dict(order.call.export.values), *order.call.export.names}
    for name in LOGIN:
        if name not in given and not order.inside:
            # The container has its own.
            found["env"].pop(name, None)
    for rank, env in found["node_env"].items():
        _adapt(env, d.members[int(rank)])
    for task in found["tasks"]:
        _adapt(task["env"], d.members[task["rank"]])
    return found


def _adapt(env: dict[str, str], member: Member) -> None:
    """The name of the node; no numbers of GPUs if the container has exactly these."""
    if "ODC_NODE" in env:
        env["ODC_NODE"] = member.node
    ids = env.get("CUDA_VISIBLE_DEVICES", "")
    if len(ids.split(",")) == len(member.gpu_indexes) or not member.gpu_indexes:
        for name in DEVICES:
            env.pop(name, None)


def _own(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what describes the pod that srun was called in."""
    return {
        name: value
        for name, value in environment.items()
        if name not in ("NVIDIA_VISIBLE_DEVICES", "HOSTNAME", "_")
    }


def _foreign(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what describes the machine that srun was called on."""
    return {
        name: value
        for name, value in environment.items()
        if name not in HERE and name not in DEVICES and not name.startswith(("SLURM", "ODC_"))
    }


def _numbers_of(dispatch: Dispatch) -> Any:
    """The device plugin numbers a container's GPUs from 0."""
    whole = {member.rank: member.gpu_indexes for member in dispatch.members}

    def numbers(member: Member) -> list[int]:
        return [whole[member.rank].index(gpu) for gpu in member.gpu_indexes]

    return numbers


def text_of(
    encoded: Mapping[str, Any], key: StepKey, rank: int, *, other_dir: str, old: Sequence[int]
) -> str:
    """The assignments and functions that start.sh expects, for the pod of one rank."""
    tasks = {n: t for n, t in enumerate(encoded["tasks"]) if t["rank"] == rank}
    chunk = chunk_bytes(len(tasks))
    ends, ranks = encoded["ends_at"], sorted({t["rank"] for t in encoded["tasks"]})
    variables = {
        "step": folder_of(key[2]), "mark": mark_of(key), "tasks": " ".join(map(str, tasks)),
        "ends": "" if ends is None else str(int(ends)), "grace": str(int(encoded["grace_s"])),
        "dir": encoded["work_dir"], "other_dir": other_dir, "mask": f"{encoded['umask']:04o}",
        "chunk": str(chunk // BLOCK), "limit": str(2 * chunk),
        "ranks": " ".join(map(str, ranks)),
    }  # fmt: skip
    lines = [f"{name}={quote(value)}" for name, value in variables.items()]
    lines.append("old=" + quote(" ".join(folder_of(number) for number in old)))
    lines += _function("everything", _exports(encoded["env"] | encoded["node_env"][str(rank)]))
    lines += _cases("about", {n: _exports(t["env"]) for n, t in tasks.items()})
    lines += _cases("streams", {n: [_streams(encoded, n, t)] for n, t in tasks.items()})
    programs: dict[int, list[int]] = {}
    for number, task in tasks.items():
        programs.setdefault(task["program"], []).append(number)
    # Each program once: its words may have megabytes, and there may be thousands of tasks.
    lines += _cases("run", {
        "|".join(map(str, numbers)): ["run_words " + " ".join(map(quote, encoded["programs"][at]))]
        for at, numbers in programs.items()
    })  # fmt: skip
    lines += _function("empty_files", [f"true >{quote(path)}" for path in _emptied(encoded, rank)])
    return "\n".join(lines) + "\n"


def _function(name: str, body: Sequence[str]) -> list[str]:
    return [f"{name}() {{", *body, ":", "}"]


def _cases(name: str, bodies: Mapping[int | str, Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for pattern, body in bodies.items():
        lines += [f"{pattern})", *body, ";;"]
    return _function(name, ["case $1 in", *lines, "esac"])


def _exports(variables: Mapping[str, str]) -> list[str]:
    """A shell cannot set variables of other names."""
    return [
        f"export {name}={quote(value)}"
        for name, value in variables.items()
        if _NAME.fullmatch(name)
    ]  # fmt: skip


def _streams(encoded: Mapping[str, Any], number: int, task: Mapping[str, Any]) -> str:
    takes = task["in"] is None and encoded["stdin"] in ("all", number)
    paths = [
        "" if task[stream] is None else encoded["files"][task[stream]]["path"]
        for stream in ("out", "err")
    ]
    return (
        f"set_in={quote('-' if takes else task['in'] or '')} set_out={quote(paths[0])} "
        f"set_err={quote(paths[1])}"
    )


def _emptied(encoded: Mapping[str, Any], rank: int) -> list[str]:
    """The files that this pod empties. The pods may share them, so one of them does it, before
    others can have written much."""
    first: dict[int, int] = {}
    for task in encoded["tasks"]:
        for stream in ("out", "err"):
            if task[stream] is not None:
                at = first.setdefault(task[stream], task["rank"])
                first[task[stream]] = min(at, task["rank"])
    files = encoded["files"]
    return [files[at]["path"] for at, one in first.items() if one == rank and files[at]["truncate"]]
