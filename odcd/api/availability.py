"""/v1/availability, /v1/cluster/use: GPUs that can be reserved, and how many are in use."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import Response

from odcd.api.answers.reservations import AvailabilityList, ClusterCount, Wait
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.previews import iso
from odcd.jobs.gpu_types import read_types, sizes_of
from odcd.jobs.reservations import Reserve, seconds_of, spec_of
from odcd.jobs.submission import prepare
from odcd.records.job import Identity

WAITS_KEPT_S = 5.0
"""How long the waits of `avail` are cached: each size of each type needs a plan of its own."""


class AvailabilityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hours: float = 8.0
    """The length of the reservation, in hours."""


class AvailabilityRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._waits: dict[tuple[int, float], tuple[float, dict[str, list[Wait]]]] = {}

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/availability",
                tag="reservations",
                serve=self.availability,
                query=AvailabilityQuery,
                answers={200: (AvailabilityList,)},
                summary="Show the free GPUs of each type, and the wait for more",
            ),
            Operation(
                method="GET",
                path="/v1/cluster/use",
                tag="reservations",
                serve=self.cluster,
                answers={200: (ClusterCount,)},
                summary="Show how much of the cluster is in use",
            ),
        )

    async def availability(self, call: Call) -> Response:
        query = call.query(AvailabilityQuery)
        seconds_of(query.hours)
        now = self._api.clock.now()
        text = await self._api.store.gpu_types.list_availability(call.who, now)
        waits = await self._waits_of(call.who, text, query.hours, now)
        types: list[dict[str, Any]] = json.loads(text)
        for one in types:
            one["waits"] = [msgspec.to_builtins(wait) for wait in waits.get(one["gpu_type"], [])]
        return Response(json.dumps({"at": iso(now), "types": types}), media_type=JSON)

    async def _waits_of(
        self, who: Identity, text: str, hours: float, now: datetime
    ) -> dict[str, list[Wait]]:
        """By GPU type, when a reservation of each size would start if it alone were made now."""
        at_s = self._api.clock.monotonic()
        kept_at_s, kept = self._waits.get((who.uid, hours), (-WAITS_KEPT_S, {}))
        if at_s - kept_at_s < WAITS_KEPT_S:
            return kept
        there = read_types(text)
        sized = [(kind, size) for kind in there for size in sizes_of(kind)]
        specs = [
            spec_of(
                Reserve(
                    gpu_type=kind.gpu_type, gpus=size["gpus"], hours=hours, distributed=True
                ),
                there, "/", "/bin/sh",
            )
            for kind, size in sized
        ]  # fmt: skip
        asks = prepare(who, specs, key=None, dry_run=True).request["jobs"] if specs else []
        named = [{**ask, "uid": who.uid, "user": who.user} for ask in asks]
        previews = json.loads(
            await self._api.store.plans.preview(msgspec.json.encode(named).decode(), now)
        )
        waits: dict[str, list[Wait]] = {}
        for (kind, size), one in zip(sized, previews, strict=True):
            start = one.get("start_at")
            wait_s = None
            if start is not None:
                late = datetime.fromisoformat(start) - now.replace(microsecond=0)
                wait_s = max(0, round(late.total_seconds()))
            refused = one.get("refused")
            waits.setdefault(kind.gpu_type, []).append(
                Wait(
                    gpus=size["gpus"],
                    nodes=size["nodes"],
                    start_at=start,
                    wait_s=wait_s,
                    refused=refused["message"] if refused else None,
                    reason=one.get("reason"),
                )
            )
        self._waits = {key: kept for key, kept in self._waits.items() if at_s - kept[0] < 60}
        self._waits[who.uid, hours] = (at_s, waits)
        return waits

    async def cluster(self, call: Call) -> Response:
        now = self._api.clock.now()
        counts = json.loads(await self._api.store.cluster.count(now))
        return Response(json.dumps({"at": iso(now), **counts}), media_type=JSON)
