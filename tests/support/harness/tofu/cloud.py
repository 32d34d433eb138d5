"""The server of moto that stands in for AWS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.harness.tofu.workspace import Workspace


@dataclass(frozen=True)
class Cloud:
    """moto's server, and copies of tofu/ that use it."""

    port: int
    make: Callable[[str], Workspace]
