"""Parse a command line, an environment and a script into a job."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, cast

import msgspec

from odcd.errors import BadRequest, NotImplementedYet, OdcError
from odcd.records.job import JobSpec
from odcd.slurm.argv import CommandLine, parse_argv
from odcd.slurm.directives import header_end, late_directive, parse_directives
from odcd.slurm.environment import exported, variable_options
from odcd.slurm.gres import GpuRequest, agreed_type, check_counts
from odcd.slurm.script import COMMAND_SCRIPT, check_script, wrapped_script
from odcd.slurm.settings import Settings
from odcd.slurm.table import OPTIONS
from odcd.slurm.times import zone_of

STDIN = "-"
MAX_SUBMIT_LINE = 32_768


class SubmitArgv(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/submit-argv. argv: the words after the verb. script: the text of the
    file that argv names (script_path), sent when the answer was ScriptNeeded."""

    command: Literal["submit", "run"] = "submit"
    argv: list[str]
    work_dir: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    environment: dict[str, str] = {}
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    script: str | None = None
    script_path: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    submit_host: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    stdin_is_tty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSubmit:
    """The job, and the client's actions after the answer."""

    spec: JobSpec
    wait: bool
    parsable: bool
    test_only: bool
    preview_preemption: bool
    quiet: bool
    json: bool
    warnings: tuple[str, ...]


