"""Orphans: pods that run for no attempt of the database."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from odcd.clock import Clock
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import TERM, Key
from odcd.executor.kubernetes.objects import Pod

log = logging.getLogger(__name__)


class Orphans:
    def __init__(
        self,
        members: Members,
        ends: Ends,
        clock: Clock,
        grace_s: float,
        on_orphans: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """grace_s: how long an orphan may stay. on_orphans: called with their names before they are
        removed."""
        self._members = members
        self._ends = ends
        self._clock = clock
        self._grace_s = grace_s
        self._on_orphans = on_orphans
        self._since: dict[Key, float] = {}

    async def remove(self, pods: Mapping[Key, Pod], term: int) -> None:
        """Remove orphans: those of older terms and ended ones at once, others after the grace
        period."""
        now = self._clock.monotonic()
        due: list[tuple[Key, Pod]] = []
        for key, pod in pods.items():
            since = self._since.setdefault(key, now)
            older = int(pod.metadata.annotations.get(TERM, "0")) < term
            if pod.metadata.uid in self._members.removing:
                continue
            if older or is_over(pod) or now - since >= self._grace_s:
                due.append((key, pod))
        for key in [key for key in self._since if key not in pods]:
            del self._since[key]
        alive = [pod.metadata.name for _, pod in due if not is_over(pod)]
        if alive:
            log.warning("kubernetes.orphans", extra={"pods": alive})
            await self._on_orphans(alive)
        for key, pod in due:
            self._ends.clean(pod, key)
