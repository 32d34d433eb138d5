"""Parse a command line, an environment and a script into a job."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from odcd.errors import BadRequest, NotImplementedYet, OdcError
from odcd.records.job import JobSpec
from odcd.slurm.argv import CommandLine
from odcd.slurm.complaints import Complaints
from odcd.slurm.components import Room, passed_on, split_line
from odcd.slurm.directives import header_end, late_directive, parse_directives
from odcd.slurm.environment import variable_options
from odcd.slurm.mail import MailTo, mail_of
from odcd.slurm.option import Given
from odcd.slurm.option_values import Settings
from odcd.slurm.request import SubmitArgv
from odcd.slurm.sbatch_options import OPTIONS
from odcd.slurm.script import COMMAND_SCRIPT, check_script, wrapped_script
from odcd.slurm.spec import Source, job_spec
from odcd.slurm.sync_script import check_sync, sync_script
from odcd.slurm.times import zone_of
from odcd.slurm.without_effect import has_effect, without_effect

STDIN = "-"


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
    mail_warning: str | None
    """Why mail that was asked for is not sent: Slurm's commands print no other warning."""


class ScriptNeeded(OdcError):
    """The command line is valid and names a script ("-": standard input) that was not sent."""

    status = 409

    def __init__(self, script_path: str) -> None:
        super().__init__(
            f'the command line names the script "{script_path}", whose text was not sent',
            "Send the request again with the text as script.",
        )
        self.script_path = script_path


def parse_submit(request: SubmitArgv, now: datetime, mail_to: MailTo | None = None) -> ParsedSubmit:
    """mail_to: None: this daemon sends no mail.

    Raises BadRequest, BadDependency, TooLarge or NotImplementedYet, naming the option. Raises
    ScriptNeeded only after the command line and the variables were checked.
    """
    for word in request.argv:
        if "\0" in word:
            raise BadRequest("the command line contains a NUL byte")
    now = now.astimezone(zone_of(request.environment.get("TZ")))
    complaints, late = Complaints(), None
    lines = split_line(request.argv, complaints)
    variables = variable_options(request.environment, OPTIONS)
    written: list[Sequence[Given]] = [line.options for line in lines]
    directives: list[Sequence[Given]] = [[]]
    if request.script is not None:
        check_script(request.script)
        end = header_end(request.script)
        directives = [*parse_directives(request.script, end, complaints)]
        late = late_directive(request.script, end)
    every = [Settings() for _ in range(max(len(directives), len(written)))]
    # Variables apply to each component. The errors of options that are passed on are reported once.
    sources = [
        (directives, passed_on(directives, len(every))), ([variables] * len(every), None),
        (written, passed_on(written, len(every))),
    ]  # fmt: skip
    room = Room()
    for number, one in enumerate(every):
        for own, passed in sources:
            before = passed[number] if passed is not None else ()
            given = own[number] if number < len(own) else ()
            if len(every) > 1:
                room.take_options((*before, *given))
            one.apply(_effective(before, request), now, Complaints())
            one.apply(_effective(given, request), now, complaints)
        if len(every) > 1:
            room.take_names(one.node_list, one.exclude_nodes)
    options = [*chain(*directives, variables, *written)]
    mail = mail_of(options, mail_to, complaints)
    complaints.check()
    settings = every[0]
    settings.wrap = next((one.wrap for one in every if one.wrap is not None), None)
    _check_command(request, settings, len(every))
    source = _source(request, lines[-1], settings)

    warnings: list[str] = []
    unused = without_effect(options, mail=mail_to is not None)
    unused += [] if mail.warning is None else [mail.warning]
    unsent = [one for one in unused if one.startswith("--mail-")]
    if request.command != "sbatch" and unused:
        warnings.append(f"options without effect: {', '.join(unused)}")
    if late is not None:
        warnings.append(
            f"line {late} of the script: options after the first command have no effect"
        )
    if settings.verbose:
        warnings.extend(_given(settings))
    is_run = request.command == "run"
    return ParsedSubmit(
        spec=job_spec(request, source, every, mail),
        wait=any(one.wait for one in every) or is_run,
        parsable=any(one.parsable for one in every),
        test_only=any(one.test_only or one.preview_preemption for one in every),
        preview_preemption=any(one.preview_preemption for one in every),
        quiet=any(one.quiet for one in every),
        json=any(one.json for one in every),
        warnings=tuple(warnings),
        mail_warning=f"options without effect: {', '.join(unsent)}" if unsent else None,
    )


def _effective(source: Iterable[Given], request: SubmitArgv) -> list[Given]:
    """Without the options that sbatch accepts and that change nothing here."""
    return [one for one in source if request.command != "sbatch" or has_effect(one)]


def _check_command(request: SubmitArgv, settings: Settings, components: int) -> None:
    if request.sync is not None:
        if request.command != "run":
            raise BadRequest(f"{request.command} does not accept --sync", "Use odcctl run --sync.")
        check_sync(request.sync, settings)
    if request.command == "run":
        if components > 1:
            raise NotImplementedYet(
                "odcctl run cannot run a heterogeneous job",
                "Use odcctl submit, then odcctl wait and odcctl logs.",
            )
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


def _source(request: SubmitArgv, line: CommandLine, settings: Settings) -> Source:
    operands = line.operands
    if request.command == "run" or (line.after_dashes and request.command != "sbatch"):
        if not operands:
            raise BadRequest(
                "no command was given", f"Write it last: {request.command} -- CMD ARGS…"
            )
        _no_script_sent(request)
        script = sync_script(request.sync) if request.sync else COMMAND_SCRIPT
        return Source(script=script, args=operands, name=_base_name(operands[0]))
    if settings.wrap is not None:
        if operands:
            raise BadRequest(
                f'--wrap and the script "{operands[0][:60]}" cannot be used together',
                "Quote the whole command after --wrap, or leave --wrap out.",
            )
        if not settings.wrap.strip():
            raise BadRequest("--wrap: the command is empty", "Write a shell command.")
        _no_script_sent(request)
        return Source(script=wrapped_script(settings.wrap), args=(), name="wrap")
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
    return Source(script=request.script, args=operands[1:], name=name, is_file=True)


def _no_script_sent(request: SubmitArgv) -> None:
    if request.script is not None:
        raise BadRequest(
            "the request contains a script, but the command line names none", "Leave script out."
        )


def _base_name(path: str) -> str:
    return (posixpath.basename(path.rstrip("/")) or "job")[:200]


def _given(settings: Settings) -> list[str]:
    """One line for each given setting, in sbatch's words: the option that took effect."""
    given = settings.given_as.items()
    return [written for name, written in given if name not in ("verbose", "accepted")]