class ScriptNeeded(OdcError):
    """The command line is valid and names a script ("-": standard input) that was not sent."""

    status = 409

    def __init__(self, script_path: str) -> None:
        super().__init__(
            f'the command line names the script "{script_path}", whose text was not sent',
            "Send the request again with the text as script.",
        )
        self.script_path = script_path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The script or command to run. is_file: it may contain directives."""

    script: str
    args: tuple[str, ...]
    name: str
    is_file: bool = False


def parse_submit(request: SubmitArgv, now: datetime) -> ParsedSubmit:
    """Raises BadRequest, BadDependency, TooLarge or NotImplementedYet, naming the option. Raises
    ScriptNeeded only after the command line and the variables were checked."""
    for word in request.argv:
        if "\0" in word:
            raise BadRequest("the command line has a NUL byte")
    now = now.astimezone(zone_of(request.environment.get("TZ")))
    line = parse_argv(request.argv)
    variables = variable_options(request.environment, OPTIONS)
    settings = Settings()
    settings.apply(variables, now)
    settings.apply(line.options, now)
    _check_command(request, settings)

    source = _source(request, line, settings)
    late = None
    if source.is_file:
        check_script(source.script)
        settings = Settings()
        end = header_end(source.script)
        for level in (parse_directives(source.script, end), variables, line.options):
            settings.apply(level, now)
        _check_command(request, settings)
        late = late_directive(source.script, end)

    warnings: list[str] = []
    if late is not None:
        warnings.append(
            f"line {late} of the script: options after the first command have no effect"
        )
    if settings.verbose:
        warnings.extend(_said(settings))
    is_run = request.command == "run"
    return ParsedSubmit(
        spec=_spec(request, source, settings),
        wait=settings.wait or is_run,
        parsable=settings.parsable,
        test_only=settings.test_only or settings.preview_preemption,
        preview_preemption=settings.preview_preemption,
        quiet=settings.quiet,
        json=settings.json,
        warnings=tuple(warnings),
    )


def _check_command(request: SubmitArgv, settings: Settings) -> None:
    if request.command == "run":
        if settings.array is not None:
            raise NotImplementedYet(
                "run follows a single job, but --array makes many",
                "Use odcctl submit --array, then odcctl wait and odcctl logs.",
            )
        if settings.wrap is not None:
            raise BadRequest(
                "run does not accept --wrap", "Give the command itself: odcctl run CMD…"
            )
        if settings.stderr is not None and settings.stdout is None and not settings.pty:
            raise BadRequest(
                "run prints both output streams, so --error alone would have no effect",
                "Give --output too, or redirect odcctl's own standard error.",
            )
    elif settings.pty:
        raise BadRequest("submit does not accept --pty", "Use odcctl run --pty CMD…")
    if settings.stderr is not None and settings.pty:
        raise BadRequest(
            "--pty has one output stream, so --error cannot be used", "Leave --error out."
        )


def _source(request: SubmitArgv, line: CommandLine, settings: Settings) -> _Source:
    operands = line.operands
    if ":" in operands[:1]:
        raise NotImplementedYet(
            '":" joins the parts of a heterogeneous job, which odc does not support yet',
            "Submit the parts as separate jobs.",
        )
    if request.command == "run" or line.after_dashes:
        if not operands:
            raise BadRequest(
                "no command was given", f"Write it last: {request.command} -- CMD ARGS…"
            )
        _no_script_sent(request)
        return _Source(script=COMMAND_SCRIPT, args=operands, name=_base_name(operands[0]))
    if settings.wrap is not None:
        if operands:
            raise BadRequest(
                f'--wrap and the script "{operands[0][:60]}" cannot be used together',
                "Quote the whole command after --wrap, or leave --wrap out.",
            )
        if not settings.wrap.strip():
            raise BadRequest("--wrap: the command is empty", "Write a shell command.")
        _no_script_sent(request)
        return _Source(script=wrapped_script(settings.wrap), args=(), name="wrap")
    path = operands[0] if operands else STDIN
    if request.script is None:
        if path == STDIN and request.stdin_is_tty:
            raise BadRequest(
                "no script was given",
                "Name a script, or use --wrap CMD, -- CMD…, or standard input.",
            )
        if not path:
            raise BadRequest("the name of the script is empty", "Name a file.")
        raise ScriptNeeded(path)
    name = "sbatch" if path == STDIN else _base_name(path)
    return _Source(script=request.script, args=operands[1:], name=name, is_file=True)


def _no_script_sent(request: SubmitArgv) -> None:
    if request.script is not None:
        raise BadRequest(
            "the request contains a script, but the command line names none", "Leave script out."
        )


def _base_name(path: str) -> str:
    return (posixpath.basename(path.rstrip("/")) or "job")[:200]


def _spec(request: SubmitArgv, source: _Source, s: Settings) -> JobSpec:
    per_node = _per_node(s)
    gpu_type = agreed_type(
        {"gpus": s.gpus, "gpus-per-node": per_node, "gpus-per-task": s.gpus_per_task}
    )
    gpus, gpus_per_node, gpus_per_task = _count(s.gpus), _count(per_node), _count(s.gpus_per_task)
    nodes, switches = s.nodes, s.switches
    check_counts(
        total=gpus,
        per_node=gpus_per_node,
        per_task=gpus_per_task,
        nodes=nodes.least if nodes and nodes.most is None else None,
        tasks=s.ntasks,
        tasks_per_node=s.ntasks_per_node,
    )
    line = shlex.join(["odcctl", request.command, *request.argv])
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
        node_count=nodes.least if nodes else None,
        node_count_max=nodes.most if nodes else None,
        switches=switches.most if switches else None,
        switches_wait_s=switches.wait_s if switches else None,
        ntasks=s.ntasks,
        ntasks_per_node=s.ntasks_per_node,
        cpus_per_task=s.cpus_per_task,
        cpus_per_gpu=s.cpus_per_gpu,
        gpus=gpus,
        gpus_per_node=gpus_per_node,
        gpus_per_task=gpus_per_task,
        gpu_type=gpu_type,
        mem_per_node_mib=s.mem_per_node_mib,
        mem_per_cpu_mib=s.mem_per_cpu_mib,
        mem_per_gpu_mib=s.mem_per_gpu_mib,
        exclusive=s.exclusive,
        constraint=s.constraint,
        node_list=s.node_list,
        exclude_nodes=s.exclude_nodes,
        booking=s.booking,
        licences=s.licences,
        array=s.array,
        dependency=s.dependency,
        signal_number=s.signal.number if s.signal else None,
        signal_before_s=s.signal.before_s if s.signal else None,
        signal_batch=s.signal.batch if s.signal else False,
        requeue=s.requeue,
        submit_host=request.submit_host,
        submit_line=line if len(line) <= MAX_SUBMIT_LINE else line[: MAX_SUBMIT_LINE - 1] + "…",
        spool_output=request.command == "run" and s.stdout is None,
        pty=s.pty,
        image=s.image,
    )


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


def _said(settings: Settings) -> list[str]:
    """One line for each given setting, in sbatch's words: the option that took effect."""
    return [
        written for name, written in settings.said.items() if name not in ("verbose", "accepted")
    ]
