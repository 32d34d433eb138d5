"""Renders every view; the result does not depend on the viewer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from odcd.api.http.context import Api
from odcd.page.files import macros
from odcd.page.fragments import Rendered
from odcd.page.gantt import PlanChart
from odcd.page.hues import Hues
from odcd.page.job import JobPage
from odcd.page.jobs import RUNNING, WAITING, JobLists
from odcd.page.nodes import NodeMap, sum_of
from odcd.page.queries import (
    PageOfAll,
    PageOfEnded,
    PageOfJob,
    PageOfMine,
    PageOfNodes,
    PageOfPlan,
    PageOfQueue,
)


class Views:
    def __init__(self, api: Api) -> None:
        self._api = api
        self.hues = Hues(api.store.page, api.clock)
        self._jobs = JobLists(api, self.hues)
        self._map = NodeMap(api, self.hues)
        self._plan = PlanChart(api, self.hues)
        self.job = JobPage(api, self.hues)
        self._rows = macros("rows.html")

    async def render(self, view: Any) -> Rendered:
        """Raises UnknownJob, BadRequest, DatabaseDown."""
        await self.hues.refresh()
        match view:
            case PageOfAll():
                return await self._all(view)
            case PageOfMine():
                return await self._jobs.mine(view)
            case PageOfQueue():
                return await self._jobs.queue(view)
            case PageOfNodes():
                return await self._map.page(view)
            case PageOfPlan():
                return await self._chart(view)
            case PageOfEnded():
                return await self._jobs.ended(view)
            case PageOfJob():
                return await self.job.page(view)
            case _:
                raise AssertionError(f"no such view: {view}")

    async def _chart(self, query: PageOfPlan) -> Rendered:
        """The plan; of a single node, its facts too."""
        if not query.node:
            return await self._plan.page(query)
        plan, node = await asyncio.gather(self._plan.page(query), self._map.one(query.node))
        return Rendered(parts={**plan.parts, "node": node}, rows=plan.rows)

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
