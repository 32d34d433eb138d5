"""Slurm's hostlists: `gpu-h100-[03,07-09],login1`, expanded and compressed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from odcd.errors import BadRequest, TooLarge
from odcd.slurm.lists import split_outside_brackets

MAX_HOSTS = 10_000
"""That a list may name, counting repeated names: 2 KB of repeated ranges expand to millions."""
MAX_NAME = 200

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_BRACKETED = re.compile(r"([^\[\]]*)\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$")
_HINT = "Accepted: node names separated by commas, with ranges in brackets, such as gpu[01-04,7]."


def expand_hosts(text: str) -> list[str]:
    """The names in their original order, each once; zero padding is kept."""
    hosts: list[str] = []
    for part in split_outside_brackets(text.strip()):
        hosts += _expand_part(part.strip(), text)
        if len(hosts) > MAX_HOSTS:
            raise _too_many(text)
    return list(dict.fromkeys(hosts))


def _expand_part(part: str, whole: str) -> list[str]:
    heads = [""]
    at = 0
    while found := _BRACKETED.match(part, at):
        at = found.end()
        numbers = _expand_numbers(found[2], whole)
        if len(heads) * len(numbers) > MAX_HOSTS:
            raise _too_many(whole)
        _check_name(heads[0] + found[1] + numbers[0], part)
        heads = [head + found[1] + number for head in heads for number in numbers]
    _check_name(heads[0] + part[at:], part)
    return [head + part[at:] for head in heads]


def _check_name(name: str, part: str) -> None:
    """name: the first one of a part, or its beginning: thousands begin in the same way. Raises
    BadRequest."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise BadRequest(f'"{part[:60]}" is not a node name or a list of them', _HINT)


def _expand_numbers(text: str, whole: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        found = _NUMBERS.fullmatch(part.strip())
        if found is None or (found[2] is not None and int(found[2]) < int(found[1])):
            raise BadRequest(f'"{part[:60]}" in "{whole[:60]}" is not a range of nodes', _HINT)
        last = int(found[2] or found[1])
        if len(numbers) + last - int(found[1]) >= MAX_HOSTS:
            raise _too_many(whole)
        width = len(found[1])
        numbers.extend(f"{number:0{width}}" for number in range(int(found[1]), last + 1))
    return numbers


def compress_hosts(hosts: Iterable[str]) -> str:
    """The shortest list of these names, sorted; expand_hosts returns the same names."""
    parts = sorted({_split(host) for host in hosts})
    lists: list[str] = []
    for (prefix, width), group in groupby(parts, key=lambda part: part[:2]):
        numbers = [number for _, _, number in group]
        if width == 0:
            lists.append(prefix)
        elif len(numbers) == 1:
            lists.append(f"{prefix}{numbers[0]:0{width}}")
        else:
            lists.append(f"{prefix}[{','.join(_runs(numbers, width))}]")
    return ",".join(lists)


def list_hosts(hosts: Iterable[str]) -> str:
    """A list of these names in the same order: the first node of a job comes first, as its script
    runs there. expand_hosts returns the same names."""
    parts = [_split(host) for host in hosts]
    lists: list[str] = []
    for (prefix, width), group in groupby(parts, key=lambda part: part[:2]):
        numbers = [number for _, _, number in group]
        if width == 0:
            lists += [prefix] * len(numbers)
        elif len(numbers) == 1:
            lists.append(f"{prefix}{numbers[0]:0{width}}")
        else:
            lists.append(f"{prefix}[{','.join(_runs(numbers, width))}]")
    return ",".join(lists)


def _split(host: str) -> tuple[str, int, int]:
    """Prefix, width of the number at the end (0: none), number.

    A number without leading zeros has width 1, so that n9 and n10 share a range.
    """
    found = _NUMBERED.fullmatch(host)
    if found is None:
        return host, 0, 0
    return found[1], len(found[2]) if found[2][0] == "0" else 1, int(found[2])


def _runs(numbers: Sequence[int], width: int) -> list[str]:
    runs: list[str] = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        first, last = f"{run[0]:0{width}}", f"{run[-1]:0{width}}"
        runs.append(first if len(run) == 1 else f"{first}-{last}")
    return runs


def _too_many(text: str) -> TooLarge:
    return TooLarge(
        f'the list "{text[:60]}" names more than {MAX_HOSTS} nodes', "Name fewer nodes."
    )
