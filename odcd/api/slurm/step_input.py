"""/v1/slurm-steps/…: input, signals and acknowledgements for a running step."""

from __future__ import annotations

import asyncio
import signal as signals
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.slurm.allocations import release
from odcd.api.slurm.srun import NOT_HERE
from odcd.errors import BadRequest, WrongState
from odcd.executor.base import StepChannel
from odcd.executor.local_steps import OFFSET
from odcd.records.job import Selector
from odcd.records.step import StepKey
from odcd.slurm.commands.srun import KILL_WAIT_S
from odcd.slurm.lists import is_number

ACCEPT_S = 20.0
"""How long the answer waits until the tasks have room for more input."""
MAX_INPUT_BYTES = 512 * 1024
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Side = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class StepInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """input: where in the standard input data begins; empty data is its end. acknowledged: what
    the client has printed, as an offset. rows, columns: the terminal's size. abort: end the
    step."""

    input: Count | None = None
    data: Annotated[bytes, msgspec.Meta(max_length=MAX_INPUT_BYTES)] = b""
    acknowledged: Count | None = None
    signal: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    rows: Side | None = None
    columns: Side | None = None
    abort: bool = False


class StepState(msgspec.Struct, frozen=True, kw_only=True):
    """live: whether the step still runs. input: how much of the input has arrived, if it takes
    more."""

    live: bool
    input: int | None = None


class Released(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The exit code that the job gets."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0


class StepInputRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._body = msgspec.json.Decoder(StepInput)
        self._released = msgspec.json.Decoder(Released)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/slurm-steps/{job}/{attempt}/{step}",
                tag="slurm",
                serve=self.give,
                body=StepInput,
                answers={200: (StepState,)},
                summary="Send input, a signal or the size of the window to a running step",
            ),
            Operation(
                method="POST",
                path="/v1/slurm-allocations/{job}/release",
                tag="slurm",
                serve=self.release,
                body=Released,
                answers={204: ()},
                summary="Release the nodes of a job that salloc made",
            ),
        )

    async def give(self, call: Call) -> Response:
        key = await self._key(call)
        request = await call.body(self._body)
        state = await send_to_step(self._api, key, call.who.uid, request)
        return Response(msgspec.json.encode(state), media_type=JSON)

    async def release(self, call: Call) -> Response:
        job_id = await self._api.own_job(call.who, Selector(job_id=_number(call, "job")))
        request = await call.body(self._released)
        await release(self._api, job_id, request.exit_code)
        return Response(status_code=204)

    async def _key(self, call: Call) -> StepKey:
        job, attempt, step = (_number(call, name) for name in ("job", "attempt", "step"))
        return await self._api.own_job(call.who, Selector(job_id=job)), attempt, step


def _number(call: Call, name: str) -> int:
    text = call.part(name)
    if not is_number(text, 18):
        raise BadRequest(f'"{text[:30]}" is not a number', "Use the path that srun was given.")
    return int(text)


async def send_to_step(api: Api, key: StepKey, uid: int, request: StepInput) -> StepState:
    steps = api.executor().steps
    if steps is None:
        raise WrongState(NOT_HERE)
    if request.abort:
        await steps.stop(key, signals.SIGTERM, KILL_WAIT_S)
    if request.signal is not None:
        await steps.signal(key, request.signal)
    state = StepState(live=True)
    if {request.input, request.acknowledged, request.rows} != {None}:
        channel = await steps.connect(key, uid)
        if channel is None:
            state = StepState(live=False)
        else:
            try:
                state = await _send(channel, request)
            finally:
                channel.close()
    return state


async def _send(channel: StepChannel, request: StepInput) -> StepState:
    if request.acknowledged is not None:
        await channel.send(b"a", OFFSET.pack(request.acknowledged))
    if request.rows and request.columns:
        size = request.rows.to_bytes(2) + request.columns.to_bytes(2)
        await channel.send(b"r", size)
    if request.input is None:
        return StepState(live=True)
    if not await channel.send(b"i", OFFSET.pack(request.input) + request.data):
        return StepState(live=False)
    end = request.input + len(request.data)
    hello = channel.hello
    if not request.data or (hello["input"] >= end and hello.get("accepts", True)):
        return StepState(live=True, input=end)
    try:
        async with asyncio.timeout(ACCEPT_S):
            while (taken := await channel.read()) is not None:
                if taken[0] == b"g" and OFFSET.unpack(taken[1])[0] >= end:
                    return StepState(live=True, input=end)
    except TimeoutError:
        return StepState(live=True)
    return StepState(live=False)
