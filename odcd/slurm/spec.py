"""Build the job from a request's settings."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from odcd.errors import BadRequest
from odcd.records.job import ComponentSpec, JobSpec
from odcd.slurm.environment import exported
from odcd.slurm.gres import GpuRequest, agreed_type, check_counts
from odcd.slurm.mail import NONE, Mail
from odcd.slurm.option_values import Settings
from odcd.slurm.request import SubmitArgv

MAX_SUBMIT_LINE = 32_768
ALIKE = {"account": "account", "qos": "qos", "booking": "reservation", "partitions": "partition"}
"""Settings that all components of a job have in common, and their options."""
OF_THE_JOB = {
    "nice": "nice", "comment": "comment", "hold": "hold", "begin_at": "begin",
    "deadline_at": "deadline", "dependency": "dependency", "signal": "signal",
    "requeue": "requeue", "chdir": "chdir", "stdin": "input", "stdout": "output",
    "stderr": "error", "open_mode": "open-mode", "export": "export", "image": "container-image",
    "launch": "launch", "pty": "pty",
}  # fmt: skip
"""The same for settings that a later component may leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The script or command to run. is_file: it may contain directives."""

    script: str
    args: tuple[str, ...]
    name: str
    is_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpus:
    """The GPU counts of all options, None where not given, and the type that they agree on."""

    total: int | None
    per_node: int | None
    per_task: int | None
    type: str | None


def job_spec(
    request: SubmitArgv, source: Source, every: Sequence[Settings], mail: Mail = NONE
) -> JobSpec:
    """every: the settings of each component; most jobs have one. Raises BadRequest if settings
    contradict each other."""
    s = every[0]
    spec = _job_spec(request, source, s, mail)
    if len(every) == 1:
        return msgspec.structs.replace(spec, **_amounts(s), **_switches(s))
    for one in every:
        for name, text in ALIKE.items():
            if getattr(one, name) != getattr(s, name):
                raise BadRequest(
                    f"--{text}: the components of a heterogeneous job have one {text}",
                    f"Give --{text} once, for the first component"
                    + (", or for each." if name == "partitions" else "."),
                )
    default = Settings()
    for one in every[1:]:
        for name, text in OF_THE_JOB.items():
            if getattr(one, name) not in (getattr(default, name), getattr(s, name)):
                raise BadRequest(
                    f"--{text}: it belongs to the whole job, and a later component has another one",
                    f"Give --{text} for the first component.",
                )
    return msgspec.structs.replace(
        spec, components=[_component(one) for one in every],
        time_limit_s=max((one.time_limit_s for one in every if one.time_limit_s is not None),
                         default=None),
    )  # fmt: skip


def _component(s: Settings) -> ComponentSpec:
    if s.array is not None:
        raise BadRequest("--array: an array cannot be heterogeneous", "Leave --array out.")
    if s.switches is not None:
        raise BadRequest(
            "--switches: a component of a heterogeneous job cannot use it",
            "Leave --switches out, or submit a job without components.",
        )
    if s.nodes is not None and s.nodes.maximum is not None:
        raise BadRequest(
            "--nodes: a component of a heterogeneous job has a fixed number of nodes",
            "Give a single number.",
        )
    amounts = {name: value for name, value in _amounts(s).items() if name != "node_count_max"}
    return ComponentSpec(name=s.job_name, **amounts)


def _switches(s: Settings) -> dict[str, Any]:
    return {
        "switches": s.switches.max_blocks if s.switches else None,
        "switches_wait_s": s.switches.wait_s if s.switches else None,
    }


def _amounts(s: Settings) -> dict[str, Any]:
    """The amounts that the job, or one of its components, asks for."""
    gpus, nodes = _gpus(s), s.nodes
    return {
        "node_count": nodes.minimum if nodes else None,
        "node_count_max": nodes.maximum if nodes else None,
        "ntasks": s.ntasks,
        "ntasks_per_node": s.ntasks_per_node,
        "cpus_per_task": s.cpus_per_task,
        "cpus_per_gpu": s.cpus_per_gpu,
        "gpus": gpus.total,
        "gpus_per_node": gpus.per_node,
        "gpus_per_task": gpus.per_task,
        "gpu_type": gpus.type,
        "mem_per_node_mib": s.mem_per_node_mib,
        "mem_per_cpu_mib": s.mem_per_cpu_mib,
        "mem_per_gpu_mib": s.mem_per_gpu_mib,
        "tmp_mib": s.tmp_mib,
        "exclusive": s.exclusive,
        "constraint": s.constraint,
        "node_list": s.node_list,
        "exclude_nodes": s.exclude_nodes,
        "licences": s.licences,
    }


def _job_spec(request: SubmitArgv, source: Source, s: Settings, mail: Mail) -> JobSpec:
    """The job, without the amounts that it asks for."""
    return JobSpec(
        script=source.script,
        args=list(source.args),
        work_dir=_work_dir(request, s),
        name=s.job_name or source.name,
        environment=exported(request.environment, s.export),
        umask=request.umask,
        stdin=s.stdin,
        stdout=s.stdout,
        stderr=s.stderr,
        open_mode=cast("Literal['append', 'truncate'] | None", s.open_mode),
        partitions=s.partitions,
        account=s.account,
        qos=s.qos,
        nice=s.nice or 0,
        comment=s.comment,
        hold=s.hold,
        begin_at=s.begin_at,
        deadline_at=s.deadline_at,
        time_limit_s=s.time_limit_s,
        booking=s.booking,
        array=s.array,
        dependency=s.dependency,
        signal_number=s.signal.number if s.signal else None,
        signal_before_s=s.signal.before_s if s.signal else None,
        signal_batch=s.signal.batch if s.signal else False,
        requeue=s.requeue,
        mail_types=mail.types,
        mail_user=mail.user,
        submit_host=request.submit_host,
        submit_line=_submit_line(request),
        spool_output=request.command == "run" and s.stdout is None,
        pty=s.pty,
        image=s.image,
        launch=_launch(request, s),
    )


def _launch(request: SubmitArgv, s: Settings) -> Literal["first", "all"]:
    """A command of run has no directives, and its tasks are its nodes, as in srun."""
    instead = "all" if request.command == "run" else "first"
    return cast("Literal['first', 'all']", s.launch or instead)


def _gpus(s: Settings) -> _Gpus:
    per_node = _per_node(s)
    gpus = _Gpus(
        total=_count(s.gpus),
        per_node=_count(per_node),
        per_task=_count(s.gpus_per_task),
        type=agreed_type(
            {"gpus": s.gpus, "gpus-per-node": per_node, "gpus-per-task": s.gpus_per_task}
        ),
    )
    check_counts(
        total=gpus.total,
        per_node=gpus.per_node,
        per_task=gpus.per_task,
        nodes=s.nodes.minimum if s.nodes and s.nodes.maximum is None else None,
        tasks=s.ntasks,
        tasks_per_node=s.ntasks_per_node,
    )
    return gpus


def _per_node(s: Settings) -> GpuRequest | None:
    """The GPUs per node from --gres and --gpus-per-node, which mean the same."""
    if s.gres is None or s.gpus_per_node is None:
        return s.gres or s.gpus_per_node
    agreed_type({"gres": s.gres, "gpus-per-node": s.gpus_per_node})
    if s.gres.count != s.gpus_per_node.count:
        raise BadRequest(
            f"--gres requests {s.gres.count} GPUs on each node, --gpus-per-node "
            f"{s.gpus_per_node.count}",
            "Use only one of the two.",
        )
    return s.gres if s.gres.type else s.gpus_per_node


def _count(request: GpuRequest | None) -> int | None:
    return None if request is None else request.count


def _work_dir(request: SubmitArgv, s: Settings) -> str:
    work_dir = posixpath.join(request.work_dir, s.chdir or "")
    return work_dir if work_dir == "/" else work_dir.rstrip("/") or "/"


def _submit_line(request: SubmitArgv) -> str:
    words = ["sbatch"] if request.command == "sbatch" else ["odcctl", request.command]
    line = shlex.join([*words, *request.argv])
    return line if len(line) <= MAX_SUBMIT_LINE else line[: MAX_SUBMIT_LINE - 1] + "…"
