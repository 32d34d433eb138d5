"""Node names in Slurm's bracket form: gpu-[01-03,07]."""

from __future__ import annotations

import re
from collections.abc import Iterable

from odcctl.exits import WrongUsage

MAX_NAMES = 100_000
HINT = "Write a list of nodes as gpu-[01-03,07],ws1."

_NUMBERED = re.compile(r"(.*?)(\d+)$")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?$")


def fold(names: Iterable[str]) -> str:
    """Names as one list: the last number of each is folded, its zero padding kept."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: dict[str, None] = {}
    for name in names:
        match = _NUMBERED.match(name)
        if match is None:
            plain[name] = None
            continue
        prefix, digits = match.groups()
        # Numbers written without padding fold together whatever their length: 9, 10.
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((prefix, width), []).append(int(digits))
    _join_unpadded(groups)
    parts = [_fold_group(prefix, width, numbers) for (prefix, width), numbers in groups.items()]
    return ",".join([*parts, *plain])


def _join_unpadded(groups: dict[tuple[str, int], list[int]]) -> None:
    """01..09 are padded to 2 digits, and so is 10, although it does not look so."""
    for prefix, width in [key for key in groups if key[1]]:
        unpadded = groups.get((prefix, 0), [])
        same = [n for n in unpadded if len(str(n)) == width]
        if same:
            groups[prefix, width] += same
            rest = [n for n in unpadded if len(str(n)) != width]
            if rest:
                groups[prefix, 0] = rest
            else:
                del groups[prefix, 0]


def _fold_group(prefix: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [
        f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
        for first, last in runs
    ]
    if len(texts) == 1 and "-" not in texts[0]:
        return prefix + texts[0]
    return f"{prefix}[{','.join(texts)}]"


def unfold(text: str) -> list[str]:
    """The names of a list, in its order. Raises WrongUsage for a malformed one."""
    names: list[str] = []
    for part in _split(text):
        names += _unfold_part(part, text)
        if len(names) > MAX_NAMES:
            raise WrongUsage(f'"{text}" names more than {MAX_NAMES} nodes', HINT)
    return names


def _split(text: str) -> list[str]:
    """At the commas outside brackets."""
    return [part for part in re.split(r",(?![^\[\]]*\])", text) if part]


def _unfold_part(part: str, whole: str) -> list[str]:
    match = _BRACKETS.search(part)
    if match is None:
        if "[" in part or "]" in part:
            raise WrongUsage(f'"{whole}" has an unmatched bracket', HINT)
        return [part]
    heads: list[str] = []
    for item in match.group(1).split(","):
        limits = _RANGE.match(item)
        if limits is None:
            raise WrongUsage(f'"{item}" in "{whole}" is not a number or a range', HINT)
        first, last = limits.group(1), limits.group(2) or limits.group(1)
        if not 0 <= int(last) - int(first) < MAX_NAMES:
            raise WrongUsage(
                f'"{item}" in "{whole}" is not an ascending range, or is too large', HINT
            )
        heads += [f"{n:0{len(first)}}" for n in range(int(first), int(last) + 1)]
    rest = _unfold_part(part[match.end() :], whole) if part[match.end() :] else [""]
    return [part[: match.start()] + head + tail for head in heads for tail in rest]
