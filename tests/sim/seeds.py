"""The days that the long tests simulate."""

from __future__ import annotations

import os


def seeds(*usual: int) -> list[int]:
    """Those, or with ODC_SIM_SEEDS=N as many from the last of them on: `make test-soak`."""
    more = int(os.environ.get("ODC_SIM_SEEDS", "0"))
    return [*usual[:-1], *range(usual[-1], usual[-1] + more)] if more else list(usual)
