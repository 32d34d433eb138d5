"""Change jobs: cancel, hold, release, requeue, update; one selector or all jobs that match."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import Response

from odcd.api.answers.jobs import Outcomes
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Method, Operation
from odcd.api.job_updates import Form, UpdateJob, changes_of
from odcd.api.jobs import filters_of, parse_states
from odcd.api.selectors import read_selectors
from odcd.clock import Turns
from odcd.errors import BadRequest
from odcd.slurm.signals import signal_number

MAX_IDS = 100_000
MAX_IDS_CHARS = 2 * 1024 * 1024


class CancelOne(Form):
    signal: str | int | None = None
    """Only send this signal to running jobs: TERM, SIGUSR1, 12."""


class RequeueOne(Form):
    hold: bool = False


class Nothing(Form):
    pass


class Many(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ids: list[str] = []
    """Selectors: 7, 7_3, 7_[1-4]."""


class RequeueMany(Many):
    hold: bool = False


class CancelMany(Many):
    """ids, filters or all. A filter takes several values, separated by commas, and narrows ids."""

    user: str | None = None
    name: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    state: str | None = None
    all: bool = False
    """Every job that the caller is allowed to cancel."""
    signal: str | int | None = None


Filters = dict[str, object]


class ChangeRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._cancel_one = msgspec.json.Decoder(CancelOne)
        self._cancel_many = msgspec.json.Decoder(CancelMany)
        self._requeue_one = msgspec.json.Decoder(RequeueOne)
        self._requeue_many = msgspec.json.Decoder(RequeueMany)
        self._nothing = msgspec.json.Decoder(Nothing)
        self._many = msgspec.json.Decoder(Many)
        self._update = msgspec.json.Decoder(UpdateJob)

    def operations(self) -> tuple[Operation, ...]:
        return (
            _change("/v1/jobs/cancel", self.cancel_many, CancelMany, "Cancel or signal many jobs"),
            _change("/v1/jobs/hold", self.hold_many, Many, "Keep pending jobs from starting"),
            _change("/v1/jobs/release", self.release_many, Many, "Let held jobs start"),
            _change("/v1/jobs/requeue", self.requeue_many, RequeueMany, "Requeue running jobs"),
            _change("/v1/jobs/{id}/cancel", self.cancel_one, CancelOne, "Cancel or signal a job"),
            _change("/v1/jobs/{id}/hold", self.hold_one, Nothing, "Keep a job from starting"),
            _change("/v1/jobs/{id}/release", self.release_one, Nothing, "Let a held job start"),
            _change("/v1/jobs/{id}/requeue", self.requeue_one, RequeueOne, "Requeue a running job"),
            _change(
                "/v1/jobs/{id}/checkpoint",
                self.checkpoint_one,
                Nothing,
                "Report that a running job has written a checkpoint",
            ),
            _change("/v1/jobs/{id}", self.update, UpdateJob, "Change a job", method="PATCH"),
        )

    async def cancel_one(self, call: Call) -> Response:
        form = await call.body(self._cancel_one, empty=b"{}")
        return await self._cancel(call, _one(call), form.signal)

    async def cancel_many(self, call: Call) -> Response:
        form = await call.body(self._cancel_many)
        filters = filters_of(form)
        states = parse_states(form.state)
        if states is not None:
            filters["state"] = states
        if form.ids:
            filters |= await _many(form, call.turns())
        if not filters and not form.all:
            raise BadRequest("the request selects no jobs", "Give ids, a filter, or all: true.")
        if filters and form.all:
            raise BadRequest('"all" excludes ids and filters', "Leave out one or the other.")
        if form.all:
            filters["all"] = True
        return await self._cancel(call, filters, form.signal)

    async def _cancel(self, call: Call, filters: Filters, signal: str | int | None) -> Response:
        number = None if signal is None else signal_number(str(signal))
        executor = None if number is None else self._api.executor()
        outcomes = await self._api.store.jobs.cancel(
            call.who, filters, self._api.clock.now(), signal=number
        )
        if executor is not None and number is not None:
            rows: list[dict[str, Any]] = json.loads(outcomes)
            for outcome in rows:
                if outcome["outcome"] == "signal":
                    attempt = outcome.pop("attempt")
                    await executor.signal(
                        outcome["job_id"], attempt, signal=number, batch_only=False
                    )
                    outcome["outcome"] = "signalled"
            outcomes = json.dumps(rows)
        return self._respond(outcomes)

    async def hold_one(self, call: Call) -> Response:
        await call.body(self._nothing, empty=b"{}")
        return await self._hold(call, _one(call))

    async def hold_many(self, call: Call) -> Response:
        form = await call.body(self._many)
        return await self._hold(call, await _many(form, call.turns()))

    async def _hold(self, call: Call, filters: Filters) -> Response:
        now, limit = self._api.clock.now(), self._api.fairness.stored_bytes
        outcomes = await self._api.store.jobs.hold(call.who, filters, now, stored_bytes=limit)
        return self._respond(outcomes)

    async def release_one(self, call: Call) -> Response:
        await call.body(self._nothing, empty=b"{}")
        return await self._release(call, _one(call))

    async def release_many(self, call: Call) -> Response:
        form = await call.body(self._many)
        return await self._release(call, await _many(form, call.turns()))

    async def _release(self, call: Call, filters: Filters) -> Response:
        now, limit = self._api.clock.now(), self._api.fairness.stored_bytes
        outcomes = await self._api.store.jobs.release(call.who, filters, now, stored_bytes=limit)
        return self._respond(outcomes)

    async def requeue_one(self, call: Call) -> Response:
        form = await call.body(self._requeue_one, empty=b"{}")
        return await self._requeue(call, _one(call), form.hold)

    async def requeue_many(self, call: Call) -> Response:
        form = await call.body(self._requeue_many)
        return await self._requeue(call, await _many(form, call.turns()), form.hold)

    async def _requeue(self, call: Call, filters: Filters, hold: bool) -> Response:
        now, limit = self._api.clock.now(), self._api.fairness.stored_bytes
        outcomes = await self._api.store.jobs.requeue(
            call.who, filters, now, hold=hold, stored_bytes=limit
        )
        return self._respond(outcomes)

    async def checkpoint_one(self, call: Call) -> Response:
        """Preemption prefers the job that loses least, counted from its last checkpoint."""
        await call.body(self._nothing, empty=b"{}")
        now, limit = self._api.clock.now(), self._api.fairness.stored_bytes
        outcomes = await self._api.store.jobs.checkpoint(
            call.who, _one(call), now, stored_bytes=limit
        )
        return Response(f'{{"jobs":{outcomes}}}', media_type=JSON)

    async def update(self, call: Call) -> Response:
        form = await call.body(self._update)
        now = self._api.clock.now()
        changes = changes_of(form, call.who.operator, now)
        outcomes = await self._api.store.jobs.update(
            call.who, _one(call), now, changes, stored_bytes=self._api.fairness.stored_bytes
        )
        return self._respond(outcomes)

    def _respond(self, outcomes: str) -> Response:
        self._api.wake()
        return Response(f'{{"jobs":{outcomes}}}', media_type=JSON)


def _change(
    path: str,
    serve: Callable[[Call], Awaitable[Response]],
    body: type[msgspec.Struct],
    summary: str,
    method: Method = "POST",
) -> Operation:
    return Operation(
        method=method,
        path=path,
        tag="jobs",
        serve=serve,
        body=body,
        answers={200: (Outcomes,)},
        summary=summary,
    )


def _one(call: Call) -> Filters:
    return {"ids": [call.selector()]}


async def _many(form: Many, turns: Turns) -> Filters:
    """Raises BadRequest, TooLarge."""
    if not form.ids:
        raise BadRequest("the request selects no jobs", "Give ids.")
    if len(form.ids) > MAX_IDS:
        raise BadRequest(f"{len(form.ids)} ids are more than {MAX_IDS}", "Send several requests.")
    chars = sum(map(len, form.ids))
    if chars > MAX_IDS_CHARS:
        raise BadRequest(
            f"the ids have {chars} characters together, more than {MAX_IDS_CHARS}",
            "Send several requests.",
        )
    return {"ids": await read_selectors(form.ids, turns)}
