"""/v1/cluster, and the endpoints for monitoring: /health, /ready, /metrics."""

from __future__ import annotations

import json

import msgspec
from starlette.responses import Response

from odcd import __version__
from odcd.api.answers.cluster import Cluster, Health, Info, Ready
from odcd.api.answers.nodes import Fragmentation
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import OdcError


class ClusterRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/cluster",
                tag="cluster",
                serve=self.cluster,
                answers={200: (Cluster,)},
                summary="Show the cluster in numbers: jobs by state, the last pass, the leader",
            ),
            Operation(
                method="GET",
                path="/v1/cluster/fragmentation",
                tag="cluster",
                serve=self.fragmentation,
                answers={200: (Fragmentation,)},
                summary="Show how free GPUs are distributed: what could start now, per type",
            ),
            Operation(
                method="GET",
                path="/",
                tag="cluster",
                serve=self.info,
                answers={200: (Info,)},
                public=True,
                summary="Show the name, version and document paths",
            ),
            Operation(
                method="GET",
                path="/health",
                tag="cluster",
                serve=self.health,
                answers={200: (Health,)},
                public=True,
                summary="Check that the daemon is alive",
            ),
            Operation(
                method="GET",
                path="/ready",
                tag="cluster",
                serve=self.ready,
                answers={200: (Ready,)},
                public=True,
                summary="Check that it can serve: database, schema, listener, leader",
            ),
            Operation(
                method="GET",
                path="/metrics",
                tag="cluster",
                serve=self.metrics,
                media_type="text/plain",
                public=True,
                summary="Metrics for Prometheus",
            ),
        )

    async def cluster(self, call: Call) -> Response:
        report = json.loads(await self._api.store.cluster.diagnose(self._api.clock.now()))
        executor = self._api.executor_of()
        commands = executor is not None and self._api.commands()
        report["executor"] = {
            "name": executor.name if executor else None,
            "unreached_s": round(executor.unreached_s) if executor and commands else None,
        }
        return Response(json.dumps(report), media_type=JSON)

    async def fragmentation(self, call: Call) -> Response:
        types = await self._api.store.gpu_types.list_fragmentation()
        return Response(f'{{"types":{types}}}', media_type=JSON)

    async def info(self, _: Call) -> Response:
        return Response(msgspec.json.encode(Info(version=__version__)), media_type=JSON)

    async def health(self, _: Call) -> Response:
        return Response(
            msgspec.json.encode(Health(status="ok", version=__version__)), media_type=JSON
        )

    async def ready(self, _: Call) -> Response:
        try:
            # One of odc's functions answers, so the database is up and has the schema.
            await self._api.store.events.get_last()
            database = True
        except OdcError:
            database = False
        checks = {
            "database": database,
            "listener": self._api.listening(),
            "leader": self._api.led(),
        }
        ready = all(checks.values())
        answer = msgspec.json.encode(Ready(ready=ready, checks=checks))
        return Response(answer, 200 if ready else 503, media_type=JSON)

    async def metrics(self, call: Call) -> Response:
        body, media_type = await self._api.scrape(call.request.headers.get("accept"))
        return Response(body, headers={"content-type": media_type})
