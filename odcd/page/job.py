"""One job or array: its properties, why it waits, and its history."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from odcd.api.http.context import Api, unknown_job
from odcd.api.jobs import JobRoutes
from odcd.errors import UnknownJob
from odcd.page.files import macros
from odcd.page.filters import plain
from odcd.page.fragments import Rendered
from odcd.page.hues import Hues
from odcd.page.jobs import JobLists, ran_s
from odcd.page.queries import PageOfJob, following
from odcd.slurm.lists import parse_selector

EVENTS = 300
EVENT_TEXTS = {
    "submitted": "submitted", "started": "nodes allocated", "slipped": "planned start changed",
    "ended": "ended", "requeued": "requeued", "checkpointed": "checkpoint written",
    "preempting": "being preempted", "preempts": "preempts other jobs",
    "active": "ready", "extended": "extended", "cancelled": "asked to end",
    "held": "held", "released": "released", "updated": "changed", "warned": "expiry notice sent",
    "requeue_asked": "requeue requested", "idle_warned": "idle notice sent",
    "node_warned": "notice about its nodes sent",
    "idle_released": "ended because it was idle", "disk_ready": "disk ready",
    "disk_saved": "disk saved", "box_oom": "ran out of memory and restarted",
    "box_restarted": "container restarted", "shared": "shared with another user",
}  # fmt: skip
Job = dict[str, Any]


class JobPage:
    def __init__(self, api: Api, hues: Hues) -> None:
        self._api = api
        self._hues = hues
        self._lists = JobLists(api, hues)
        self._routes = JobRoutes(api)
        self._parts = macros("job_parts.html")

    async def find(self, text: str) -> tuple[Job, bool]:
        """The job, or the row that represents an array, and whether it is an array. Raises
        UnknownJob."""
        selector = parse_selector(text)
        found, _ = await self._api.store.jobs.list(
            {"ids": [selector]}, self._api.clock.now(), ended=True, after=None, limit=2
        )
        jobs: list[Job] = json.loads(found)
        if not jobs:
            if selector.tasks is None:
                raise unknown_job(selector.job_id)
            raise UnknownJob(f"there is no job {text}", "The queue lists the existing jobs.")
        job = jobs[0]
        several = len(jobs) > 1 or (job["array_tasks"] is not None and selector.tasks is None)
        return job, several

    async def live(self, text: str) -> bool:
        """Whether any of the named tasks has not ended."""
        filters = {"ids": [parse_selector(text)]}
        found, _ = await self._api.store.jobs.list(
            filters, self._api.clock.now(), ended=False, after=None, limit=1, fields=["id"]
        )
        return found != "[]"

    async def page(self, query: PageOfJob) -> Rendered:
        job, several = await self.find(query.id)
        now = self._api.clock.now()
        job |= {"hue": self._hues.of(job["user"]), "ran_s": ran_s(job, now)}
        return await (self._array(query, job) if several else self._one(job))

    async def _array(self, query: PageOfJob, job: Job) -> Rendered:
        rows, after = await self._lists.all({"ids": [parse_selector(query.id)]}, query.after)
        return Rendered(
            parts={
                "head": str(self._parts.array_head(job, await self.live(query.id))),
                "tasks-foot": self._lists.foot(
                    rows, following(f"/page/jobs/{query.id}", query, after=after)
                ),
            },
            rows={"tasks": rows},
        )

    async def _one(self, job: Job) -> Rendered:
        found: dict[str, Any] = {"why": []}
        if job["state"] in ("PENDING", "CONFIGURING"):
            found = json.loads(await self._routes.explained(job["id"]))
        place = (await self._api.store.page.get_places([job["id"]])).get(job["id"])
        end = None
        if job["started_at"] and not job["ended_at"]:
            end = await self._api.store.page.get_end(job["id"], self._api.clock.now())
        return Rendered(
            parts={
                "head": str(self._parts.head(job)),
                "when": str(self._parts.when(job, place, end, found.get("eta_scored"))),
                "why": str(self._parts.why(job, found)),
                "facts": str(self._parts.facts(job)),
                "use": str(self._parts.use(job.get("gpu_use"))),
                "timeline": str(self._parts.timeline(await self._timeline(job))),
            }
        )

    async def why(self, text: str) -> str:
        """The causes that keep the job from starting, for a row of the queue."""
        job_id = await self._api.one_job(parse_selector(text))
        explanation = json.loads(await self._routes.explained(job_id))
        return str(self._parts.causes(explanation))

    async def _timeline(self, job: Job) -> list[dict[str, Any]]:
        events = json.loads(await self._api.store.page.list_job_events(job["id"], EVENTS))
        return timeline(events, json.loads(await self._api.store.page.list_attempts(job["id"])))


def timeline(events: list[dict[str, Any]], attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events and attempts of a job, in order."""
    lines = [
        {
            "at": event["at"], "kind": event["kind"], "actor": event["actor"],
            "text": EVENT_TEXTS.get(event["kind"], event["kind"].replace("_", " ")),
            "more": _more(event["kind"], event.get("detail") or {}),
        }
        for event in events
    ]  # fmt: skip
    begun = {line["more"]: line["at"] for line in lines if line["kind"] == "started"}
    for attempt in attempts:
        if attempt["running_at"]:
            more = f"attempt {attempt['attempt']}"
            # running_at is in whole seconds, so it could sort before the start event it follows.
            at = max(attempt["running_at"], begun.get(more, attempt["running_at"]), key=_moment)
            lines.append(
                {"at": at, "kind": "running", "actor": "odcd", "text": "running", "more": more}
            )
    return sorted(lines, key=lambda line: _moment(line["at"]))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _more(kind: str, detail: dict[str, Any]) -> str:
    """The part of an event's detail that users need."""
    match kind:
        case "started":
            return f"attempt {detail.get('attempt', 1)}"
        case "ended" | "requeued":
            parts = [str(detail.get("state") or ""), str(detail.get("reason") or "")]
            if detail.get("exit_code"):
                parts.append(f"exit code {detail['exit_code']}")
            if detail.get("signal"):
                parts.append(f"signal {detail['signal']}")
            return ", ".join(part for part in parts if part)
        case "slipped":
            ends = (plain(detail.get("from")) or "none", plain(detail.get("to")) or "none")
            return f"from {ends[0]} to {ends[1]}; cause: {detail.get('cause') or 'not known'}"
        case "held":
            return str(detail.get("reason") or "")
        case "extended" | "active":
            return f"until {plain(detail.get('expires_at'))}"
        case "preempting":
            return f"by job {detail.get('by')}"
        case _:
            return ""
