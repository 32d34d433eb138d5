"""/v1/idle: allocated but idle GPUs, and the jobs waiting for that type."""

from __future__ import annotations

import json
from typing import Literal

from starlette.responses import Response

from odcd.api.answers.common import Answer
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.names import refuse_unknown_users
from odcd.api.usage_filters import WhoseQuery


class IdleJob(Answer):
    """idle_gpus: how many of gpus are idle; idle_since: since when the longest of them has been;
    lost_gpu_s: the idle time of all of them together. util_ratio: the mean of all its GPUs at the
    last measurement. alone_since: for a dev server whose QOS checks this, since when no one has
    used it at all. ends_at null: no time limit."""

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
    """Jobs that wait only for GPUs of this type and could use the idle ones. gpus: requested by
    these jobs; since: when the first of them began to wait; users: at most ten, longest wait
    first."""

    gpu_type: str
    jobs: int
    gpus: int
    since: str
    users: list[str]


class IdleList(Answer):
    """source: where GPU usage comes from; null: only the checks of dev servers. A GPU is idle when
    its utilisation is below idle_ratio, and is listed after idle_after_s. The jobs with the most
    lost GPU time come first."""

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
                summary="List allocated but idle GPUs, their jobs, and the jobs waiting for them",
            ),
        )

    async def list(self, call: Call) -> Response:
        query = call.query(WhoseQuery)
        filters = query.filters()
        body = await self._api.store.gpu_use.list_idle(filters, self._api.clock.now())
        if query.user is not None and not json.loads(body)["jobs"]:
            await refuse_unknown_users(self._api, call, query.users())
        return Response(body, media_type=JSON)
