"""Names of the machine's groups."""

from __future__ import annotations

import grp
from functools import lru_cache


@lru_cache(maxsize=4096)
def group_name(gid: int) -> str:
    """The number if the machine knows no name for it."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
