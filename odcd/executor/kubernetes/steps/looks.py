"""Look at steps that no client of this daemon follows: whether they run, or how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from odcd.clock import Clock
from odcd.errors import OdcError, WrongState
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.naming import key_of
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.executor.kubernetes.steps.order import folder_of, mark_of
from odcd.executor.kubernetes.steps.outcome import read_look, read_task
from odcd.executor.kubernetes.steps.shell import PodShell
from odcd.executor.kubernetes.steps.stream import Plan
from odcd.records.step import StepKey

AGAIN_S = 10.0
"""A step is looked at this often at most: each look is a command in each of its pods."""
AT_ONCE = 16
ANSWER_S = 5.0
STRANGE_S = 60.0
"""A step whose pods do not answer, or nonsense, is looked at less often: others wait for looks."""
MAX_KEPT = 2000

Look = tuple[bool, dict[str, Any] | None]
"""Whether the step is known, and how it ended."""


class Looks:
    def __init__(self, shell: PodShell, finder: PodFinder, clock: Clock) -> None:
        self._shell = shell
        self._finder = finder
        self._clock = clock
        self._kept: dict[StepKey, tuple[float, Look]] = {}
        self._strange: dict[tuple[int, int], float] = {}
        """By job and attempt: until when its steps are not looked at."""
        self._turns = asyncio.Semaphore(AT_ONCE)

    def note(self, key: StepKey, end: dict[str, Any] | None) -> None:
        """A client has left. end: if the step is over."""
        self._keep(key, (True, end), fresh=end is not None)

    def _keep(self, key: StepKey, look: Look, *, fresh: bool = True) -> None:
        while len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = (self._clock.monotonic() if fresh else 0.0, look)

    async def look_at(self, keys: Sequence[StepKey]) -> dict[StepKey, Look]:
        looks = await asyncio.gather(*(self._look_seldom(key) for key in keys))
        return dict(zip(keys, looks, strict=True))

    async def _look_seldom(self, key: StepKey) -> Look:
        at, kept = self._kept.get(key, (-AGAIN_S, (False, None)))
        if kept[1] is not None or self._clock.monotonic() - at < AGAIN_S:
            return kept
        if self._strange.get(key[:2], 0.0) > self._clock.monotonic():
            return True, None
        try:
            look = await self.look(key)
        except OdcError:
            while len(self._strange) >= MAX_KEPT:
                self._strange.pop(next(iter(self._strange)))
            self._strange[key[:2]] = self._clock.monotonic() + STRANGE_S
            return True, None
        self._keep(key, look)
        return look

    async def look(self, key: StepKey) -> Look:
        """Raises RunnerDown if a pod cannot be reached now, WrongState if it answers nonsense."""
        kept = self._kept.get(key)
        if kept is not None and kept[1][1] is not None:
            return kept[1]
        parts = await self._ask(key)
        try:
            outcome, ranks, over, lost = read_look(parts)
        except ValueError as error:
            raise _nonsense(error) from None
        if not ranks:
            return False, None
        if lost or ranks - parts.keys():
            detail = "a pod of the step, or the process that watched it, is gone"
            return True, {"e": "lost", "detail": detail}
        if ranks - over:
            return True, None
        outcome.tasks = sorted(outcome.statuses)
        return True, outcome.end(self._clock.now().timestamp())

    async def _ask(self, key: StepKey) -> dict[int, list[str]]:
        """The lines of each rank that has a pod."""
        call = f"step={folder_of(key[2])} mark={mark_of(key)}\nlook_at_step"

        async def ask(pod: Pod) -> list[str]:
            async with self._turns:
                return await self._shell.ask(pod, ("common", "follow"), call, ANSWER_S)

        pods = {
            name[2]: pod
            for pod in await self._finder.find(key[0], key[1])
            if not is_over(pod) and (name := key_of(pod)) is not None
        }
        answers = await asyncio.gather(*(ask(pod) for pod in pods.values()))
        return dict(zip(pods, answers, strict=True))

    async def find_plan(self, key: StepKey) -> Plan | None:
        """For a step that another daemon has started. None: its files are gone."""
        hosts: dict[int, str] = {}
        tasks: dict[int, tuple[int, ...]] = {}
        names = {
            name[2]: pod.metadata.name
            for pod in await self._finder.find(key[0], key[1])
            if (name := key_of(pod)) is not None
        }
        for rank, lines in (await self._ask(key)).items():
            for words in map(str.split, lines):
                if words[:1] == ["t"]:
                    try:
                        tasks[rank] = tuple(map(read_task, words[1:]))
                    except ValueError as error:
                        raise _nonsense(error) from None
                    hosts |= dict.fromkeys(tasks[rank], names[rank])
        return Plan(hosts=dict(sorted(hosts.items())), tasks=tasks) if tasks else None


def _nonsense(error: ValueError) -> WrongState:
    """Users may write anything there."""
    return WrongState(f"a pod of the step answers what no step does: {str(error)[:200]}")
