"""Where a member's output goes: sbatch's file patterns, expanded for one rank."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from odcd.records.dispatch import Dispatch, Member

STDOUT = "slurm-%j.out"
STDOUT_OF_ARRAY = "slurm-%A_%a.out"
MAX_PADDING = 10
# What sbatch writes for %a of a job that is no array: Slurm's "no value".
NO_TASK = 4_294_967_294

_PATTERN = re.compile(r"%(?:%|([0-9]*)([A-Za-z]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """truncate: emptied when it is opened. append: every write goes to its end.

    shared: all ranks write it, so rank 0 opens it first and it alone may empty it.
    """

    path: str
    truncate: bool
    append: bool
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """stderr None: it goes where stdout goes, through the same descriptor."""

    stdin: str | None
    stdout: OutputFile
    stderr: OutputFile | None


class Named(Protocol):
    """What patterns tell of a job."""

    @property
    def job_id(self) -> int: ...
    @property
    def array_job_id(self) -> int | None: ...
    @property
    def array_task_id(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def work_dir(self) -> str: ...


class Placed(Protocol):
    """What they tell of one of its members."""

    @property
    def rank(self) -> int: ...
    @property
    def node(self) -> str: ...


def default_stdout(job: Named) -> str:
    return STDOUT if job.array_job_id is None else STDOUT_OF_ARRAY


def streams(dispatch: Dispatch, member: Member) -> Streams:
    out = _output(dispatch.stdout or default_stdout(dispatch), dispatch, member)
    err = _output(dispatch.stderr, dispatch, member) if dispatch.stderr else None
    if err is not None and err.path == out.path:
        err = None
    stdin = expand(dispatch.stdin, dispatch, member) if dispatch.stdin else None
    return Streams(stdin=stdin, stdout=out, stderr=err)


def shares_file(dispatch: Dispatch, *, stderr: bool) -> bool:
    """Do all members write to one file?"""
    if dispatch.options.get("spool_output") or dispatch.options.get("pty"):
        return False
    files = streams(dispatch, dispatch.members[0])
    return (files.stderr if stderr and files.stderr else files.stdout).shared


def _output(pattern: str, dispatch: Dispatch, member: Member) -> OutputFile:
    path = expand(pattern, dispatch, member)
    others = (m for m in dispatch.members if m.rank != member.rank)
    shared = any(expand(pattern, dispatch, other) == path for other in others)
    append = dispatch.open_mode == "append"
    return OutputFile(
        path=path,
        truncate=not append and not (shared and member.rank > 0),
        append=append or shared,
        shared=shared,
    )


def expand(pattern: str, dispatch: Named, member: Placed) -> str:
    """The absolute path. %5j pads a number with zeros; a backslash anywhere turns patterns off."""
    if "\\" in pattern:
        text = pattern.replace("\\", "")
    else:
        text = _PATTERN.sub(lambda found: _value(found, dispatch, member), pattern)
    return os.path.normpath(os.path.join(dispatch.work_dir, text))  # noqa: PTH118


_NUMBERS: dict[str, Callable[[Named, Placed], int]] = {
    "j": lambda d, m: d.job_id,
    "J": lambda d, m: d.job_id,
    "A": lambda d, m: d.job_id if d.array_job_id is None else d.array_job_id,
    "a": lambda d, m: NO_TASK if d.array_task_id is None else d.array_task_id,
    "b": lambda d, m: (NO_TASK if d.array_task_id is None else d.array_task_id) % 10,
    "n": lambda d, m: m.rank,
    "t": lambda d, m: m.rank,
}
_WORDS: dict[str, Callable[[Named, Placed], str]] = {
    "N": lambda d, m: m.node.partition(".")[0],
    "u": lambda d, m: d.user,
    "x": lambda d, m: d.name,
    "s": lambda d, m: "batch",
}


def _value(found: re.Match[str], dispatch: Named, member: Placed) -> str:
    width, letter = found[1], found[2]
    if letter is None:
        return "%"
    if letter in _NUMBERS:
        return str(_NUMBERS[letter](dispatch, member)).zfill(min(int(width or 0), MAX_PADDING))
    if letter in _WORDS:
        return _WORDS[letter](dispatch, member)
    return found[0]
