"""Lists of jobs: the queue, and ended jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from odcd.api.answers.jobs import END_STATES
from odcd.api.http.context import Api
from odcd.api.jobs import parse_states
from odcd.page.files import macros
from odcd.page.filters import ahead, seconds_between
from odcd.page.fragments import Rendered
from odcd.page.hues import Hues
from odcd.page.queries import PageOfEnded, PageOfMine, PageOfQueue, following
from odcd.stores.page import QueuePage

PAGE = 50
FIRST = 20
"""On the overview."""
OWN = 8
"""Of the viewer's own, at the top of the overview."""
FIELDS = (
    "id", "array_job_id", "array_task_id", "array_tasks", "array_progress", "name", "kind",
    "user", "partition", "account", "qos", "state", "reason", "why", "submitted_at", "begin_at",
    "planned_start_at", "eta", "started_at", "ended_at", "time_limit_s", "node_count",
    "node_count_max", "gpus_per_node", "gpus", "gpu_type", "cpus_per_node", "components",
    "node_names", "exit_code", "signal", "end_detail",
)  # fmt: skip
WAITING = ["PENDING"]
RUNNING = ["CONFIGURING", "RUNNING", "COMPLETING"]
REASONS = {
    "None": "the next pass will consider it", "Priority": "other jobs are ahead of it",
    "Resources": "it is next and waits for nodes", "Dependency": "it waits for other jobs",
    "JobHeldUser": "held by its user", "JobHeldAdmin": "held by an operator",
    "BeginTime": "its begin time is in the future",
}  # fmt: skip
Job = dict[str, Any]
STEP_S = 300


class JobLists:
    def __init__(self, api: Api, hues: Hues) -> None:
        self._api = api
        self._hues = hues
        self._rows = macros("rows.html")

    async def queue(self, query: PageOfQueue) -> Rendered:
        filters = _filters(query.user, query.partition, query.text)
        if query.state is not None:
            filters["state"] = WAITING if query.state == "waiting" else RUNNING
        rows, page = await self._live(filters, PAGE, query.place, query.after)
        following_page = following("/page/queue", query, place=page.place, after=page.after)
        return Rendered(parts={"queue-foot": self.foot(rows, following_page)}, rows={"queue": rows})

    async def first(self, states: Sequence[str]) -> dict[str, str]:
        """The overview's rows, by key."""
        rows, _ = await self._live({"state": states}, FIRST)
        return rows

    async def mine(self, query: PageOfMine) -> Rendered:
        """The first live jobs of one user."""
        rows, page = await self._live({"user": [query.user]}, OWN)
        more = page.place is not None or page.after is not None
        return Rendered(
            parts={"mine-foot": str(self._rows.mine_foot(len(rows), more, query.user))},
            rows={"mine": rows},
        )

    async def _live(
        self, filters: Mapping[str, object], limit: int, place: int | None = None,
        after: int | None = None,
    ) -> tuple[dict[str, str], QueuePage]:  # fmt: skip
        now = self._api.clock.now()
        page = await self._api.store.page.list_queue(
            filters, now, place=place, after=after, limit=limit, fields=FIELDS
        )
        jobs: list[Job] = json.loads(page.jobs)
        rows = {
            str(job["id"]): str(
                self._rows.live_job(self._shown(job, now), place, *_drawn(job, now))
            )
            for job, place in _once(zip(jobs, page.places, strict=True))
        }
        return rows, page

    async def ended(self, query: PageOfEnded) -> Rendered:
        filters = _filters(query.user, query.partition, query.text)
        filters["state"] = parse_states(query.state) or list(END_STATES)
        rows, after = await self.all(filters, query.after)
        foot = self.foot(rows, following("/page/ended", query, after=after))
        return Rendered(parts={"ended-foot": foot}, rows={"ended": rows})

    async def all(
        self, filters: Mapping[str, object], after: int | None
    ) -> tuple[dict[str, str], int | None]:
        """Rows of all jobs: newest first, or last ended first if the filters have states."""
        now = self._api.clock.now()
        text, following = await self._api.store.jobs.list(
            filters, now, ended=True, after=after, limit=PAGE, fields=FIELDS
        )
        jobs: list[Job] = json.loads(text)
        rows = {str(job["id"]): str(self._rows.ended_job(self._shown(job, now))) for job in jobs}
        return rows, following

    def _shown(self, job: Job, now: datetime) -> Job:
        """The job with its user's colour, and the time that it ran."""
        return {**job, "hue": self._hues.of(job["user"]), "ran_s": ran_s(job, now)}

    def foot(self, rows: Mapping[str, str], following: str | None) -> str:
        return str(self._rows.foot(len(rows), following))


def reason(job: Mapping[str, Any]) -> str:
    """The reason why a job waits, in one line."""
    why: Sequence[Mapping[str, Any]] = job["why"]
    word = job["reason"] or "None"
    return str(why[0]["text"]) if why else REASONS.get(word, word)


def ran_s(job: Mapping[str, Any], now: datetime) -> float | None:
    """How long the job ran, or has run; None: it did not start."""
    if job["started_at"] is None or job["state"] == "PENDING":
        return None
    end = datetime.fromisoformat(job["ended_at"]) if job["ended_at"] else now
    return max((end - datetime.fromisoformat(job["started_at"])).total_seconds(), 0)


def _once(rows: Iterable[tuple[Job, int | None]]) -> Iterator[tuple[Job, int | None]]:
    """The running tasks of an array as one job, with the progress of the array."""
    arrays: set[int] = set()
    for job, place in rows:
        array = job["array_job_id"]
        if array is None or job["state"] == "PENDING":
            yield job, place
        elif array not in arrays:
            arrays.add(array)
            yield {**job, "array_task_id": None, "id": array}, place


def _filters(user: str | None, partition: str | None, text: str | None) -> dict[str, object]:
    filters: dict[str, object] = {}
    if user:
        filters["user"] = [user]
    if partition:
        filters["partition"] = [partition]
    if text:
        filters["text"] = text
    return filters


def _drawn(job: Job, now: datetime) -> tuple[str, dict[str, float] | None]:
    """The reason why a job waits, and its expected start on the scale of waits; for a running job
    the used share of its time limit. The values change in steps, so that an unchanged row stays the
    same."""
    now_s = now.timestamp() // STEP_S * STEP_S
    if job["state"] != "PENDING":
        limit_s = job["time_limit_s"]
        if limit_s is None or job["started_at"] is None:
            return "", None
        ran_s = now.timestamp() - datetime.fromisoformat(job["started_at"]).timestamp()
        return "", {"ran": min(100, max(0, round(ran_s / limit_s * 50) * 2))}
    eta = job["eta"]
    if eta is None or eta["p50"] is None:
        return reason(job), None
    begin = datetime.fromtimestamp(now_s, now.tzinfo).isoformat()
    middle = ahead(seconds_between(begin, eta["p50"]))
    first, last = eta["p10"] or eta["p50"], eta["p90"] or eta["p50"]
    low, high = ahead(seconds_between(begin, first)), ahead(seconds_between(begin, last))
    band = {"low": low, "wide": round(max(high - low, 1.5), 1), "middle": min(middle, 98.5)}
    return reason(job), band
