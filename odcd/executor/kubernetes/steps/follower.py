"""Follow a step in one pod, across broken connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.steps.order import folder_of, keep_bytes, mark_of
from odcd.executor.kubernetes.steps.outcome import read_code, read_moment
from odcd.executor.kubernetes.steps.shell import Lines, PodShell
from odcd.records.step import StepKey

RETRY_S = (0.2, 3.0)
MAX_BYTES = 1024 * 1024
SILENCE_S = 45.0
"""A connection on which not even `nothing happens` arrives for this time is replaced."""

Kind = Literal["output", "exit", "stop", "over", "lost", "missing", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """stream: o, e or m. data: of output; for stop and lost, the reason. code: of an exit. times:
    of a task's end, or of the begin and end of the pod's part."""

    kind: Kind
    rank: int
    task: int = 0
    stream: bytes = b""
    data: bytes = b""
    code: int = 0
    times: tuple[float, float] = (0.0, 0.0)


@dataclass(slots=True, kw_only=True)
class Part:
    """The part of a step that runs in one pod, and how much of it is known. marks: by stream and
    task, bytes that were read; done: tasks whose end is known."""

    rank: int
    tasks: tuple[int, ...]
    marks: dict[str, int]
    done: set[int]


class Follower:
    def __init__(
        self, shell: PodShell, clock: Clock, key: StepKey, part: Part, *, owner: bool,
        find_pod: Callable[[int], Awaitable[Pod | None]], put: Callable[[Event], Awaitable[None]],
    ) -> None:  # fmt: skip
        """find_pod: by rank; None: it is gone or has ended."""
        self._shell = shell
        self._clock = clock
        self._key = key
        self._part = part
        self._owner = owner
        self._find_pod = find_pod
        self._put = put
        self._told = False

    async def run(self) -> None:
        """Returns when the pod's part is over, or lost."""
        pause_s = RETRY_S[0]
        while True:
            try:
                pod = await self._find_pod(self._part.rank)
                if pod is None:
                    await self._lose("its pod has ended")
                    return
                lines = await self._shell.open(pod, ("common", "follow"), self._call())
            except (RunnerDown, WrongState):
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_S[1])
                continue
            try:
                if await self._read(lines):
                    return
            except (TimeoutError, ValueError):
                # Users may write anything there.
                pass
            finally:
                with contextlib.suppress(OSError):
                    await lines.stream.close()
            await self._clock.sleep(RETRY_S[0])

    async def _lose(self, why: str) -> None:
        await self._put(Event(kind="lost", rank=self._part.rank, data=why.encode()))

    def _call(self) -> str:
        part = self._part
        known = [f"at_{name[0]}_{name[1:]}={at}" for name, at in part.marks.items()]
        known += [f"done_{task}=1" for task in part.done]
        return (
            f"step={folder_of(self._key[2])} mark={mark_of(self._key)} "
            f"tasks='{' '.join(map(str, part.tasks))}' keep={keep_bytes(len(part.tasks))} "
            f"owner={1 if self._owner else ''} {' '.join(known)}\nfollow_step"
        )

    async def _read(self, lines: Lines) -> bool:
        """Whether the part is over."""
        rank = self._part.rank
        while True:
            async with asyncio.timeout(SILENCE_S):
                words = (await lines.line() or "").split()
            match words:
                case ["o" | "e" | "m" | "x", task, *_] if int(task) not in self._part.tasks:
                    return False
                case ["o" | "e" | "m" as name, task, size] if 0 <= int(size) <= MAX_BYTES:
                    async with asyncio.timeout(SILENCE_S):
                        data = await lines.data(int(size))
                    if data is None:
                        return False
                    mark = f"{name}{task}"
                    self._part.marks[mark] = self._part.marks.get(mark, 0) + len(data)
                    await self._put(Event(
                        kind="output", rank=rank, task=int(task), stream=name.encode(), data=data,
                    ))  # fmt: skip
                case ["x", task, code, at]:
                    await self._put(Event(
                        kind="exit", rank=rank, task=int(task), code=read_code(code),
                        times=(0.0, read_moment(at)),
                    ))  # fmt: skip
                    self._part.done.add(int(task))
                case ["s", why]:
                    if not self._told:
                        self._told = True
                        await self._put(Event(kind="stop", rank=rank, data=why.encode()))
                case ["z", began, ended]:
                    times = read_moment(began), read_moment(ended)
                    await self._put(Event(kind="over", rank=rank, times=times))
                    return True
                case ["l"]:
                    await self._lose("the process that watched the step is gone")
                    return True
                case ["g"]:
                    await self._put(Event(kind="missing", rank=rank))
                    return True
                case ["."]:
                    pass
                case _:
                    return False
