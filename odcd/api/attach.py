"""/v1/jobs/{id}/attach: the terminal of a job, over a WebSocket.

Binary frames carry the terminal's input and output. The client sends the text frame
{"resize": [rows, cols]} with the size of its window; the server's last frame is the text
{"exit_code": …, "signal": …}.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import ExitStack
from typing import Annotated, Any, Protocol, cast

import msgspec
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from odcd.api.http.audited import WHO
from odcd.api.http.context import Api
from odcd.api.http.credentials import ENDED, WHY_ENDED
from odcd.api.http.denial import deny
from odcd.api.http.identity import key_of
from odcd.api.http.problems import problem_of, unexpected
from odcd.api.http.routing import Identifies
from odcd.database.slots import ask_as
from odcd.errors import BadRequest, OdcError, TooManyRequests, WrongState
from odcd.records.dispatch import Dispatch
from odcd.records.job import Identity, Selector
from odcd.slurm.lists import parse_selector

log = logging.getLogger(__name__)

PATH = "/v1/jobs/{id}/attach"
END_WAIT_S = 60.0
"""Maximum wait for the job's end after the terminal closed, to report its exit code."""
TRY_AGAIN_LATER = 1013
WENT_AWAY = 1012

Side = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
"""A terminal without a window reports its size as 0."""


class Resize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resize: tuple[Side, Side]


class Terminal(Protocol):
    async def read(self) -> bytes:
        """The job's output; b"" at its end."""
        ...

    async def write(self, data: bytes) -> None: ...
    async def resize(self, rows: int, cols: int) -> None: ...
    async def close(self) -> None: ...


class Attaching(Protocol):
    """An executor that can open a job's terminal."""

    def attach(self, dispatch: Dispatch, rank: int) -> Awaitable[Terminal]: ...


class AttachEndpoint:
    def __init__(self, api: Api, identifies: Identifies) -> None:
        self._api = api
        self._identifies = identifies
        self._resize = msgspec.json.Decoder(Resize)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        with ExitStack() as held:
            await self._serve(socket, held)

    async def _serve(self, socket: WebSocket, held: ExitStack) -> None:
        try:
            who = socket.scope[WHO] = await self._identifies.identify(socket.scope)
            self._api.fairness.request(who)
            ask_as(who.user, PATH, operator=who.operator)
            held.enter_context(self._api.fairness.socket(who))
            job_id, terminal = await self._open(socket, who)
        except OdcError as error:
            if isinstance(error, TooManyRequests):
                self._api.metrics.limited(error.limit)
            await deny(socket, problem_of(error))
            return
        except Exception as error:
            await deny(socket, unexpected(error, "GET", socket.scope["path"]))
            return
        ended = self._api.credentials.watch(key_of(socket.scope), lasting=True)
        try:
            await socket.accept()
            await self._bridge(socket, job_id, terminal, ended)
        except (RuntimeError, OSError, WebSocketDisconnect):
            log.debug("attach.gone", extra={"job_id": job_id})
        finally:
            await terminal.close()

    async def _open(self, socket: WebSocket, who: Identity) -> tuple[int, Terminal]:
        job_id = await self._api.own_job(who, parse_selector(socket.path_params["id"]))
        dispatch = await self._api.store.dispatches.get(job_id)
        if dispatch is None:
            raise WrongState(f"job {job_id} has not started", "Wait until the job runs.")
        if not dispatch.options.get("pty"):
            raise WrongState(
                f"job {job_id} has no terminal",
                "Only reservations and jobs of `odcctl run --pty` have a terminal.",
            )
        executor = self._api.executor()
        return job_id, await cast(Attaching, executor).attach(dispatch, 0)

    async def _bridge(
        self, socket: WebSocket, job_id: int, terminal: Terminal, out: asyncio.Event
    ) -> None:
        """Copy in both directions until the job's side ends, the client disconnects, the daemon
        stops, or out is set because the client's key has ended."""
        ended = False

        async def show() -> None:
            nonlocal ended
            while data := await terminal.read():
                await socket.send_bytes(data)
            ended = True

        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(_quietly(show()), name=f"attach-show-{job_id}"),
                group.create_task(
                    _quietly(self._type(socket, terminal)), name=f"attach-type-{job_id}"
                ),
                group.create_task(self._api.events.closing.wait(), name=f"attach-stop-{job_id}"),
                group.create_task(out.wait(), name=f"attach-out-{job_id}"),
            )
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
        try:
            if out.is_set():
                await socket.close(ENDED, WHY_ENDED)
            elif ended:
                await socket.send_text(json.dumps(await self._end_of(job_id)))
                await socket.close()
            else:
                await socket.close(
                    WENT_AWAY if self._api.events.closing.is_set() else TRY_AGAIN_LATER
                )
        except (RuntimeError, OSError, WebSocketDisconnect):
            log.debug("attach.gone", extra={"job_id": job_id})

    async def _type(self, socket: WebSocket, terminal: Terminal) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("bytes"):
                await terminal.write(message["bytes"])
            elif message.get("text"):
                try:
                    size = self._resize.decode(message["text"]).resize
                except msgspec.DecodeError as error:
                    raise BadRequest(f"a text frame must be a resize message: {error}") from None
                if all(size):
                    await terminal.resize(*size)

    async def _end_of(self, job_id: int) -> dict[str, Any]:
        rows = await self._api.events.ended(Selector(job_id=job_id), END_WAIT_S)
        job: dict[str, Any] = json.loads(rows)[0] if rows else {}
        return {"exit_code": job.get("exit_code"), "signal": job.get("signal")}


async def _quietly(work: Awaitable[None]) -> None:
    """If one side fails, the session ends; the job continues."""
    try:
        await work
    except (OdcError, OSError, RuntimeError, WebSocketDisconnect) as error:
        log.info("attach.ended", extra={"why": str(error)})
