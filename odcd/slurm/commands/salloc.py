"""The options of salloc and sattach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odcd.slurm.commands.getopt import SEPARATOR, Arguments, Flag, parse, parse_components
from odcd.slurm.commands.srun_options import ALLOCATION
from odcd.slurm.lists import is_number
from odcd.slurm.usage import USAGE_CODE, Usage, fail

VERSION = "slurm 24.11.4\n"
_SIZES = (
    ("ntasks", "n"), ("nodes", "N"), ("cpus-per-task", "c"), ("nodelist", "w"), ("mem", ""),
    ("ntasks-per-node", ""), ("gpus-per-task", ""), ("gpus", "G"), ("mem-per-cpu", ""),
    ("time", "t"),
)  # fmt: skip

SALLOC: tuple[Flag, ...] = (
    *(Flag(f"alloc:{long}", long, short, "required") for long, short in (*_SIZES, *ALLOCATION)),
    Flag("exclusive", "exclusive", "", "optional"),
    Flag("name", "job-name", "J", "required"), Flag("no_shell", "no-shell", "", "none"),
    Flag("quiet", "quiet", "Q", "none"), Flag("chdir", "chdir", "D", "required"),
    Flag("immediate", "immediate", "I", "optional", ignored=True),
    Flag("verbose", "verbose", "v", "none", ignored=True),
    Flag("bell", "bell", "", "none", ignored=True),
    Flag("bell", "no-bell", "", "none", ignored=True),
    Flag("kill", "kill-command", "K", "optional", ignored=True),
    Flag("kill", "no-kill", "k", "optional", ignored=True),
    Flag("wait", "wait-all-nodes", "", "required", ignored=True),
    Flag("distribution", "distribution", "m", "required", ignored=True),
    Flag("hint", "hint", "", "required", ignored=True),
    Flag("x11", "x11", "", "optional", refused="odc does not forward X11"),
    Flag("user_env", "get-user-env", "", "optional", ignored=True),
    Flag("help", "help", "h", "none"), Flag("help", "usage", "", "none"),
    Flag("version", "version", "V", "none"),
)  # fmt: skip
SATTACH: tuple[Flag, ...] = (
    Flag("label", "label", "l", "none"), Flag("quiet", "quiet", "Q", "none"),
    Flag("verbose", "verbose", "v", "none", ignored=True),
    Flag("output", "output-filter", "", "required"), Flag("error", "error-filter", "", "required"),
    Flag("input", "input-filter", "", "required", ignored=True),
    Flag("layout", "layout", "", "none"),
    Flag("pty", "pty", "", "none", refused="attach to a terminal with odcctl attach"),
    Flag("help", "help", "h", "none"), Flag("help", "usage", "", "none"),
    Flag("version", "version", "V", "none"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCall:
    """command: what to run on the allocation; empty: the user's shell."""

    options: tuple[str, ...]
    name: str
    command: tuple[str, ...]
    no_shell: bool
    quiet: bool
    chdir: str | None


def parse_salloc(argv: Sequence[str], environment: Mapping[str, str]) -> AllocationCall:
    """Raises Usage."""
    parts = parse_components("salloc", SALLOC, argv, code=USAGE_CODE, commands=False)
    found = parts[0]
    if found.has("help"):
        raise Usage(out="Usage: salloc [OPTIONS(0)...] [command(0) [args(0)...]]\n", code=0)
    if found.has("version"):
        raise Usage(out=VERSION, code=0)
    words = _words(found)
    for part in parts[1:]:
        words += [SEPARATOR, *_words(part)]
    command = tuple(parts[-1].operands)
    name = found.last("name") or (command[0].rpartition("/")[2] if command else "interactive")
    return AllocationCall(
        options=tuple(words), name=name, command=command, no_shell=found.has("no_shell"),
        quiet=found.has("quiet"), chdir=found.last("chdir"),
    )  # fmt: skip


def _words(found: Arguments) -> list[str]:
    words = [
        f"--{flag.long}={text}"
        for flag, text in found.given
        if flag.key.startswith("alloc:") and text is not None
    ]
    for flag, text in found.given:
        if flag.key == "exclusive":
            words.append("--exclusive" if text is None else f"--exclusive={text}")
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachCall:
    job_id: int
    step: int
    label: bool
    layout: bool
    output: int | None
    """Only this task's output; None: all tasks'."""
    error: int | None


def parse_sattach(argv: Sequence[str]) -> AttachCall:
    """Raises Usage."""
    found = parse("sattach", SATTACH, argv)
    if found.has("help"):
        raise Usage(out="Usage: sattach [options] <jobid.stepid>\n", code=0)
    if found.has("version"):
        raise Usage(out=VERSION, code=0)
    if len(found.operands) != 1:
        raise fail("sattach", "no job step specified" if not found.operands else
                   "more than one job step specified")  # fmt: skip
    job, dot, step = found.operands[0].partition(".")
    if not (dot and is_number(job, 18) and is_number(step)):
        raise fail("sattach", f"Invalid job step id: {found.operands[0][:60]}")
    return AttachCall(
        job_id=int(job), step=int(step), label=found.has("label"), layout=found.has("layout"),
        output=_filter(found.last("output")), error=_filter(found.last("error")),
    )  # fmt: skip


def _filter(text: str | None) -> int | None:
    if text is None or text == "+":
        return None
    if not is_number(text):
        raise fail("sattach", f'"{text[:40]}" is not a task')
    return int(text)
