"""/v1/idle: GPUs that are held and rest, and who waits for such."""

from __future__ import annotations

import json
from typing import Literal

from starlette.responses import Response

from odcd.api.answers.common import Answer
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.names import refuse_unknown_users
from odcd.api.whose import WhoseQuery


class IdleJob(Answer):
    """Of gpus, idle_gpus rest; idle_since: the longest of them; lost_gpu_s: for how long each of
    them has, in all. util_ratio: the mean of all its GPUs at the last look. alone_since: of a dev
    server whose QOS looks at it, since when nobody uses it at all. ends_at null: no time limit."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    name: str
    kind: Literal["batch", "reservation"]
    user: str
    account: str | None
    partition: str
    gpu_type: str
    node_names: list[str]
    gpus: int
    idle_gpus: int
    idle_since: str
    lost_gpu_s: int
    util_ratio: float | None
    alone_since: str | None
    started_at: str
    ends_at: str | None


class IdleWait(Answer):
    """Jobs that wait for nothing but such GPUs, and could take them: how many GPUs they ask for,
    since when the first waits, and at most ten users, those who wait longest first."""

    gpu_type: str
    jobs: int
    gpus: int
    since: str
    users: list[str]


class IdleList(Answer):
    """source: from where the use of GPUs is known; null: only looks at dev servers tell. A GPU
    rests when it is used less than idle_ratio, and is listed after idle_after_s. The dearest jobs
    come first."""

    source: Literal["prometheus", "nvml"] | None
    idle_ratio: float
    idle_after_s: int
    jobs: list[IdleJob]
    waiting: list[IdleWait]


class IdleRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/idle",
                tag="jobs",
                serve=self.list,
                query=WhoseQuery,
                answers={200: (IdleList,)},
                summary="GPUs that are held and rest: whose, since when, and who waits for such",
            ),
        )

    async def list(self, call: Call) -> Response:
        query = call.query(WhoseQuery)
        filters = query.filters()
        told = await self._api.store.gpu_use.list_idle(filters, self._api.clock.now())
        if query.user is not None and not json.loads(told)["jobs"]:
            await refuse_unknown_users(self._api, call, query.users())
        return Response(told, media_type=JSON)
