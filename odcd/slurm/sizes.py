"""Memory sizes in sbatch's forms: `512`, `16G`, `1T`, `102400K`; without a unit, MiB."""

from __future__ import annotations

import re

from odcd.errors import BadRequest

_SIZE = re.compile(r"(?P<number>[0-9]{1,18})(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE)
_KIB = {"k": 1, "": 1024, "m": 1024, "g": 1024**2, "t": 1024**3}
MAX_MIB = 2_000_000_000


def parse_mib(text: str) -> int:
    """Return MiB, rounded up."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadRequest(
            f'"{text}" is not a memory size',
            "Accepted: a whole number with K, M, G or T; without a unit it is MiB.",
        )
    mib = -(-int(found["number"]) * _KIB[found["unit"].lower()] // 1024)
    if mib > MAX_MIB:
        raise BadRequest(f'memory size "{text}" is too large', f"At most {format_mib(MAX_MIB)}.")
    return mib


def format_mib(mib: int) -> str:
    """The shortest exact form: 16G, 1536M, 0."""
    for unit, size in (("T", 1024**2), ("G", 1024)):
        if mib and mib % size == 0:
            return f"{mib // size}{unit}"
    return f"{mib}M" if mib else "0"
