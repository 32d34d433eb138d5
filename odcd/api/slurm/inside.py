"""Answer the calls of Slurm's commands in pods: as the API would answer their user's requests."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request

from odcd.api.http.context import Api
from odcd.api.http.routing import Call
from odcd.api.slurm.remote import Finished, NeedFile, Remote, RemoteCall, split_frames
from odcd.api.slurm.routes import answer_of
from odcd.api.slurm.step_input import StepInput, send_to_step
from odcd.api.slurm.table import COMMANDS
from odcd.database.slots import ask_as
from odcd.errors import BadRequest, OdcError, Unavailable
from odcd.executor.kubernetes.launch import COMMANDS as ALLOWED
from odcd.executor.kubernetes.steps.calls import Message, Piece, PodCall
from odcd.records.job import Identity
from odcd.records.step import StepKey

AGAIN_S = 0.5


class InsideCalls:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def answer(self, call: PodCall) -> None:
        """Runs until the command is over, or its client is gone. Raises TooManyRequests."""
        if call.name not in ALLOWED or call.name not in COMMANDS:
            await call.give(Piece(err=f"{call.name[:30]}: not available\n".encode(), code=1))
            return
        dispatch = await self._api.store.dispatches.get(call.job_id)
        if dispatch is None or dispatch.attempt != call.attempt:
            return
        # The pod proves only which job calls, so the call has the rights of its user only.
        who = Identity(user=dispatch.user, uid=dispatch.uid, gid=dispatch.gid, operator=False)
        self._api.fairness.request(who)
        ask_as(who.user, "POST /v1/slurm/{command}")
        with self._api.fairness.stream(who):
            await _Conversation(self._api, call, who).run()


class _Conversation:
    def __init__(self, api: Api, call: PodCall, who: Identity) -> None:
        self._api = api
        self._call = call
        self._who = who
        self._files: dict[str, str] = {}
        self._needed: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._token = call.token
        self._step: StepKey | None = None
        self._early: list[Message] = []

    async def run(self) -> None:
        talk = asyncio.create_task(self._talk())
        hear = asyncio.create_task(self._hear())
        try:
            await asyncio.wait((talk, hear), return_when=asyncio.FIRST_COMPLETED)
            if talk.done():
                talk.result()
            else:
                hear.result()
        finally:
            for task in (talk, hear):
                task.cancel()
            await asyncio.gather(talk, hear, return_exceptions=True)

    async def _talk(self) -> None:
        while True:
            try:
                if await self._once():
                    return
            except Unavailable:
                pass
            await self._api.clock.sleep(AGAIN_S)

    async def _once(self) -> bool:
        """Whether the command is over."""
        try:
            answer = await answer_of(self._remote())
        except NeedFile as needed:
            await self._call.give(Piece(need=f"{needed.path}\n".encode()))
            self._files[needed.path] = (await self._needed.get()).decode(errors="replace")
            return await self._once()
        if isinstance(answer, Finished):
            await self._call.give(
                Piece(out=answer.out.encode(), err=answer.err.encode(), code=answer.code)
            )
            return True
        return await self._copy(answer)

    def _remote(self) -> Remote:
        call = self._call
        environment = {"SLURM_JOB_ID": str(call.job_id), **call.environment}
        fields = {
            "argv": call.argv, "work_dir": call.work_dir, "environment": environment,
            "umask": call.umask, "no_input": call.no_input, "token": self._token,
            "files": dict(self._files),
        }  # fmt: skip
        try:
            request = msgspec.convert(fields, RemoteCall)
        except msgspec.ValidationError as error:
            raise BadRequest(f"the call is not valid: {error}") from None
        key = f"{call.key}-{len(self._files)}"
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": "/", "query_string": b"",
            "headers": [(b"idempotency-key", key.encode())],
        }  # fmt: skip
        return Remote(
            name=call.name, request=request, call=Call(Request(scope, _connected), self._who),
            api=self._api, inside=call.job_id,
        )  # fmt: skip

    async def _copy(self, frames: AsyncGenerator[bytes]) -> bool:
        try:
            async for part in frames:
                piece = self._piece(part)
                if piece is None:
                    continue
                if not await self._call.give(piece):
                    return True
                if piece.position:
                    self._token = piece.position.decode()
                if piece.code is not None:
                    return True
        finally:
            await frames.aclose()
        return False

    def _piece(self, part: bytes) -> Piece | None:
        """None: there is nothing for the client."""
        out, err, position = bytearray(), bytearray(), b""
        code: int | None = None
        wants = False
        for kind, content in split_frames(part):
            if kind == b"o":
                out += content
            elif kind == b"e":
                err += content
            elif kind == b"p":
                position = content
            elif kind == b"s":
                wants = self._begin(content.decode())
            elif kind == b"x":
                code = int(content)
        if not (out or err or wants or position) and code is None:
            return None
        position = position or (self._token or "").encode()
        return Piece(
            out=bytes(out), err=bytes(err), position=position, code=code, wants_input=wants
        )

    def _begin(self, lines: str) -> bool:
        """The step runs. Returns whether it takes input."""
        path, _, _, flags = lines.split("\n")
        job, attempt, step = map(int, path.split("/")[-3:])
        self._step = job, attempt, step
        return "i" in flags

    # -- the client's messages --------------------------------------------------------------------

    async def _hear(self) -> None:
        """Returns when the client is gone."""
        while True:
            message = await self._call.messages.get()
            if message.kind == "gone":
                return
            if message.kind == "file":
                if self._needed.empty():
                    self._needed.put_nowait(message.data)
                continue
            self._early.append(message)
            while self._step is not None and self._early:
                # Users may write anything there.
                with contextlib.suppress(OdcError, KeyError):
                    await self._pass_on(self._early.pop(0), self._step)

    async def _pass_on(self, message: Message, key: StepKey) -> None:
        if message.kind == "signal":
            number = int(signal.Signals[f"SIG{message.text}"])
            abort = number == signal.SIGINT
            request = StepInput(signal=None if abort else number, abort=abort)
        else:
            request = StepInput(input=message.begin, data=message.data)
        while True:
            try:
                state = await send_to_step(self._api, key, self._who.uid, request)
            except Unavailable:
                await self._api.clock.sleep(AGAIN_S)
                continue
            if not state.live or request.input is None or state.input is not None:
                return


async def _connected() -> dict[str, Any]:
    """Nothing more arrives: the client of the request is this daemon."""
    await asyncio.Event().wait()
    return msgspec.json.decode(b"{}")
