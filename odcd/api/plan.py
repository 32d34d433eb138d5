"""/v1/plan: the plan, its chart, how it changed, and replayed passes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.plan import Gantt, Plan, PlanDiff, Replayed
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.http.times import check_moment
from odcd.api.jobs import split_values
from odcd.api.past import as_of
from odcd.errors import BadRequest, UnknownPass

MAX_HOURS = 31 * 24


class PlanQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    as_of: datetime | None = None
    """Show the plan as it was at this time."""


class GanttQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hours: Annotated[float, msgspec.Meta(gt=0, le=MAX_HOURS)] = 24
    """Hours to show ahead of now."""
    past_hours: Annotated[float, msgspec.Meta(ge=0, le=MAX_HOURS)] = 0
    """Hours to show before now; ended jobs are not shown."""
    gpu_type: str | None = None
    """Only nodes of these types, separated by commas."""
    node: str | None = None
    """Only these nodes, separated by commas."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    """The maximum number of nodes."""
    cursor: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """`next` from the previous page."""


class DiffQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Each pass is given as its number, or as a time: the last pass until then."""

    from_: str
    to: str | None = None
    """Default: the last pass."""


class ReplayQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    policy: str | None = None
    """Replay with this policy for all partitions."""
    plan_depth: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    """Replay with this number of protected jobs per group of nodes."""


class PlanRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/plan",
                tag="plan",
                serve=self.show,
                query=PlanQuery,
                answers={200: (Plan,)},
                summary="Show the planned starts: which jobs, when and where",
            ),
            Operation(
                method="GET",
                path="/v1/plan/gantt",
                tag="plan",
                serve=self.gantt,
                query=GanttQuery,
                answers={200: (Gantt,)},
                summary="Show running, planned and booked work on each node, as bars over time",
            ),
            Operation(
                method="GET",
                path="/v1/plan/diff",
                tag="plan",
                serve=self.diff,
                query=DiffQuery,
                answers={200: (PlanDiff,)},
                summary="Show planned starts that changed between two passes, and the causes",
            ),
            Operation(
                method="GET",
                path="/v1/passes/{id}/replay",
                tag="plan",
                serve=self.replay,
                query=ReplayQuery,
                answers={200: (Replayed,)},
                summary="Replay a pass from its recorded input, and compare the result",
            ),
        )

    async def show(self, call: Call) -> Response:
        moment = as_of(call.query(PlanQuery).as_of)
        return Response(
            await self._api.store.plans.get(self._api.clock.now(), moment), media_type=JSON
        )

    async def gantt(self, call: Call) -> Response:
        query, now = call.query(GanttQuery), self._api.clock.now()
        gantt = await self._api.store.plans.get_gantt(
            split_values(query.gpu_type, "gpu_type"), split_values(query.node, "node"),
            query.cursor, query.limit,
            (now - timedelta(hours=query.past_hours), now + timedelta(hours=query.hours)),
            call.who, now,
        )  # fmt: skip
        return Response(gantt, media_type=JSON)

    async def diff(self, call: Call) -> Response:
        query = call.query(DiffQuery)
        to = self._api.clock.now() if query.to is None else _pass(query.to)
        return Response(await self._api.store.plans.diff(_pass(query.from_), to), media_type=JSON)

    async def replay(self, call: Call) -> Response:
        query, name = call.query(ReplayQuery), call.part("id")
        number = _number(name)
        if number is None:
            raise UnknownPass(f'"{name}" is not a pass', "Passes have numbers.")
        answer = await self._api.store.plans.replay(number, query.policy, query.plan_depth)
        return Response(answer, media_type=JSON)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def _pass(text: str) -> int | datetime:
    number = _number(text)
    if number is not None:
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadRequest(
            f'"{text[:100]}" is neither a pass nor a time',
            "Give a number, or a time like 2026-07-01T12:00:00Z.",
        )
    check_moment("the time of a pass", moment)
    return moment
