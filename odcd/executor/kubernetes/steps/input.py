"""The input of a step's tasks, and the other messages of a client that is attached to it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.steps.order import folder_of
from odcd.executor.kubernetes.steps.shell import Lines, PodShell
from odcd.records.step import StepKey

OFFSET = struct.Struct(">Q")
ANSWER_S = 20.0
FULL_S = 0.1


class InputLink:
    """Connections to the pods whose tasks take input. The client sends one piece after another."""

    def __init__(
        self, shell: PodShell, key: StepKey, find: Callable[[], Awaitable[Sequence[Pod]]]
    ) -> None:
        """find: the pods of the step."""
        self._shell = shell
        self._key = key
        self._find = find
        self._links: list[Lines] | None = None
        self._turn = asyncio.Lock()

    async def give(self, begin: int, data: bytes) -> int | None:
        """How much of the input has arrived everywhere; None: no task takes more. Raises RunnerDown
        if a pod cannot be reached now."""
        async with self._turn:
            if self._links is None:
                self._links = await self._open()
            try:
                answers = await asyncio.gather(
                    *(self._give(link, begin, data) for link in self._links)
                )
            except (RunnerDown, TimeoutError) as error:
                await self.close()
                raise RunnerDown("the input of the step did not arrive; try again") from error
            arrived = [answer for answer in answers if answer is not None]
            return min(arrived) if arrived else None

    async def _open(self) -> list[Lines]:
        opened = await asyncio.gather(*(self._open_one(pod) for pod in await self._find()))
        return [link for link in opened if link is not None]

    async def _open_one(self, pod: Pod) -> Lines | None:
        try:
            link = await self._shell.open(
                pod, ("common", "give"), f"step={folder_of(self._key[2])}\ngive_input"
            )
        except WrongState:
            return None
        async with asyncio.timeout(ANSWER_S):
            if await link.line() == "ready":
                return link
        await link.stream.close()
        return None

    async def _give(self, link: Lines, begin: int, data: bytes) -> int | None:
        async with asyncio.timeout(ANSWER_S):
            await link.stream.write(f"{begin} {len(data)}\n".encode() + data)
            answer = await link.line()
        if answer is None:
            raise RunnerDown("the connection broke")
        if answer == "over":
            return None
        return begin if answer == "full" else int(answer)

    async def close(self) -> None:
        links, self._links = self._links or [], None
        for link in links:
            await link.stream.close()


class PodChannel:
    """Implements odcd.executor.base.StepChannel. A window's size and acknowledgements have no
    effect here."""

    def __init__(self, link: InputLink, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self._piece = (0, b"")
        self._over = False
        self.hello: dict[str, Any] = {"input": 0, "accepts": True}

    async def send(self, kind: bytes, data: bytes) -> bool:
        if kind == b"i":
            self._piece = OFFSET.unpack_from(data)[0], data[OFFSET.size :]
            await self._try()
        return not self._over

    async def _try(self) -> None:
        arrived = await self._link.give(*self._piece)
        self._over = arrived is None
        self.hello["input"] = arrived or 0

    async def read(self) -> tuple[bytes, bytes] | None:
        """That the piece has arrived."""
        end = self._piece[0] + len(self._piece[1])
        while self.hello["input"] < end and not self._over:
            await self._clock.sleep(FULL_S)
            await self._try()
        return None if self._over else (b"g", OFFSET.pack(end))

    def close(self) -> None:
        """The link stays for the next piece."""
