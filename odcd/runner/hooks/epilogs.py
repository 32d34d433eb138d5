"""The epilogs of a job: they begin when no process of it is left on any node of this runner."""

from __future__ import annotations

from collections.abc import Callable

from odcd.runner.hooks.hooks import Hooks
from odcd.runner.record import Key

Drains = dict[str, str]
"""Nodes that must accept no new jobs: by the member's rank, the reason. Part of the fact that ends
the last member of a job."""


def run_epilogs(hooks: Hooks, last: Key, done: Callable[[Drains], None]) -> None:
    """Run the epilogs that the job of this member owes, then call done."""
    keys = hooks.debts.of(last.job, last.attempt)
    drains: Drains = {}
    left = len(keys)
    if not keys:
        done(drains)

    def ended(key: Key, reason: str | None) -> None:
        nonlocal left
        left -= 1
        if reason is not None:
            drains[str(key.rank)] = reason
        if left == 0:
            done(drains)

    for key in keys:
        hooks.epilog(key, lambda reason, key=key: ended(key, reason))
