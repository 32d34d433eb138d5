"""Options as data: one table per verb gives its parser, its help, its completion and its page.

The parsing itself is getopt's: GNU style, options and words in any order, `--` ends them.
"""

from __future__ import annotations

import getopt
from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

from odcctl.exits import WrongUsage

HELP_WIDTH = 100


class Option:
    """One option of a verb. value: the placeholder of its value, or None for a flag."""

    __slots__ = ("help", "long", "short", "value")

    def __init__(self, long: str, short: str | None, value: str | None, help: str) -> None:
        self.long = long
        self.short = short
        self.value = value
        self.help = help

    @property
    def label(self) -> str:
        short = f"-{self.short}, " if self.short else "    "
        return f"{short}--{self.long}" + (f" {self.value}" if self.value else "")


JSON = Option("json", None, None, "print the answer as the API gave it: one JSON value")
OUTPUT = Option("output", None, "FORM", "table (the default), json, or quiet: an id a line")
SERVER = Option("server", None, "ADDRESS", "a socket's path, or http(s)://HOST:PORT")
HELP = Option("help", "h", None, "show this help")
COMMON = (JSON, OUTPUT, SERVER, HELP)
"""Of every verb, and understood before it too: `odcctl --server ADDRESS queue`."""
OF_SUBMIT = (JSON, SERVER, HELP)
"""Where --output is sbatch's."""
OF_HOURS = (JSON, OUTPUT, SERVER, Option("help", None, None, "show this help"))
"""Where -h is hours."""


class Command:
    """One verb. words: the fewest and the most of them (None: any number)."""

    common: ClassVar[tuple[Option, ...]] = COMMON

    def __init__(
        self,
        *,
        name: str,
        summary: str,
        usage: str,
        example: str,
        run: Callable[[Arguments], int],
        options: Sequence[Option] = (),
        words: tuple[int, int | None] = (0, 0),
        notes: str = "",
        what: str | None = None,
        takes_jobs: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.usage = usage
        self.example = example
        self.run = run
        self.options = tuple(options)
        self.words = words
        self.notes = notes
        self.what = what
        self.takes_jobs = takes_jobs

    @property
    def all_options(self) -> tuple[Option, ...]:
        return (*self.options, *self.common)

    def parse(self, argv: Sequence[str]) -> Arguments:
        options = self.all_options
        shorts = "".join(o.short + (":" if o.value else "") for o in options if o.short)
        longs = [o.long + ("=" if o.value else "") for o in options]
        try:
            pairs, words = getopt.gnu_getopt(list(argv), shorts, longs)
        except getopt.GetoptError as error:
            self.wrong(str(error.msg))
        names = {f"-{o.short}": o.long for o in options if o.short}
        names |= {f"--{o.long}": o.long for o in options}
        arguments = Arguments(self, words)
        for name, value in pairs:
            arguments.given.setdefault(names[name], []).append(value)
        if not arguments.flag("help"):
            self._check(arguments)
        return arguments

    def _check(self, arguments: Arguments) -> None:
        least, most = self.words
        count = len(arguments.words)
        if count < least:
            self.wrong("something is missing")
        if most is not None and count > most:
            self.wrong(f'"{arguments.words[most]}" is one word too many')
        if arguments.form not in ("table", "json", "quiet"):
            self.wrong(f'--output is table, json or quiet, not "{arguments.form}"')

    def wrong(self, message: str) -> NoReturn:
        raise WrongUsage(
            f"{self.name}: {message}", f"Usage: odcctl {self.usage}\nSee: odcctl {self.name} --help"
        )

    def help(self) -> str:
        parts = [f"Usage: odcctl {self.usage}", f"{self.summary}."]
        if self.notes:
            parts.append("\n".join(wrap(self.notes, HELP_WIDTH)))
        parts.append("Options:\n" + option_lines(self.all_options))
        parts.append("Example:\n" + indent(self.example))
        return "\n\n".join(parts)


class HoursCommand(Command):
    """A verb of dev servers: its -h is --hours, and only --help is help."""

    common = OF_HOURS


class Arguments:
    """A parsed command line: options by long name, and words."""

    def __init__(self, command: Command, words: list[str]) -> None:
        self.command = command
        self.words = words
        self.given: dict[str, list[str]] = {}

    def flag(self, name: str) -> bool:
        return name in self.given

    def value(self, name: str) -> str | None:
        """The last one given wins."""
        return self.given[name][-1] if name in self.given else None

    def joined(self, name: str) -> str | None:
        """All values of an option that may be repeated, by commas."""
        return ",".join(self.given[name]) if name in self.given else None

    def number(self, name: str, default: int | None = None) -> int | None:
        text = self.value(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            self.command.wrong(f'--{name} takes a whole number, not "{text}"')

    @property
    def form(self) -> str:
        return "json" if self.flag("json") else self.value("output") or "table"


def option_lines(options: Sequence[Option]) -> str:
    column = min(30, max(len(o.label) for o in options) + 4)
    lines: list[str] = []
    for option in options:
        wrapped = wrap(option.help, HELP_WIDTH - column)
        label = f"  {option.label}"
        if len(label) > column - 2:
            lines.append(label)
            label = ""
        lines.append(f"{label:<{column}}{wrapped[0]}")
        lines += [" " * column + line for line in wrapped[1:]]
    return "\n".join(lines)


def wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
