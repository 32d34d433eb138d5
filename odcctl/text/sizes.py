"""Sizes of memory as people type them: 512G, 64000; sizes of files as commands print them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,9})([MGT]?)", re.I)
_MIB = {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}


def mebibytes(text: str) -> int | None:
    """MiB; None: it is not a size. A bare number is in MiB."""
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _MIB[found[2].upper()] if found else None


def size_text(size: int) -> str:
    """size: in bytes."""
    for unit, bytes_of in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"
