"""Predict what would happen to jobs if they were submitted now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from odcd.api.answers.submit import Preview
from odcd.api.http.context import Api
from odcd.clock import Turns
from odcd.jobs.submission import prepare_in_turns
from odcd.records.job import Identity, JobSpec

# Why a job whose start is not in sight waits, by the reason that the queue shows.
NOT_IN_SIGHT = {
    "Priority": "behind more jobs than are planned",
    "Resources": "for nodes whose jobs have no time limit",
    "PartitionDown": "while its partition is down",
    "PartitionInactive": "while its partition is inactive",
    "ReqNodeNotAvail": "for nodes that are down, drained, or allocated without a time limit",
}
TOGETHER = "until all its components fit at once, and no time for that is in sight"


class Previews:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def of(
        self, who: Identity, specs: Sequence[JobSpec], now: datetime, turns: Turns
    ) -> list[Preview]:
        """Preview each job as if it alone were submitted. Raises the executor's objection to a
        job."""
        prepared = await prepare_in_turns(
            who, specs, key=None, dry_run=True, check=self._api.check_job, turns=turns
        )
        caller = {"uid": who.uid, "user": who.user, "operator": who.operator}
        asks = [{**job, **caller} for job in prepared.request["jobs"]]
        rows = json.loads(
            await self._api.store.plans.preview(msgspec.json.encode(asks).decode(), now)
        )
        for spec, one in zip(specs, rows, strict=True):
            one["text"] = _describe(spec, one, now)
        return msgspec.convert(rows, list[Preview])


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _kept_back(spec: JobSpec, now: datetime) -> str | None:
    """The job's own condition that would keep it from starting, as a sentence."""
    if spec.hold:
        return "the job would be accepted, and held"
    if spec.dependency:
        return f"the job would be accepted, and wait for {spec.dependency}"
    if spec.begin_at is not None and spec.begin_at > now:
        return f"the job would be accepted, and start after {iso(spec.begin_at)}"
    return None


def _describe(spec: JobSpec, row: dict[str, Any], now: datetime) -> str:
    if row["refused"] is not None:
        return f"refused: {row['refused']['message']}"
    kept_back = _kept_back(spec, now)
    if kept_back is not None:
        row |= {"start_at": None, "promised": False, "node_names": [], "delays": [], "victims": []}
        return kept_back
    limit = row["limit"]
    lacks = "licences in use" if limit == "Licenses" else f"its limit {limit}"
    if limit is not None and row["start_at"] is None:
        return f"the job would be accepted, and wait for {lacks}"
    if row["start_at"] is None:
        reason = row["reason"]
        wait = TOGETHER if spec.components and reason == "Resources" else NOT_IN_SIGHT[reason]
        return f"the job would be accepted, and wait {wait} ({reason})"
    starts = datetime.fromisoformat(row["start_at"])
    bound = "at the latest" if row["promised"] else "unless other jobs go ahead of it"
    when = "now" if starts <= now else f"at {row['start_at']} {bound}"
    late = sum(delay["to"] is not None for delay in row["delays"])
    others = f", and delay {late} {'job' if late == 1 else 'jobs'}" if late else ""
    lost = [str(delay["job_id"]) for delay in row["delays"] if delay["to"] is None]
    if len(lost) == 1:
        others += f", and job {lost[0]} loses its planned start"
    elif lost:
        others += f", and jobs {', '.join(lost)} lose their planned starts"
    if ended := len(row["victims"]):
        others += f", preempting {ended} {'job' if ended == 1 else 'jobs'}"
    waits = "" if limit is None else f"wait for {lacks}, and "
    return f"the job would {waits}start {when} on {', '.join(row['node_names'])}{others}"


def text_with_victims(preview: Preview) -> str:
    """The preview's text, and a line per job that would be preempted."""
    if not preview.victims:
        return f"{preview.text}, without preempting any job" if preview.start_at else preview.text
    return "\n".join([f"{preview.text}:", *(f"  {victim.text}" for victim in preview.victims)])
