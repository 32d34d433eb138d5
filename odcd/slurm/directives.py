"""The #SBATCH and #ODC lines of a script.

They are read until the first line that is neither blank nor a comment. Quotes join words, a
backslash does not; a word that starts with # ends the line. Both kinds have the same meaning and
are applied in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from odcd.errors import BadRequest
from odcd.slurm.argv import parse_argv
from odcd.slurm.complaints import Complaints
from odcd.slurm.components import check_count
from odcd.slurm.option import Given

MAX_DIRECTIVES = 200

MAX_LINE = 65_536
MAX_CHARS = 4 * MAX_LINE
"""The limit for all lines of options together."""

_TOKEN = re.compile(r"""\s+|'[^']*'|"[^"]*"|['"#]|[^\s'"#]+""")
_COMMENTS = re.compile(r"(?:\s*+#[^\n]*+)*+\s*+")
_DIRECTIVE = re.compile(r"^#(?:SBATCH|ODC(?=[\s-]|$))(?P<words>[^\n]*)", re.MULTILINE)


def header_end(script: str) -> int:
    """The position of the first line that is neither blank nor a comment."""
    found = _COMMENTS.match(script)
    end = found.end() if found else 0
    # Blanks before a command belong to its line.
    return end if end == len(script) else script.rfind("\n", 0, end) + 1


def parse_directives(
    script: str, end: int | None = None, complaints: Complaints | None = None
) -> list[list[Given]]:
    """The options of each component of the job; most jobs have one. end: the end of the header, if
    known. complaints: collects the errors of lines; None: they are raised, all at once."""
    every = complaints or Complaints()
    groups: list[list[Given]] = [[]]
    for number, line in _directive_lines(script, header_end(script) if end is None else end):
        where = f"line {number} of the script, "
        found = every.catch(partial(_parse_line, line, where, every), ())
        if found is None:
            groups.append([])
            check_count(len(groups), sum(map(len, groups)))
            continue
        groups[-1].extend(found)
        if len(groups[-1]) > MAX_DIRECTIVES:
            raise BadRequest(f"{where}the script has more than {MAX_DIRECTIVES} options")
    if complaints is None:
        every.check()
    return groups


def _parse_line(line: str, where: str, complaints: Complaints) -> tuple[Given, ...] | None:
    """None: the line separates two components."""
    words = split_words(line, where)
    if words in (["hetjob"], ["packjob"]):
        return None
    command_line = parse_argv(words, where, complaints)
    if command_line.operands:
        raise BadRequest(
            f'{where}"{command_line.operands[0][:60]}" is not an option',
            "Put a value with blanks in quotes; start a comment with # after a blank.",
        )
    for given in command_line.options:
        if given.option.command_line_only:
            raise BadRequest(
                f"{where}{given.option.flag} cannot be used inside a script",
                "Use it on the command line.",
            )
    return command_line.options


def _directive_lines(script: str, end: int) -> Iterator[tuple[int, str]]:
    """The line number of each directive, and the text after its first word."""
    number = 1
    counted = chars = 0
    for found in _DIRECTIVE.finditer(script, 0, end):
        number += script.count("\n", counted, found.start())
        counted = found.start()
        if found.end() - found.start() > MAX_LINE:
            raise BadRequest(
                f"line {number} of the script has {found.end() - found.start()} characters",
                f"A line of options has at most {MAX_LINE} characters.",
            )
        chars += found.end() - found.start()
        if chars > MAX_CHARS:
            raise BadRequest(
                f"line {number} of the script: the lines of options have more than {MAX_CHARS} "
                "characters together",
                "Give each option once.",
            )
        yield number, found["words"]


def refuse_directives(script: str) -> None:
    """Raise BadRequest if the script has lines of options, for requests that do not read them."""
    for number, line in _directive_lines(script, header_end(script)):
        raise BadRequest(
            f"line {number} of the script has options, which this request does not read:"
            f"{line[:60]}",
            "Send the script to POST /v1/submit-argv, or set the fields of the job and remove the "
            "lines.",
        )


def late_directive(script: str, end: int | None = None) -> int | None:
    """The line of the first directive that follows a command and so has no effect. end: the end of
    the header, if known."""
    found = _DIRECTIVE.search(script, header_end(script) if end is None else end)
    return script.count("\n", 0, found.start()) + 1 if found else None


def split_words(line: str, where: str = "") -> list[str]:
    """The words of a directive, without quotes."""
    words: list[str] = []
    word: list[str] | None = None
    for found in _TOKEN.finditer(line):
        token = found[0]
        if token.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
        elif token == "#" and word is None:
            break
        elif token in "'\"":
            raise BadRequest(
                f"{where}the quote {token} is not closed", "Close it on the same line."
            )
        else:
            word = word or []
            word.append(token[1:-1] if token[0] in "'\"" else token)
    if word is not None:
        words.append("".join(word))
    return words
