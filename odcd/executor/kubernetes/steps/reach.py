"""The pods of a step, and short commands in all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from odcd.errors import WrongState
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.naming import log_facts, pod_name
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.executor.kubernetes.steps.order import folder_of, mark_of
from odcd.executor.kubernetes.steps.shell import PodShell
from odcd.records.step import StepKey

log = logging.getLogger(__name__)

AT_ONCE = 64


class StepPods:
    def __init__(self, shell: PodShell, finder: PodFinder) -> None:
        self._shell = shell
        self._finder = finder
        self.turns = asyncio.Semaphore(AT_ONCE)

    async def all(self, key: StepKey, ranks: Collection[int] | None) -> list[Pod]:
        """ranks: of the step; None: it is not known which of the job's pods it has."""
        pods = [pod for pod in await self._finder.find(key[0], key[1]) if not is_over(pod)]
        if ranks is None:
            return pods
        names = {pod_name(key[0], key[1], rank) for rank in ranks}
        return [pod for pod in pods if pod.metadata.name in names]

    async def find(self, key: StepKey, rank: int) -> Pod | None:
        """None: it is gone, or has ended."""
        pod = await self._finder.find_one((key[0], key[1], rank))
        return None if pod is None or is_over(pod) else pod

    async def tell(self, key: StepKey, call: str, ranks: Collection[int] | None) -> None:
        """Run a call in all pods of the step; a pod that has ended needs none. Raises
        RunnerDown."""
        text = f"step={folder_of(key[2])} mark={mark_of(key)}\n{call}"

        async def tell(pod: Pod) -> None:
            async with self.turns:
                try:
                    await self._shell.ask(pod, ("common",), text)
                except WrongState as error:
                    log.info("step.not_told", extra={**log_facts(pod), "why": error.message})

        await asyncio.gather(*(tell(pod) for pod in await self.all(key, ranks)))
