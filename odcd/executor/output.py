"""The output files of a member: sbatch's file patterns, expanded for one rank."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from odcd.errors import BadRequest, WrongState
from odcd.records.dispatch import Dispatch, Member
from odcd.records.job import Identity, JobSpec

STDOUT = "slurm-%j.out"
STDOUT_OF_ARRAY = "slurm-%A_%a.out"
MAX_PADDING = 10
# sbatch replaces %a with this if the job is not an array: Slurm's "no value".
NO_TASK = 4_294_967_294

MAX_PATH_BYTES = 4095
"""Linux opens no longer path (PATH_MAX, without the terminating NUL)."""
MAX_NAME_BYTES = 255
"""Linux opens no file or folder with a longer name (NAME_MAX)."""
SHORTEN = "Use shorter patterns in --output, --error and --input, or a shorter job name."

_PATTERN = re.compile(r"%(?:%|([0-9]*)([A-Za-z]))")


class PathTooLong(WrongState):
    """A path is too long for Linux after its patterns are replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """truncate: empty the file when it is opened. append: every write goes to the end.

    shared: all ranks write to it, so rank 0 opens it first, and only rank 0 may empty it.
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


_NOTHING = Streams(
    stdin=None,
    stdout=OutputFile(path=os.devnull, truncate=False, append=False, shared=False),
    stderr=None,
)


class Named(Protocol):
    """The values of a job that patterns may refer to."""

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
    """The values of a member that patterns may refer to."""

    @property
    def rank(self) -> int: ...
    @property
    def node(self) -> str: ...


def default_stdout(job: Named) -> str:
    return STDOUT if job.array_job_id is None else STDOUT_OF_ARRAY


def check_patterns(who: Identity, spec: JobSpec) -> None:
    """Raises BadRequest if a path is too long even with the shortest job id and node name."""
    names = _Shortest(
        array_task_id=None if spec.array is None else 0,
        name=spec.name or "job",
        user=who.user,
        work_dir=spec.work_dir,
    )
    patterns = {"stdin": spec.stdin}
    if not (spec.spool_output or spec.pty):
        patterns |= {"stdout": spec.stdout, "stderr": spec.stderr}
    for field, pattern in patterns.items():
        if pattern is not None:
            try:
                expand(pattern, names, names)
            except PathTooLong as error:
                raise BadRequest(f"{field}: {error.message}", SHORTEN) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shortest:
    """A job and its member before they have an id and a node."""

    array_task_id: int | None
    name: str
    user: str
    work_dir: str
    job_id: int = 1
    array_job_id: int | None = None
    rank: int = 0
    node: str = ""


def streams(dispatch: Dispatch, member: Member) -> Streams:
    """Raises PathTooLong."""
    return streams_of_all(dispatch)[dispatch.members.index(member)]


def streams_of_all(dispatch: Dispatch) -> list[Streams]:
    """The streams of each member, in order. Raises PathTooLong."""
    if keeps_output(dispatch):
        # odc keeps the output, so the patterns are ignored.
        outs = _outputs(os.devnull, dispatch)
        errs = None
    else:
        outs = _outputs(dispatch.stdout or default_stdout(dispatch), dispatch)
        errs = _outputs(dispatch.stderr, dispatch) if dispatch.stderr else None
    found: list[Streams] = []
    for at, (member, out) in enumerate(zip(dispatch.members, outs, strict=True)):
        if dispatch.holds(member.rank):
            found.append(_NOTHING)
            continue
        err = errs[at] if errs and errs[at].path != out.path else None
        stdin = expand(dispatch.stdin, dispatch, member) if dispatch.stdin else None
        found.append(Streams(stdin=stdin, stdout=out, stderr=err))
    return found


def keeps_output(dispatch: Dispatch) -> bool:
    return bool(dispatch.options.get("spool_output") or dispatch.options.get("pty"))


def shares_file(dispatch: Dispatch, *, stderr: bool) -> bool:
    """Whether all members write to one file. Raises PathTooLong."""
    if keeps_output(dispatch):
        return False
    files = streams(dispatch, dispatch.members[0])
    return (files.stderr if stderr and files.stderr else files.stdout).shared


def _outputs(pattern: str, dispatch: Dispatch) -> list[OutputFile]:
    paths = [expand(pattern, dispatch, member) for member in dispatch.members]
    counts = Counter(paths)
    append = dispatch.open_mode == "append"
    found: list[OutputFile] = []
    for member, path in zip(dispatch.members, paths, strict=True):
        shared = counts[path] > 1
        found.append(OutputFile(
            path=path,
            truncate=not append and not (shared and member.rank > 0),
            append=append or shared,
            shared=shared,
        ))  # fmt: skip
    return found


def expand(pattern: str, dispatch: Named, member: Placed) -> str:
    """The absolute path. %5j pads a number with zeros; a backslash anywhere disables patterns.

    Raises PathTooLong.
    """
    plain = "\\" in pattern
    text = pattern.replace("\\", "") if plain else _replaced(pattern, dispatch, member)
    path = os.path.normpath(os.path.join(dispatch.work_dir, text))  # noqa: PTH118
    # A character has at most four bytes.
    if len(path) * 4 > MAX_NAME_BYTES:
        _check(path)
    return path


def _replaced(pattern: str, dispatch: Named, member: Placed) -> str:
    """Stop at the maximum length of a path: a pattern of 4 KiB could become 400 KiB."""
    parts: list[str] = []
    at = size = 0
    for found in _PATTERN.finditer(pattern):
        part = pattern[at : found.start()] + _value(found, dispatch, member)
        at = found.end()
        size += len(part)
        if size > MAX_PATH_BYTES:
            raise _too_long()
        parts.append(part)
    return "".join([*parts, pattern[at:]])


def _check(path: str) -> None:
    encoded = path.encode(errors="surrogatepass")
    if len(encoded) > MAX_PATH_BYTES:
        raise _too_long()
    longest = max(map(len, encoded.split(b"/")))
    if longest > MAX_NAME_BYTES:
        raise PathTooLong(
            f"the path of the job's input or output has a file name of {longest} bytes, more than "
            f"{MAX_NAME_BYTES}",
            SHORTEN,
        )


def _too_long() -> PathTooLong:
    return PathTooLong(
        f"the path of the job's input or output has more than {MAX_PATH_BYTES} bytes after its "
        "patterns are replaced",
        SHORTEN,
    )


_NUMBERS: dict[str, Callable[[Named, Placed], int]] = {
    "j": lambda d, m: d.job_id,
    "J": lambda d, m: d.job_id,
    "A": lambda d, m: d.job_id if d.array_job_id is None else d.array_job_id,
    "a": lambda d, m: NO_TASK if d.array_task_id is None else d.array_task_id,
    "b": lambda d, m: (NO_TASK if d.array_task_id is None else d.array_task_id) % 10,
    "n": lambda d, m: m.rank,
    "t": lambda d, m: m.rank,
}
_NAMES: dict[str, Callable[[Named, Placed], str]] = {
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
    if letter in _NAMES:
        return _NAMES[letter](dispatch, member)
    return found[0]
