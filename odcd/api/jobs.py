"""/v1/jobs: lists, a job or array, why a job waits, its script, and waiting for it to end."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from odcd.api.answers.jobs import END_STATES, LIVE_STATES, Ended, Explanation, JobList, Jobs
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.http.streaming import unless_gone
from odcd.api.names import refuse_unknown_users
from odcd.api.past import as_of
from odcd.api.paths import NEEDED, with_paths
from odcd.api.selectors import read_selectors
from odcd.errors import BadRequest, UnknownJob
from odcd.records.job import Identity
from odcd.slurm.lists import split_selectors

MAX_PAGE = 10_000
MAX_SHOWN = 1_000
"""Array rows per answer: each includes its full text and paths expanded from patterns."""
MAX_WAIT_S = 300
STATES = frozenset(LIVE_STATES + END_STATES)


class ListQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter takes several values, separated by commas. A job must match all given filters."""

    job: str | None = None
    """Selectors: 7, 7_3 or 7_[1-4]."""
    user: str | None = None
    name: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    state: str | None = None
    """A state of ended jobs implies ended=true."""
    ended: bool = False
    """false: live jobs, running ones first. true: all jobs, newest first; if the filters select
    only ended jobs, the one that ended last comes first."""
    ended_since: datetime | None = None
    """Only jobs that ended at this time or later. Implies ended=true."""
    ended_before: datetime | None = None
    """Only jobs that ended before this time. Implies ended=true."""
    fields: str | None = None
    """Return only these fields of Job, separated by commas."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)] = 1000
    cursor: Annotated[int, msgspec.Meta(ge=-(2**63) + 1, le=2**63 - 1)] | None = None
    """`next` from the previous page."""
    as_of: datetime | None = None
    """Show the jobs as they were at this time."""


class ShowQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wait: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] | None = None
    """Answer when all of these jobs have ended, or after this many seconds, with Ended."""
    as_of: datetime | None = None
    """Show the job as it was at this time; not together with wait."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHOWN)] = MAX_SHOWN
    """The maximum number of array rows, oldest first; not together with wait."""
    cursor: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    """`next` from the previous page; not together with wait."""


class WhyQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    as_of: datetime | None = None
    """Show what kept the job from starting at this time."""


class JobRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/jobs",
                tag="jobs",
                serve=self.list,
                query=ListQuery,
                answers={200: (JobList,)},
                summary="List jobs",
            ),
            Operation(
                method="GET",
                path="/v1/jobs/{id}",
                tag="jobs",
                serve=self.show,
                query=ShowQuery,
                answers={200: (Jobs, Ended)},
                summary="Show a job or an array, or wait for its end",
            ),
            Operation(
                method="GET",
                path="/v1/jobs/{id}/why",
                tag="jobs",
                serve=self.why,
                query=WhyQuery,
                answers={200: (Explanation,)},
                summary="Explain why a job has not started",
            ),
            Operation(
                method="GET",
                path="/v1/jobs/{id}/script",
                tag="jobs",
                serve=self.script,
                media_type="text/plain",
                summary="Show a job's script as submitted",
            ),
        )

    async def list(self, call: Call) -> Response:
        query = call.query(ListQuery)
        states = parse_states(query.state)
        filters = filters_of(query)
        if query.job is not None:
            texts = split_selectors(query.job) or [""]
            filters["ids"] = await read_selectors(texts, call.turns())
        if states is not None:
            filters["state"] = states
        for name in ("ended_since", "ended_before"):
            moment: datetime | None = getattr(query, name)
            if moment is None:
                continue
            if moment.tzinfo is None:
                raise BadRequest(f"{name} has no time zone", "End it with Z.")
            filters[name] = moment.isoformat()
        fields = split_values(query.fields, "fields")
        has_paths = fields is None or not {"stdout", "stderr"}.isdisjoint(fields)
        fetched = list({*fields, *NEEDED}) if fields and has_paths else fields
        jobs, cursor = await self._api.store.jobs.list(
            filters,
            self._api.clock.now(),
            ended=query.ended
            or query.ended_since is not None
            or query.ended_before is not None
            or not set(states or ()).isdisjoint(END_STATES),
            after=query.cursor,
            limit=query.limit,
            fields=fetched,
            as_of=as_of(query.as_of),
        )
        if jobs == "[]" and query.user is not None and query.as_of is None:
            await refuse_unknown_users(self._api, call, split_values(query.user, "user") or ())
        if has_paths:
            store, turns = self._api.store.jobs, call.turns()
            jobs = (await with_paths(jobs, store, turns, whole=True, fields=fields)).jobs.decode()
        following = "null" if cursor is None else f'"{cursor}"'
        return Response(f'{{"jobs":{jobs},"next":{following}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        query = call.query(ShowQuery)
        wait, moment = query.wait, as_of(query.as_of)
        selector = call.selector()
        if wait is not None and moment is not None:
            raise BadRequest("wait and as_of cannot be used together", "Leave one of them out.")
        if wait is None:
            jobs, cursor = await self._api.store.jobs.list_rows(
                selector, self._api.clock.now(), moment, after=query.cursor, limit=query.limit
            )
            shown = await with_paths(jobs, self._api.store.jobs, call.turns())
            cursor = cursor if shown.last_id is None else shown.last_id
            following = b"null" if cursor is None else b'"%d"' % cursor
            return Response(b'{"jobs":%s,"next":%s}' % (shown.jobs, following), media_type=JSON)
        with self._api.fairness.stream(call.who):
            ended = await unless_gone(self._api.events.ended(selector, wait), call.receive)
        known = "true" if ended is not None else "false"
        return Response(f'{{"jobs":{ended or "[]"},"ended":{known}}}', media_type=JSON)

    async def why(self, call: Call) -> Response:
        moment = as_of(call.query(WhyQuery).as_of)
        now = self._api.clock.now()
        if moment is not None:
            explanation = await self._api.store.jobs.explain_past(call.selector(), moment, now)
        else:
            explanation = await self.explained(await self._api.one_job(call.selector()), call.who)
        return Response(explanation, media_type=JSON)

    async def explained(self, job_id: int, who: Identity | None = None) -> str:
        """An Explanation, as JSON. who: None: for a view that all users share."""
        now = self._api.clock.now()
        return self._with_starts(await self._api.store.jobs.explain(job_id, who, now))

    def _with_starts(self, explanation: str) -> str:
        """Add what the members wait for when the job has its nodes but not all members run yet.
        Only the executor knows that."""
        executor = self._api.executor_of()
        if executor is None or '"state":"PENDING"' in explanation:
            return explanation
        answer = json.loads(explanation)
        waits = executor.waits(answer["job_id"])
        if not waits:
            return explanation
        answer["why"] = [*answer["why"], *({"cause": "start", "text": text} for text in waits)]
        return json.dumps(answer)

    async def script(self, call: Call) -> Response:
        job_id = await self._api.own_job(call.who, call.selector())
        script = await self._api.store.jobs.get_script(job_id)
        if script is None:
            raise UnknownJob(f"the script of job {job_id} is no longer kept")
        return Response(script, media_type="text/plain; charset=utf-8")


def filters_of(query: Any) -> dict[str, object]:
    """The filters that lists and changes share, as Store takes them; without the states."""
    filters: dict[str, object] = {}
    for name in ("user", "name", "partition", "account", "qos"):
        values = split_values(getattr(query, name), name)
        if values is not None:
            filters[name] = values
    return filters


def split_values(text: str | None, name: str) -> list[str] | None:
    """Split the text at commas. Raises BadRequest when a value is empty."""
    if text is None:
        return None
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise BadRequest(f'"{name}" has an empty value', "Remove the extra comma.")
    return found


def parse_states(text: str | None) -> list[str] | None:
    states = split_values(text.upper(), "state") if text is not None else None
    for state in states or ():
        if state not in STATES:
            raise BadRequest(
                f'"{state}" is not a state', f"States: {', '.join(LIVE_STATES + END_STATES)}."
            )
    return states
