"""Split the arguments of a command by a table of its options, with GNU getopt's rules and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from odcd.records.job import MAX_COMPONENTS
from odcd.slurm.argv import MAX_COMPONENT_WORDS
from odcd.slurm.usage import Usage

SEPARATOR = ":"


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. key: its name in Arguments; several options may share one. refused: why odc does
    not support it; ignored: it asks for what odc does anyway, or for nothing that odc has."""

    key: str
    long: str = ""
    short: str = ""
    argument: Literal["none", "optional", "required"] = "none"
    help: str = ""
    refused: str = ""
    ignored: bool = False


@dataclass(slots=True)
class Arguments:
    """The options that were given, in order, and the other words."""

    given: list[tuple[Flag, str | None]] = field(default_factory=list[tuple[Flag, str | None]])
    operands: list[str] = field(default_factory=list[str])

    def has(self, key: str) -> bool:
        return any(flag.key == key for flag, _ in self.given)

    def last(self, key: str) -> str | None:
        """The value of the option, if given several times of the last one."""
        for flag, text in reversed(self.given):
            if flag.key == key:
                return text if text is not None else ""
        return None

    def every(self, key: str) -> list[str]:
        return [text for flag, text in self.given if flag.key == key and text is not None]


def flags(*options: Flag) -> tuple[Flag, ...]:
    return options


def parse(
    name: str, options: Iterable[Flag], argv: Sequence[str], *, code: int = 1, mixed: bool = True
) -> Arguments:
    """mixed: options may follow operands. code: the exit code of a usage error. Raises Usage."""
    table = tuple(options)
    longs = {flag.long: flag for flag in table if flag.long}
    shorts = {flag.short: flag for flag in table if flag.short}
    found = Arguments()
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            found.operands.extend(argv[at:])
            break
        if word.startswith("--"):
            at += _long(name, longs, word[2:], argv[at : at + 1], found, code)
        elif word.startswith("-") and len(word) > 1:
            at += _shorts(name, shorts, word[1:], argv[at : at + 1], found, code)
        elif mixed:
            found.operands.append(word)
        else:
            found.operands.extend(argv[at - 1 :])
            break
    for flag, _ in found.given:
        if flag.refused:
            shown = f"--{flag.long}" if flag.long else f"-{flag.short}"
            raise Usage(f"{name}: error: {shown} is not supported: {flag.refused}\n", code=code)
    return found


def parse_components(
    name: str, options: Iterable[Flag], argv: Sequence[str], *, code: int, commands: bool
) -> list[Arguments]:
    """The options and operands of each component of a heterogeneous job or step, between the words
    `:`. commands: each has a command of its own, whose arguments contain no such word. Raises
    Usage."""
    table, parts = tuple(options), list[Arguments]()
    while True:
        found = parse(name, table, argv, code=code, mixed=False)
        parts.append(found)
        if SEPARATOR not in (found.operands if commands else found.operands[:1]):
            return parts
        if len(parts) >= MAX_COMPONENTS or len(argv) > MAX_COMPONENT_WORDS:
            limit = f"{MAX_COMPONENTS} components and {MAX_COMPONENT_WORDS} words"
            words = f"a heterogeneous job has at most {limit}"
            raise Usage(f"{name}: error: {words}\n", code=code)
        at = found.operands.index(SEPARATOR)
        argv, found.operands = found.operands[at + 1 :], found.operands[:at]


def _long(
    name: str, longs: dict[str, Flag], word: str, rest: Sequence[str], found: Arguments, code: int
) -> int:
    """Returns how many of the following words belong to the option."""
    given, equals, text = word.partition("=")
    flag = longs.get(given)
    if flag is None:
        candidates = [flag for long, flag in longs.items() if given and long.startswith(given)]
        if len({(flag.key, flag.argument) for flag in candidates}) > 1:
            shown = " ".join(f"'--{flag.long}'" for flag in candidates)
            raise _wrong(name, f"option '--{given}' is ambiguous; possibilities: {shown}", code)
        if not candidates:
            raise _wrong(name, f"unrecognized option '--{given}'", code)
        flag = candidates[0]
    if equals:
        if flag.argument == "none":
            raise _wrong(name, f"option '--{flag.long}' doesn't allow an argument", code)
        found.given.append((flag, text))
        return 0
    if flag.argument == "required":
        if not rest:
            raise _wrong(name, f"option '--{flag.long}' requires an argument", code)
        found.given.append((flag, rest[0]))
        return 1
    found.given.append((flag, None))
    return 0


def _shorts(
    name: str, shorts: dict[str, Flag], letters: str, rest: Sequence[str], found: Arguments,
    code: int,
) -> int:  # fmt: skip
    for at, letter in enumerate(letters):
        flag = shorts.get(letter)
        if flag is None:
            raise _wrong(name, f"invalid option -- '{letter}'", code)
        if flag.argument == "none":
            found.given.append((flag, None))
            continue
        text = letters[at + 1 :]
        if flag.argument == "required" and not text:
            if not rest:
                raise _wrong(name, f"option requires an argument -- '{letter}'", code)
            found.given.append((flag, rest[0]))
            return 1
        found.given.append((flag, text or None))
        return 0
    return 0


def _wrong(name: str, message: str, code: int) -> Usage:
    return Usage(f'{name}: {message}\nTry "{name} --help" for more information\n', code=code)
