"""Change jobs: cancel, hold, release, requeue, update; one selector or all jobs that match."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from odcd.api.answers.jobs import Outcomes
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Method, Operation
from odcd.api.jobs import filters_of, parse_states
from odcd.api.selectors import read_selectors
from odcd.clock import Turns
from odcd.errors import BadRequest, NotOwner
from odcd.jobs.submission import dependency_request
from odcd.records.fields import UNLIMITED_S, Comment, Name, Seconds
from odcd.slurm.signals import signal_number
from odcd.slurm.times import parse_duration, parse_moment, zone_of

MAX_IDS = 100_000
MAX_IDS_CHARS = 2 * 1024 * 1024
Throttle = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Nice = Annotated[int, msgspec.Meta(ge=-2_147_483_645, le=2_147_483_645)]


Partitions = Annotated[list[Name], msgspec.Meta(min_length=1)]
Dependency = Annotated[str, msgspec.Meta(max_length=200_000)]
Unset = msgspec.UnsetType
UNSET = msgspec.UNSET


class _Form(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class CancelOne(_Form):
    signal: str | int | None = None
    """Only send this signal to running jobs: TERM, SIGUSR1, 12."""


class RequeueOne(_Form):
    hold: bool = False


class Nothing(_Form):
    pass


class Many(_Form):
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


class UpdateJob(_Form):
    """Only the given fields change. null removes the limit, the comment and so on."""

    time_limit_s: Seconds | Unset | None = UNSET
    time_limit: str | Unset = UNSET
    """Instead of time_limit_s, in sbatch's format: 30, 1-12:00:00, UNLIMITED."""
    nice: Nice | Unset = UNSET
    partitions: Partitions | Unset = UNSET
    name: Name | Unset = UNSET
    comment: Comment | Unset | None = UNSET
    dependency: Dependency | Unset | None = UNSET
    array_throttle: Throttle | Unset | None = UNSET
    booking: Name | Unset | None = UNSET
    """Run inside this booking; null: outside any booking."""
    account: Name | Unset = UNSET
    qos: Name | Unset = UNSET
    begin_at: datetime | Unset | None = UNSET
    deadline_at: datetime | Unset | None = UNSET
    begin: str | Unset = UNSET
    deadline: str | Unset = UNSET
    """Instead of begin_at and deadline_at, in sbatch's format: now+1hour, tomorrow 16:00."""
    time_zone: str | None = None
    """The caller's TZ, which begin and deadline refer to."""


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
            told: list[dict[str, Any]] = json.loads(outcomes)
            for outcome in told:
                if outcome["outcome"] == "signal":
                    attempt = outcome.pop("attempt")
                    await executor.signal(
                        outcome["job_id"], attempt, signal=number, batch_only=False
                    )
                    outcome["outcome"] = "signalled"
            outcomes = json.dumps(told)
        return self._told(outcomes)

    async def hold_one(self, call: Call) -> Response:
        await call.body(self._nothing, empty=b"{}")
        return await self._hold(call, _one(call))

    async def hold_many(self, call: Call) -> Response:
        form = await call.body(self._many)
        return await self._hold(call, await _many(form, call.turns()))

    async def _hold(self, call: Call, filters: Filters) -> Response:
        return self._told(await self._api.store.jobs.hold(call.who, filters, self._api.clock.now()))

    async def release_one(self, call: Call) -> Response:
        await call.body(self._nothing, empty=b"{}")
        return await self._release(call, _one(call))

    async def release_many(self, call: Call) -> Response:
        form = await call.body(self._many)
        return await self._release(call, await _many(form, call.turns()))

    async def _release(self, call: Call, filters: Filters) -> Response:
        return self._told(
            await self._api.store.jobs.release(call.who, filters, self._api.clock.now())
        )

    async def requeue_one(self, call: Call) -> Response:
        form = await call.body(self._requeue_one, empty=b"{}")
        return await self._requeue(call, _one(call), form.hold)

    async def requeue_many(self, call: Call) -> Response:
        form = await call.body(self._requeue_many)
        return await self._requeue(call, await _many(form, call.turns()), form.hold)

    async def _requeue(self, call: Call, filters: Filters, hold: bool) -> Response:
        now = self._api.clock.now()
        return self._told(await self._api.store.jobs.requeue(call.who, filters, now, hold=hold))

    async def checkpoint_one(self, call: Call) -> Response:
        """Preemption prefers the job that loses least, counted from its last checkpoint."""
        await call.body(self._nothing, empty=b"{}")
        now = self._api.clock.now()
        outcomes = await self._api.store.jobs.checkpoint(call.who, _one(call), now)
        return Response(f'{{"jobs":{outcomes}}}', media_type=JSON)

    async def update(self, call: Call) -> Response:
        form = await call.body(self._update)
        now = self._api.clock.now()
        changes = _changes(form, call.who.operator, now)
        return self._told(await self._api.store.jobs.update(call.who, _one(call), now, changes))

    def _told(self, outcomes: str) -> Response:
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


def _changes(form: UpdateJob, operator: bool, now: datetime) -> dict[str, object]:
    """The changes in the form that odc.update_jobs takes.

    Raises BadRequest, BadDependency, NotOwner.
    """
    changes: dict[str, object] = {
        name: value
        for name in UpdateJob.__struct_fields__
        if name != "time_zone" and (value := getattr(form, name)) is not UNSET
    }
    _read_sbatch_forms(changes, now.astimezone(zone_of(form.time_zone)))
    if not changes:
        raise BadRequest("the request changes nothing", "Give at least one field.")
    if "time_limit_s" in changes and changes["time_limit_s"] is None:
        changes["time_limit_s"] = UNLIMITED_S
    if isinstance(form.nice, int) and form.nice < 0 and not operator:
        raise NotOwner(
            f"nice {form.nice} would put the job before others, which only operators may do",
            "Use a nice value of 0 or more.",
        )
    for name in ("begin_at", "deadline_at"):
        moment = changes.get(name)
        if isinstance(moment, datetime):
            if moment.tzinfo is None:
                raise BadRequest(f"{name} {moment.isoformat()} has no time zone", "End it with Z.")
            changes[name] = moment.isoformat()
    if isinstance(form.dependency, str) and form.dependency:
        changes["dependency"] = dependency_request(form.dependency)
    elif "dependency" in changes:
        changes["dependency"] = None
    return changes


def _read_sbatch_forms(changes: dict[str, object], now: datetime) -> None:
    """Parse sbatch's formats into the fields they stand for. Raises BadRequest on duplicates."""
    for text, name in (
        ("time_limit", "time_limit_s"),
        ("begin", "begin_at"),
        ("deadline", "deadline_at"),
    ):
        given = changes.pop(text, None)
        if not isinstance(given, str):
            continue
        if name in changes:
            raise BadRequest(f"{text} and {name} mean the same", "Use only one of them.")
        changes[name] = parse_duration(given) if text == "time_limit" else parse_moment(given, now)
