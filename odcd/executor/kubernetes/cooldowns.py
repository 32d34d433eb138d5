"""Nodes that do not accept pods although they look free: no jobs are planned there for a while."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.records.node import NodeReport

FIRST = timedelta(seconds=120)
LONGEST = timedelta(seconds=1800)
"""The first and the longest time; each is twice the previous one."""
MAX_REASON = 500
"""Characters."""


@dataclass(slots=True)
class _Cooldown:
    until: datetime
    length: timedelta
    why: str
    over: bool = False
    used: tuple[int, int, int] | None = None
    """GPUs, CPUs and MiB that pods of others used; None: not reported since it began."""


class Cooldowns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, _Cooldown] = {}
        self._changed = False

    def begin(self, node: str, why: str) -> None:
        """A pod waited too long for the node. why: the scheduler's message. Other pods that waited
        for it at the same time change nothing."""
        last, now = self._nodes.get(node), self._clock.now()
        if last is not None and not last.over:
            return
        length = FIRST if last is None else min(2 * last.length, LONGEST)
        self._nodes[node] = _Cooldown(now + length, length, why)
        self._changed = True

    def end(self, node: str) -> None:
        """A pod has started on the node."""
        if self._nodes.pop(node, None) is not None:
            self._changed = True

    def reason(self, node: str) -> str | None:
        """Why no jobs are planned on the node; None: they are."""
        found = self._nodes.get(node)
        if found is None or found.over:
            return None
        return (
            f"until {found.until:%H:%M} UTC, because Kubernetes did not schedule a pod there: "
            f"{found.why}"
        )

    def apply(self, report: NodeReport) -> NodeReport:
        """The report of a node, drained if no jobs are planned there. When pods of others have
        left the node, it is tried again at once."""
        found = self._nodes.get(report.name)
        if found is not None and not found.over:
            used = (report.foreign_gpus, report.foreign_cpus, report.foreign_mem_mib)
            before, found.used = found.used or used, used
            found.over = any(now < then for now, then in zip(used, before, strict=True))
        why = self.reason(report.name)
        if report.state != "UP" or why is None:
            return report
        return replace(report, state="DRAIN", reason=why[:MAX_REASON])

    def changed(self) -> bool:
        """Whether a reason has changed since the last call."""
        now = self._clock.now()
        for found in self._nodes.values():
            if not found.over and found.until <= now:
                found.over = True
                self._changed = True
        changed, self._changed = self._changed, False
        return changed
