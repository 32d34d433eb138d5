"""/v1/reservations/{id}/ssh and …/jupyter: two ports of a dev server, over a WebSocket.

Binary frames are the bytes, in both directions. The text frame {"eof": true} means that its
sender has finished; the other direction continues. The close code gives the error, if any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

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
from odcd.clock import Clock
from odcd.database.slots import ask_as
from odcd.errors import BadRequest, NotOwner, OdcError, TooManyRequests, UnknownJob, WrongState
from odcd.executor.base import ByteStream
from odcd.records.job import Identity
from odcd.slurm.lists import parse_selector

log = logging.getLogger(__name__)

PATH = "/v1/reservations/{{id}}/{}"
PORTS = {"ssh": 2222, "jupyter": 8888}
LINGER_S = 10.0
"""How long one direction may be silent after the other has ended."""
PIECE_BYTES = 65_536
MAX_REASON_BYTES = 123
"""The maximum size of the reason in a close frame."""

DONE, WENT_AWAY = 1000, 1012
CODES: tuple[tuple[type[OdcError], int], ...] = (
    (UnknownJob, 4004),
    (NotOwner, 4403),
    (WrongState, 4409),
    (BadRequest, 4400),
)
INTERNAL = 4500

Ending = tuple[int, str]
"""The close code and its reason."""


class Eof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    eof: bool


EOF_FRAME = msgspec.json.encode(Eof(eof=True)).decode()


class TunnelEndpoint:
    def __init__(self, api: Api, identifies: Identifies, way: str) -> None:
        """way: a key of PORTS."""
        self._api = api
        self._identifies = identifies
        self._way = way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        with ExitStack() as held:
            try:
                who = scope[WHO] = await self._identifies.identify(scope)
                self._api.fairness.request(who)
                ask_as(who.user, PATH.format(self._way), operator=who.operator)
                held.enter_context(self._api.fairness.socket(who))
            except OdcError as error:
                if isinstance(error, TooManyRequests):
                    self._api.metrics.limited(error.limit)
                await deny(socket, problem_of(error))
                return
            await self._serve(socket, who)

    async def _serve(self, socket: WebSocket, who: Identity) -> None:
        try:
            job_id, rank = self._member(socket)
            stream = await self._open(who, job_id, rank)
        except OdcError as error:
            await _refuse(socket, _ending(error))
            return
        except Exception as error:
            unexpected(error, "GET", socket.scope["path"])
            await _refuse(socket, (INTERNAL, "internal error"))
            return
        fields = {"job_id": job_id, "rank": rank, "user": who.user, "way": self._way}
        log.info("tunnel.opened", extra=fields)
        bridge = _Bridge(socket, stream, self._api.clock)
        ended = self._api.credentials.watch(key_of(socket.scope), lasting=True)
        try:
            await socket.accept()
            await bridge.run(self._api.events.closing, ended)
        except (RuntimeError, OSError, WebSocketDisconnect) as error:
            log.debug("tunnel.gone", extra={**fields, "why": str(error)})
        finally:
            await stream.close()
            log.info("tunnel.closed", extra={**fields, "up": bridge.up, "down": bridge.down})

    def _member(self, socket: WebSocket) -> tuple[int, int]:
        """Raises BadRequest."""
        selector = parse_selector(socket.path_params["id"])
        if selector.tasks is not None:
            raise BadRequest("a reservation has no tasks", "Give its number.")
        given = socket.query_params.get("rank", "0")
        if not (given.isascii() and given.isdecimal() and len(given) < 7):
            raise BadRequest(f'"{given[:20]}" is not a rank', "Members are numbered from 0.")
        return selector.job_id, int(given)

    async def _open(self, who: Identity, job_id: int, rank: int) -> ByteStream:
        attempt = await self._api.store.reservations.enter(who, job_id, rank, self._way)
        port = PORTS[self._way]
        return await self._api.executor().dev_servers.open_stream(job_id, attempt, rank, port)


class _Bridge:
    """Copies bytes between a WebSocket and a stream, no faster than the slower side accepts
    them."""

    def __init__(self, socket: WebSocket, stream: ByteStream, clock: Clock) -> None:
        self._socket = socket
        self._stream = stream
        self._clock = clock
        self._half = asyncio.Event()
        self._client_ended = False
        self.up = 0
        """Bytes sent to the dev server; down: bytes received from it."""
        self.down = 0

    async def run(self, closing: asyncio.Event, out: asyncio.Event) -> None:
        """Run until both directions end, one side disconnects, the daemon stops, or out is set
        because the key has ended."""
        async with asyncio.TaskGroup() as group:
            sides = (self._carry_up, self._carry_down, self._linger)
            tasks = {group.create_task(_guarded(side), name=side.__name__) for side in sides}
            stopping = group.create_task(closing.wait(), name="tunnel-stop")
            leaving = group.create_task(out.wait(), name="tunnel-out")
            ending: Ending | None = None
            waiting: set[asyncio.Task[Ending | None]] = tasks
            while ending is None and waiting and not (stopping.done() or leaving.done()):
                await asyncio.wait(
                    {*waiting, stopping, leaving}, return_when=asyncio.FIRST_COMPLETED
                )
                over = {task for task in waiting if task.done()}
                waiting = waiting - over
                ending = next((end for task in over if (end := task.result())), None)
            if leaving.done():
                ending = ENDED, WHY_ENDED
            for task in (*tasks, stopping, leaving):
                task.cancel()
        code, reason = ending or (WENT_AWAY, "the daemon is stopping: connect again")
        await self._socket.close(code, _cut(reason))

    async def _carry_up(self) -> Ending | None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return DONE, ""
            if data := message.get("bytes"):
                if not self._client_ended:
                    await self._stream.write(data)
                    self.up += len(data)
            elif message.get("text") is not None:
                try:
                    msgspec.json.decode(message["text"], type=Eof)
                except msgspec.MsgspecError as error:
                    raise BadRequest(f"a text frame is not an eof: {error}") from None
                self._client_ended = True
                await self._stream.write_eof()
                if self._half.is_set():
                    return DONE, ""
                self._half.set()

    async def _carry_down(self) -> Ending | None:
        while data := await self._stream.read():
            for at in range(0, len(data), PIECE_BYTES):
                await self._socket.send_bytes(data[at : at + PIECE_BYTES])
            self.down += len(data)
        await self._socket.send_text(EOF_FRAME)
        if self._client_ended:
            return DONE, ""
        self._half.set()
        return None

    async def _linger(self) -> Ending | None:
        await self._half.wait()
        moved = -1
        while moved != self.up + self.down:
            moved = self.up + self.down
            await self._clock.sleep(LINGER_S)
        return DONE, ""


async def _guarded(side: Callable[[], Awaitable[Ending | None]]) -> Ending | None:
    """If a side fails, the session ends."""
    try:
        return await side()
    except OdcError as error:
        log.info("tunnel.broke", extra={"why": error.message})
        return _ending(error)
    except (RuntimeError, OSError, WebSocketDisconnect) as error:
        log.info("tunnel.broke", extra={"why": str(error) or type(error).__name__})
        return INTERNAL, "the connection to the dev server broke"


def _ending(error: OdcError) -> Ending:
    code = next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL)
    return code, error.message


async def _refuse(socket: WebSocket, ending: Ending) -> None:
    """Accept, then close: a rejected handshake could not carry odc's close codes."""
    code, reason = ending
    try:
        await socket.accept()
        await socket.close(code, _cut(reason))
    except (RuntimeError, OSError, WebSocketDisconnect):
        log.debug("tunnel.gone", extra={"why": reason})


def _cut(reason: str) -> str:
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
