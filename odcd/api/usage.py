"""/v1/usage: resources used, waiting times, and GPU time released early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from starlette.responses import Response

from odcd.api.answers.common import Answer
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.jobs import split_values
from odcd.api.names import refuse_unknown_users
from odcd.api.previews import iso
from odcd.api.usage_filters import WhoseQuery
from odcd.errors import BadRequest

USUAL = timedelta(days=7)
FIRST = datetime(1, 1, 8, tzinfo=UTC)
GROUPS = ("user", "account", "qos", "partition", "gpu_type", "kind")
GROUP_HINT = f"Group by one or more of {', '.join(GROUPS)}."


class UsageQuery(WhoseQuery, frozen=True):
    since: datetime | None = None
    """Default: seven days before until."""
    until: datetime | None = None
    """Default: now."""
    by: str = "user"
    """The fields to group by, with commas: user, account, qos, partition, gpu_type, kind."""


class UsageWait(Answer):
    mean: int
    median: int
    most: int


class Usage(Answer):
    """group: the values of the fields in by. jobs: jobs that ran in the period; gpu_s, cpu_s: their
    allocated GPU- and CPU-seconds within it. began: the number that started for the first time in
    the period; wait_s: how long these waited from their submit or requested begin time until they
    started, or, for reservations, until they were active. failed: ended in the period as failed.
    early: reservations that ended before their time; early_gpu_s: the GPU-seconds this released."""

    group: dict[str, str]
    jobs: int
    gpu_s: int
    cpu_s: int
    began: int
    wait_s: UsageWait | None
    failed: int
    early: int
    early_gpu_s: int


class UsageList(Answer):
    since: str
    until: str
    by: list[str]
    usage: list[Usage]


class UsageRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/usage",
                tag="accounts",
                serve=self.list,
                query=UsageQuery,
                answers={200: (UsageList,)},
                summary="GPU-hours, waits and early ends, by user, account or GPU type",
            ),
        )

    async def list(self, call: Call) -> Response:
        query = call.query(UsageQuery)
        by = split_values(query.by, "by") or []
        for word in by:
            if word not in GROUPS:
                raise BadRequest(f'usage cannot be grouped by "{word}"', GROUP_HINT)
        if not by or len(set(by)) < len(by):
            raise BadRequest("by is empty, or has a duplicate", GROUP_HINT)
        until = _moment(query.until, "until") or self._api.clock.now()
        since = _moment(query.since, "since") or max(FIRST, until) - USUAL
        if since >= until:
            raise BadRequest(
                f"since is {iso(since)}, which is not before until, {iso(until)}",
                "Give an earlier one.",
            )
        rows = await self._api.store.accounting.list_usage(
            by, query.filters(), since, until, self._api.clock.now()
        )
        if rows == "[]":
            await refuse_unknown_users(self._api, call, query.users())
        head = msgspec.json.encode({"since": iso(since), "until": iso(until), "by": by}).decode()
        return Response(f'{head[:-1]},"usage":{rows}}}', media_type=JSON)


def _moment(at: datetime | None, what: str) -> datetime | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise BadRequest(f"{what} has no time zone", "End it with Z.")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise BadRequest(f"{what} is not between the years 1 and 9999", "Give another.") from None
