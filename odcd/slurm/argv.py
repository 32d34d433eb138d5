"""Split a command line into options and operands, by GNU getopt_long's rules as sbatch uses it.

A long option may be cut to a unique prefix. Its argument follows `=` or is the next word; an
optional argument can only follow `=`. Short options may be bundled: `-HW`, `-n4`, `-n 4`. The
options end at the first word that is not an option, and at `--`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from odcd.errors import BadRequest
from odcd.slurm.complaints import Complaints
from odcd.slurm.option import Given, Option
from odcd.slurm.sbatch_options import BY_LONG, BY_SHORT

MAX_WORDS = 100_000
MAX_COMPONENT_WORDS = 20_000
"""Of a command line with several components: each component is read with all words behind it."""
MAX_OPTIONS = 200
MAX_POSSIBILITIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """operands: the script and its arguments. after_dashes: they followed `--`, so they are a
    command."""

    options: tuple[Given, ...]
    operands: tuple[str, ...]
    after_dashes: bool


def parse_argv(
    argv: Sequence[str], where: str = "", complaints: Complaints | None = None
) -> CommandLine:
    """where: a prefix of every message, such as `line 3 of the script, `. complaints: collects the
    errors of single options, which are left out; None: the errors are raised, all at once."""
    every = complaints or Complaints()
    found = _parse(argv, where, every)
    if complaints is None:
        every.check()
    return found


def _parse(argv: Sequence[str], where: str, complaints: Complaints) -> CommandLine:
    if len(argv) > MAX_WORDS:
        raise BadRequest(
            f"{where}{len(argv)} words are too many", f"At most {MAX_WORDS} are accepted."
        )
    options: list[Given] = []
    at = 0
    while at < len(argv):
        if len(options) > MAX_OPTIONS:
            raise BadRequest(
                f"{where}there are more than {MAX_OPTIONS} options", "Give each option once."
            )
        word = argv[at]
        at += 1
        if word == "--":
            return _command_line(options, argv[at:], after_dashes=True)
        if word.startswith("-") and len(word) > 1:
            read = _long if word.startswith("--") else _shorts
            following = argv[at] if at < len(argv) else None
            at += complaints.catch(partial(read, word, following, options, where), 0)
        else:
            return _command_line(options, argv[at - 1 :], after_dashes=False)
    return _command_line(options, (), after_dashes=False)


def _command_line(
    options: list[Given], operands: Sequence[str], *, after_dashes: bool
) -> CommandLine:
    return CommandLine(options=tuple(options), operands=tuple(operands), after_dashes=after_dashes)


def _long(word: str, following: str | None, options: list[Given], where: str) -> int:
    """Append the option; return how many of the following words belong to it."""
    name, equals, text = word[2:].partition("=")
    option = find_long(name, where)
    if equals:
        if option.argument == "none":
            raise BadRequest(f"{where}option {option.flag} does not accept a value")
        options.append(Given(option=option, text=text, where=where))
        return 0
    if option.argument == "required":
        options.append(Given(option=option, text=_required(option, following, where), where=where))
        return 1
    options.append(Given(option=option, text=None, where=where))
    return 0


def _shorts(word: str, following: str | None, options: list[Given], where: str) -> int:
    for at, letter in enumerate(word[1:], start=1):
        option = BY_SHORT.get(letter)
        if option is None:
            raise BadRequest(
                f'{where}unrecognized option "-{letter}"'
                + (f' in "{_cut(word)}"' if at > 1 else ""),
                "odcctl submit --help lists the options.",
            )
        rest = word[at + 1 :]
        if option.argument == "none" or (option.argument == "optional" and not rest):
            options.append(Given(option=option, text=None, where=where))
            if option.argument == "none":
                continue
            return 0
        text = rest or _required(option, following, where)
        options.append(Given(option=option, text=text, where=where))
        return 0 if rest else 1
    return 0


def find_long(name: str, where: str = "") -> Option:
    """The option with this name, or the only one that starts with it."""
    if name in BY_LONG:
        return BY_LONG[name]
    candidates = [option for long, option in BY_LONG.items() if name and long.startswith(name)]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        near = difflib.get_close_matches(_cut(name), BY_LONG, n=1, cutoff=0.8)
        raise BadRequest(
            f'{where}unrecognized option "--{_cut(name)}"',
            (f"Did you mean {BY_LONG[near[0]].flag}? " if near else "")
            + "odcctl submit --help lists the options.",
        )
    flags = [option.flag for option in candidates]
    more = ", …" if len(flags) > MAX_POSSIBILITIES else ""
    raise BadRequest(
        f'{where}option "--{name}" is ambiguous',
        f"It could be {', '.join(flags[:MAX_POSSIBILITIES])}{more}.",
    )


def _required(option: Option, following: str | None, where: str) -> str:
    if following is None:
        shown = f"-{option.short}/{option.flag}" if option.short else option.flag
        raise BadRequest(f"{where}option {shown} needs a value", f"Its value is {option.value}.")
    return following


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
