"""Steps on this machine: started and watched by the runner."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.environment import job_variables, member_variables
from odcd.executor.file_threads import FileThreads
from odcd.executor.link import RunnerRefused, ask_for_descriptor
from odcd.executor.step_tasks import StepOrder
from odcd.executor.steps import encode_step
from odcd.records.dispatch import Dispatch, Member
from odcd.records.step import StepKey
from odcd.runner import protocol, terminal
from odcd.runner.steps.journal import HEAD

READ_BYTES = 256 * 1024
MAX_FRAMES = 2000
"""Of one read; each takes microseconds of the event loop."""
OPEN_WAIT_S = 10.0
LOOK_S = 0.005
ANSWER_S = 10.0
OFFSET = struct.Struct(">Q")

Ask = Callable[..., Awaitable[dict[str, Any]]]


class LocalSteps:
    """Implements odcd.executor.base.Steps."""

    shares_files = True
    has_terminals = True

    def __init__(
        self, run_dir: Path, ask: Ask, clock: Clock, *, cluster: str, master_addr: str,
        gpu_ids_of: Callable[[Member], Sequence[int]], term: Callable[[], int | None],
    ) -> None:  # fmt: skip
        self._run_dir = run_dir
        self._ask = ask
        self._clock = clock
        self._cluster = cluster
        self._master_addr = master_addr
        self._gpu_ids_of = gpu_ids_of
        self._term = term
        self._threads = FileThreads()

    @property
    def term(self) -> int:
        term = self._term()
        if term is None:
            raise RunnerDown(
                "this daemon does not lead, so it starts no steps", "Try again in a moment."
            )
        return term

    def variables(self, dispatch: Dispatch, environment: Mapping[str, str]) -> dict[str, str]:
        first = dispatch.members[0]
        return {
            **job_variables(
                dispatch, environment, cluster=self._cluster, master_addr=self._master_addr
            ),
            **member_variables(dispatch, first, self._gpu_ids_of(first)),
        }

    def answer_calls(self, on_call: Callable[[Any], Awaitable[None]]) -> None:
        """Does nothing: jobs reach the daemon's socket."""

    def nodes_of(self, dispatch: Dispatch, hosts: Sequence[str]) -> list[str]:
        return list(hosts)

    async def start(self, order: StepOrder) -> None:
        encoded = await asyncio.to_thread(self._encode, order)
        try:
            await self._ask("start_step", order=encoded)
        except RunnerRefused as error:
            raise WrongState(f"the step cannot start: {error.reason}") from error

    def _encode(self, order: StepOrder) -> bytes:
        """As JSON, for a thread: a step may have thousands of tasks. Raises BadRequest."""
        return protocol.encode_part(encode_step(
            order, cluster=self._cluster, master_addr=self._master_addr,
            gpu_ids_of=self._gpu_ids_of, cpus=sorted(os.sched_getaffinity(0)),
        ))  # fmt: skip

    async def stop(self, key: StepKey, signal: int, grace_s: float) -> None:
        job, attempt, step = key
        await self._ask(
            "stop_step", job=job, attempt=attempt, step=step, signal=signal, grace_s=grace_s
        )

    async def signal(self, key: StepKey, signal: int) -> None:
        job, attempt, step = key
        await self._ask("signal_step", job=job, attempt=attempt, step=step, signal=signal)

    async def find(self, key: StepKey) -> tuple[bool, dict[str, Any] | None]:
        job, attempt, step = key
        answer = await self._ask("find_step", job=job, attempt=attempt, step=step)
        return answer["known"], answer["end"]

    async def list(self, keys: Sequence[StepKey]) -> dict[StepKey, dict[str, Any] | None]:
        answer = await self._ask("list_steps", keys=[list(key) for key in keys])
        return {(s["job"], s["attempt"], s["step"]): s["end"] for s in answer["steps"]}

    async def acknowledge(self, key: StepKey, *, forget: bool) -> None:
        job, attempt, step = key
        await self._ask("acknowledge_step", job=job, attempt=attempt, step=step, forget=forget)

    async def release(self, job_id: int, attempt: int, exit_code: int) -> None:
        await self._ask("release", job=job_id, attempt=attempt, exit_code=exit_code)

    async def open(self, key: StepKey, uid: int, *, owner: bool) -> LocalStepStream:
        job, attempt, step = key
        fields = {"job": job, "attempt": attempt, "step": step}
        journal = await self._descriptor("open_journal", fields, uid)
        if journal is None:
            raise WrongState(f"the output of step {job}.{step} is gone")
        channel = None
        try:
            control = await self._descriptor("attach_step", fields, uid)
            if control is not None:
                channel = await Channel.open(control, owner=owner)
        except BaseException:
            os.close(journal)
            raise
        return LocalStepStream(journal, channel)

    async def connect(self, key: StepKey, uid: int) -> Channel | None:
        """A connection for input and signals; None: the step has ended."""
        job, attempt, step = key
        fields = {"job": job, "attempt": attempt, "step": step}
        control = await self._descriptor("attach_step", fields, uid)
        return None if control is None else await Channel.open(control, owner=True)

    async def _descriptor(self, op: str, fields: dict[str, Any], uid: int) -> int | None:
        """None: there is no such step, or it has ended."""
        deadline = self._clock.monotonic() + OPEN_WAIT_S
        while True:
            try:
                work = partial(ask_for_descriptor, self._run_dir, op, fields)
                return await self._threads.run(uid, work, drop=os.close)
            except RunnerRefused as error:
                if error.kind == protocol.NOT_FOUND:
                    return None
                if error.kind != protocol.NOT_READY or self._clock.monotonic() > deadline:
                    raise WrongState(error.reason, "Try again in a moment.") from error
                await self._clock.sleep(LOOK_S)


