"""Calls of Slurm's commands in pods. Pods reach no service of odc, so odcd looks into the first pod
of each job that may call them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from odcd.clock import Clock
from odcd.errors import OdcError, RunnerDown, WrongState
from odcd.executor.kubernetes.naming import Key, log_facts
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.steps.shell import Lines, PodShell

log = logging.getLogger(__name__)

RETRY_S = (0.5, 5.0)
SILENCE_S = 60.0
MAX_BYTES = 4 * 1024 * 1024
MAX_CALLS = 200
"""Calls of one job at a time; further ones are read when one of them is over."""
MAX_POSITION = 2**62
ANSWER_S = 600.0
"""How long a client may take to print what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """kind: signal, with its name; input, from a position of it; file; gone: the client is."""

    kind: str
    text: str = ""
    begin: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of the output of a call. position: a token with which it can continue from here.
    code: it is over. need: the path of a file. wants_input: begin to send it."""

    out: bytes = b""
    err: bytes = b""
    position: bytes = b""
    need: bytes = b""
    code: int | None = None
    wants_input: bool = False


@dataclass(slots=True, kw_only=True)
class PodCall:
    """One call. key: unique. token: the position of the last piece that is in the pod."""

    job_id: int
    attempt: int
    number: str
    name: str
    key: str
    argv: list[str]
    environment: dict[str, str]
    work_dir: str
    umask: int
    no_input: bool
    token: str | None
    next: int
    link: Callable[[], Awaitable[Lines]]
    clock: Clock
    messages: asyncio.Queue[Message] = field(default_factory=lambda: asyncio.Queue(64))
    _lines: Lines | None = None

    async def give(self, piece: Piece) -> bool:
        """Returns when the client has room for more. False: it is gone. Sent again after a lost
        connection, it takes the place of the first one, which the client may have printed."""
        while True:
            try:
                kept = await self._give(piece)
            except (RunnerDown, TimeoutError):
                await self.close()
                await self.clock.sleep(RETRY_S[0])
            except WrongState:
                return False
            else:
                self.next += 1
                return kept

    async def _give(self, piece: Piece) -> bool:
        if self._lines is None:
            self._lines = await self.link()
            if await self._lines.line() != "ready":
                return False
        position = b"%d %s\n" % (self.next, piece.position)
        head = (
            f"{self.next} {len(piece.out)} {len(piece.err)} {len(position)} {len(piece.need)} "
            f"{'-' if piece.code is None else piece.code} {int(piece.wants_input)}\n"
        )
        texts = piece.out + piece.err + position + piece.need
        await self._lines.stream.write(head.encode() + texts)
        async with asyncio.timeout(ANSWER_S):
            answer = await self._lines.line()
        if answer is None:
            raise RunnerDown("the connection to the pod broke")
        return answer == "ok"

    async def close(self) -> None:
        lines, self._lines = self._lines, None
        if lines is not None:
            await lines.stream.close()


OnCall = Callable[[PodCall], Awaitable[None]]
Calls = dict[str, tuple[PodCall, asyncio.Task[None]]]
"""By number."""


class Listeners:
    """One for each running job that may call the commands."""

    def __init__(self, shell: PodShell, clock: Clock) -> None:
        self._shell = shell
        self._clock = clock
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self.on_call: OnCall | None = None
        """Answers a call; None: this daemon answers none."""

    def begin(self, key: Key, pod: Pod) -> None:
        """The first pod of a job runs. Can be called again."""
        if key not in self._tasks and self.on_call is not None:
            self._tasks[key] = asyncio.create_task(self._listen(key, pod))

    def end(self, key: Key) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for key in list(self._tasks):
            self.end(key)
        if tasks:
            await asyncio.wait(tasks)

    async def _listen(self, key: Key, pod: Pod) -> None:
        calls: Calls = {}
        pause_s = RETRY_S[0]
        try:
            while True:
                try:
                    lines = await self._shell.open(pod, ("common", "listen"), "listen")
                    try:
                        async for call, message in self._read(lines, key, pod, calls):
                            pause_s = RETRY_S[0]
                            if not calls[call.number][1].done():
                                await call.messages.put(message)
                    finally:
                        await lines.stream.close()
                except (RunnerDown, WrongState, TimeoutError, ValueError) as error:
                    log.info("step.calls_unread", extra={**log_facts(pod), "why": str(error)})
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_S[1])
        finally:
            for _, task in calls.values():
                task.cancel()

    async def _read(
        self, lines: Lines, key: Key, pod: Pod, calls: Calls
    ) -> AsyncGenerator[tuple[PodCall, Message]]:
        while True:
            async with asyncio.timeout(SILENCE_S):
                words = (await lines.line() or "end").split()
            message: Message | None = None
            match words:
                case ["c" | "k" | "i" | "f" | "d", number, *_] if not number.isdecimal():
                    return
                case ["c", number, *sizes]:
                    call = await self._read_call(lines, key, pod, number, [*map(int, sizes)])
                    self._add(calls, call)
                case ["k", _, name]:
                    message = Message(kind="signal", text=name)
                case ["i", _, begin, size]:
                    data = await lines.data(_size(size)) or b""
                    message = Message(kind="input", begin=_size(begin, MAX_POSITION), data=data)
                case ["f", _, size]:
                    message = Message(kind="file", data=await lines.data(_size(size)) or b"")
                case ["d", _]:
                    message = Message(kind="gone")
                case ["."]:
                    pass
                case _:
                    return
            if message is not None and words[1] in calls:
                yield calls[words[1]][0], message

    def _add(self, calls: Calls, call: PodCall) -> None:
        """Answer a call, unless it is being answered. Raises ValueError if there are too many."""
        for number in [number for number, (_, task) in calls.items() if task.done()]:
            del calls[number]
        if call.number in calls:
            return
        if len(calls) >= MAX_CALLS:
            raise ValueError(f"job {call.job_id} has {MAX_CALLS} calls")
        calls[call.number] = call, asyncio.create_task(self._answer(call))

    async def _read_call(
        self, lines: Lines, key: Key, pod: Pod, number: str, sizes: list[int]
    ) -> PodCall:
        argv_size, environment_size, no_input, position_size, last = sizes
        if min(argv_size, environment_size, position_size) < 0 or max(sizes) > MAX_BYTES:
            raise ValueError("a call is too long")
        name, count, umask, mark = (await lines.line() or "").split()
        folder = await lines.line() or "/"
        argv = _texts(await lines.data(argv_size))[: int(count)]
        environment = dict(
            (name, value)
            for name, found, value in (
                text.partition("=") for text in _texts(await lines.data(environment_size))
            )
            if found
        )
        position = (await lines.data(position_size) or b"").decode().partition(" ")[2].strip()

        async def link() -> Lines:
            return await self._shell.open(pod, ("common", "listen"), f"give_call {int(number)}")

        return PodCall(
            job_id=key[0], attempt=key[1], number=number, name=name,
            key=f"pod-{key[0]}-{key[1]}-{mark}"[:100], argv=argv, environment=environment,
            work_dir=folder, umask=int(umask, 8), no_input=bool(no_input), token=position or None,
            next=last + 1, link=link, clock=self._clock,
        )  # fmt: skip

    async def _answer(self, call: PodCall) -> None:
        assert self.on_call is not None
        try:
            await self.on_call(call)
        except (OdcError, TimeoutError, ValueError, KeyError) as error:
            log.warning("step.call_failed", extra={"job_id": call.job_id, "why": str(error)})
            text = f"{call.name[:30]}: error: the call failed: {error}\n"
            await call.give(Piece(err=text.encode(), code=1))
        finally:
            with contextlib.suppress(OSError, OdcError):
                await call.close()


def _size(text: str, most: int = MAX_BYTES) -> int:
    """Raises ValueError: users may write anything there."""
    if not 0 <= int(text) <= most:
        raise ValueError("a message is too long")
    return int(text)


def _texts(data: bytes | None) -> list[str]:
    return [text.decode(errors="replace") for text in (data or b"").split(b"\0")][:-1]
