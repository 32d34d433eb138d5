"""Sizes of memory as people type them: 512G, 64000."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,9})([MGT]?)", re.I)
_MIB = {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}


def mebibytes(text: str) -> int | None:
    """MiB; None: it is not a size. A bare number is in MiB."""
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _MIB[found[2].upper()] if found else None
