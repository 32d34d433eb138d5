"""Output that is read again from its beginning after an outage: what is new in it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Protocol

_LABEL = re.compile(rb"\d+_\d+: (?:\d+: )?")


class Resumed(Protocol):
    """Removes what was returned before."""

    def begin(self) -> None:
        """The next piece is the first of an answer."""
        ...

    def new(self, piece: bytes) -> bytes: ...


class ByPosition:
    """Of an output whose bytes always have the same order."""

    def __init__(self) -> None:
        self.seen = 0
        self._skip = 0

    def begin(self) -> None:
        self._skip = self.seen

    def new(self, piece: bytes) -> bytes:
        rest = piece[self._skip :]
        self._skip -= len(piece) - len(rest)
        self.seen += len(rest)
        return rest


class ByLabel:
    """Of the lines of an array, labelled with their tasks: only the order of the lines with one
    label is always the same."""

    def __init__(self) -> None:
        self.seen: Counter[bytes] = Counter()
        self._count: Counter[bytes] = Counter()
        self._rest = b""

    def begin(self) -> None:
        self._count.clear()
        self._rest = b""

    def new(self, piece: bytes) -> bytes:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return b"".join(line + b"\n" for line in lines if self._is_new(line))

    def _is_new(self, line: bytes) -> bool:
        found = _LABEL.match(line)
        label = b"" if found is None else found[0]
        self._count[label] += 1
        if self._count[label] <= self.seen[label]:
            return False
        self.seen[label] = self._count[label]
        return True


def names_one(selector: str) -> bool:
    """Whether it is a task, as 7_3, and so no array."""
    return selector.partition("_")[2].isdecimal()
