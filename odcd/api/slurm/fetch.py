"""Read jobs for the commands that list them."""

from __future__ import annotations

import asyncio
import json
import pwd
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from odcd.api.selectors import read_selectors
from odcd.api.slurm.components import components_of, job_of, shown_by
from odcd.api.slurm.remote import Remote
from odcd.errors import BadRequest, OdcError
from odcd.records.job import Selector
from odcd.slurm.columns.values import DECODER, FIELDS, JobRow
from odcd.slurm.lists import parse_selector
from odcd.slurm.usage import Usage, fail

MIN_JOB_AGE_S = 300
"""How long an ended job stays in squeue -t all."""
PAGE = 10_000
MAX_ROWS = 250_000
"""Jobs, of which each component counts: more would take gigabytes of memory."""
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
NAMES = ("partition", "account", "qos")


async def fetch_jobs(
    remote: Remote, filters: dict[str, object], fields: Collection[str], *, ended: bool,
) -> list[JobRow]:  # fmt: skip
    """All jobs that match, in the order of the store. A filter for a name that does not exist
    matches nothing, as in Slurm."""
    store, now = remote.api.store.jobs, remote.api.clock.now()
    zone = remote.now().tzinfo
    wanted = sorted({"id", "state", *fields} & FIELDS)
    rows: list[JobRow] = []
    count = 0
    after: int | None = None
    turns = remote.call.turns()
    while True:
        try:
            text, after = await store.list(
                filters, now, ended=ended, after=after, limit=PAGE, fields=wanted
            )
        except OdcError as error:
            if error.code in ("OD001", "OD002", "OD004"):
                return []
            raise
        page = DECODER.decode(text)
        asked = await store.list_requests([row.id for row in page]) if "asked" in fields else {}
        for row in page:
            row.now, row.zone, row.asked = now, zone, asked.get(row.id)
        rows += page
        count += sum(len(row.components or ()) or 1 for row in page)
        if count > MAX_ROWS:
            raise _too_many(remote)
        if after is None:
            if "score" in fields:
                await _add_scores(remote, rows)
            return rows
        if remote.place is not None and count >= PAGE:
            await remote.place.take()
        await turns.take()


async def with_components(
    remote: Remote, rows: Iterable[JobRow], named: Sequence[str] = ()
) -> list[JobRow]:
    """A row for each component of heterogeneous jobs. named: the ids that the user gave. Raises
    Usage."""
    is_shown, turns = shown_by(named), remote.call.turns()
    found: list[JobRow] = []
    for row in rows:
        found += filter(is_shown, components_of(row))
        if len(found) > MAX_ROWS:
            raise _too_many(remote)
        if len(found) > PAGE and remote.place is not None:
            await remote.place.take()
        if turns.are_due():
            await turns.take()
    return found


def _too_many(remote: Remote) -> Usage:
    return fail(
        remote.name, f"more than {MAX_ROWS} jobs match: name jobs or users, or a later time"
    )


async def is_unknown(user: str) -> bool:
    """Whether this machine has no such user. A look at the user database may be slow."""

    def look() -> bool:
        try:
            pwd.getpwnam(user)
        except KeyError:
            return not user.isdigit()
        return False

    return await asyncio.to_thread(look)


async def _add_scores(remote: Remote, rows: Sequence[JobRow]) -> None:
    pending = {row.id: row for row in rows if row.state == "PENDING"}
    text = await remote.api.store.accounting.list_priorities(
        list(pending), None, None, None, len(pending), remote.api.clock.now()
    )
    for one in json.loads(text)["jobs"] if pending else ():
        if one["id"] in pending:
            pending[one["id"]].score = one["priority"]


async def selectors(remote: Remote, name: str, texts: list[str]) -> list[Selector]:
    """The jobs that -j names; a step's id names its job. Raises Usage in Slurm's words."""
    texts = [job_of(text) for text in texts]
    try:
        return await read_selectors([text.partition(".")[0] for text in texts], remote.call.turns())
    except BadRequest:
        for text in texts:
            try:
                parse_selector(text.partition(".")[0])
            except BadRequest:
                raise fail(name, f"Invalid job id: {text[:60]}") from None
        raise


async def with_components_named(remote: Remote, texts: Sequence[str]) -> list[str]:
    """The ids that the user gave; that of a component, which names no job, as 123+1."""
    numbers = {text: int(text) for text in texts if _NUMBER.fullmatch(text)}
    leaders = await remote.api.store.jobs.list_leaders(list(numbers.values())) if numbers else {}
    return [
        text if (leader := leaders.get(numbers.get(text, 0))) is None
        else f"{leader}+{numbers[text] - leader}"
        for text in texts
    ]  # fmt: skip


def recent(remote: Remote) -> datetime:
    """Jobs that ended before are no longer in squeue."""
    return remote.api.clock.now() - timedelta(seconds=MIN_JOB_AGE_S)
