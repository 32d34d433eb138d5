"""Notify users whose dev server ran out of memory and was restarted."""

from __future__ import annotations

import logging

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes import notices
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.records.dispatch import Fact, Notice

log = logging.getLogger(__name__)

TRIES, AGAIN_S = 10, 3.0


class OomNotices:
    def __init__(
        self, cluster: Cluster, members: Members, background: Background, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._background = background
        self._clock = clock

    def note(self, key: Key, fact: Fact) -> None:
        """The container of a member ran out of memory, and runs again."""
        self._background.spawn(self._notify(key, notices.oom_notice(fact)))

    async def _notify(self, key: Key, notice: Notice) -> None:
        for _ in range(TRIES):
            pod = self._members.pod(key)
            if pod is None:
                return
            try:
                await notices.notify(self._cluster, [pod], key[0], notice)
                return
            except (RunnerDown, WrongState) as error:
                log.warning(
                    "kubernetes.notice_failed", extra={"job_id": key[0], "why": error.message}
                )
            await self._clock.sleep(AGAIN_S)