class Channel:
    """A connection to a step's supervisor; odcd.runner.steps.clients describes the frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._received = bytearray()
        self.hello: dict[str, Any] = {}

    @classmethod
    async def open(cls, fd: int, *, owner: bool) -> Channel | None:
        sock = socket.socket(fileno=fd)
        sock.setblocking(False)
        channel = cls(*await asyncio.open_unix_connection(sock=sock))
        await channel.send(b"h", json.dumps({"owner": owner}).encode())
        kind = b""
        while kind != b"h":
            taken = await channel.read()
            if taken is None:
                channel.close()
                return None
            kind, data = taken
            if kind == b"h":
                channel.hello = json.loads(data)
        return channel

    async def send(self, kind: bytes, data: bytes) -> bool:
        """False: the step has ended."""
        try:
            self._writer.write(terminal.frame(kind, data))
            await self._writer.drain()
        except (OSError, RuntimeError):
            return False
        return True

    async def read(self) -> tuple[bytes, bytes] | None:
        """The next frame; None: the step has ended."""
        while True:
            taken = terminal.take_frame(self._received)
            if taken is not None:
                return taken
            try:
                data = await self._reader.read(65536)
            except OSError:
                data = b""
            if not data:
                return None
            self._received += data

    def close(self) -> None:
        self._writer.close()


class LocalStepStream:
    """The journal of one step, followed from any offset."""

    has_marks = False

    def __init__(self, journal: int, channel: Channel | None) -> None:
        self._fd = journal
        self.channel = channel

    @property
    def begin(self) -> int:
        return int(self.channel.hello.get("acknowledged", 0)) if self.channel else 0

    async def read(self, offset: int, marks: Mapping[str, int]) -> list[tuple[bytes, int, bytes]]:
        """Whole frames from the offset on; none: the step has ended, and this was all. Waits
        until there are some."""
        while True:
            found = self._frames(offset)
            if found:
                return found
            if self.channel is None:
                return []
            taken = await self.channel.read()
            if taken is None:
                self.channel.close()
                self.channel = None

    def _frames(self, offset: int) -> list[tuple[bytes, int, bytes]]:
        data = os.pread(self._fd, READ_BYTES, offset)
        found: list[tuple[bytes, int, bytes]] = []
        at = 0
        while at + HEAD.size <= len(data) and len(found) < MAX_FRAMES:
            kind, task, length = HEAD.unpack_from(data, at)
            end = at + HEAD.size + length
            if kind == b"\0":
                raise WrongState("the output was released before it was read")
            if end > len(data):
                break
            found.append((kind, task, data[at + HEAD.size : end]))
            at = end
        return found

    async def acknowledge(self, offset: int) -> None:
        if self.channel is not None:
            await self.channel.send(b"a", OFFSET.pack(offset))

    def close(self) -> None:
        os.close(self._fd)
        if self.channel is not None:
            self.channel.close()
