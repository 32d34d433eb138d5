"""Renders every view; the result does not depend on the viewer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from odcd.api.http.context import Api
from odcd.page.files import macros
from odcd.page.fragments import Rendered
from odcd.page.gantt import PlanChart
from odcd.page.job import JobPage
from odcd.page.jobs import RUNNING, WAITING, JobLists
from odcd.page.nodes import NodeMap, sum_of
from odcd.page.queries import (
    PageOfAll,
    PageOfEnded,
    PageOfJob,
    PageOfNodes,
    PageOfPlan,
    PageOfQueue,
)


class Views:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._jobs = JobLists(api)
        self._map = NodeMap(api)
        self._plan = PlanChart(api)
        self.job = JobPage(api)
        self._rows = macros("rows.html")

    async def render(self, view: Any) -> Rendered:
        """Raises UnknownJob, BadRequest, DatabaseDown."""
        match view:
            case PageOfAll():
                return await self._all(view)
            case PageOfQueue():
                return await self._jobs.queue(view)
            case PageOfNodes():
                return await self._map.page(view)
            case PageOfPlan():
                return await self._plan.page(view)
            case PageOfEnded():
                return await self._jobs.ended(view)
            case PageOfJob():
                return await self.job.page(view)
            case _:
                raise AssertionError(f"no such view: {view}")

    async def _all(self, query: PageOfAll) -> Rendered:
        diag, nodes, waiting, running, plan = await asyncio.gather(
            self._api.store.cluster.diagnose(self._api.clock.now()),
            self._map.read(),
            self._jobs.first(WAITING),
            self._jobs.first(RUNNING),
            self._plan.page(PageOfPlan(zoom=query.zoom)),
        )
        cluster: dict[str, Any] = json.loads(diag)
        whole = sum_of("", nodes)
        drawn = self._map.render(nodes)
        counts = cluster["jobs"]
        live = sum(counts[state] for state in RUNNING)
        return Rendered(
            parts={
                "sums": str(self._rows.sums(cluster, whole, live)),
                "waiting-foot": str(self._rows.more(len(waiting), counts["PENDING"], "waiting")),
                "running-foot": str(self._rows.more(len(running), live, "running")),
                **plan.parts,
                **drawn.parts,
            },
            rows={"waiting": waiting, "running": running, **plan.rows, **drawn.rows},
        )
