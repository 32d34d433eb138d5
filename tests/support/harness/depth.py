"""How far the long searches go."""

from __future__ import annotations

import os


def deep(usual: int) -> int:
    """usual in CI, ODC_DEPTH times as many in `make test-soak`: examples, or steps of a
    simulation."""
    return usual * int(os.environ.get("ODC_DEPTH", "1"))
