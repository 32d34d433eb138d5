"""Lists of jobs, fetched page by page."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from odcctl.exits import Failure
from odcctl.http.client import Client, Reply

PAGE = 10_000


class Listing(NamedTuple):
    jobs: list[dict[str, Any]]
    reply: Reply
    """The first page's answer."""
    whole: bool
    """That page held everything."""

    @property
    def text(self) -> str:
        """The list as one value of the API."""
        if self.whole:
            return self.reply.text.rstrip("\n") + "\n"
        value = {"jobs": self.jobs, "next": None}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def fetch_job(client: Client, path: str, params: Mapping[str, str | int | None]) -> Listing:
    """The job of that path, or all rows of the array."""
    first = client.get(path, params)
    answer = first.json()
    jobs: list[dict[str, Any]] = answer["jobs"]
    cursor, whole = answer.get("next"), True
    while cursor is not None:
        whole = False
        answer = client.get(path, {**params, "cursor": cursor}).json()
        jobs += answer["jobs"]
        cursor = answer.get("next")
    return Listing(jobs, first, whole)


def refuse_unknown(what: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """Reject unknown names in a filter: an empty list would mean something else."""
    names = set(known)
    for name in sorted(set(wanted) - names):
        raise Failure(
            f'{what} "{name}" does not exist', f"{what.capitalize()}s: {', '.join(sorted(names))}."
        )


def fetch_jobs(
    client: Client, params: Mapping[str, str | int | None], limit: int | None = None
) -> Listing:
    """All jobs that match, or the first `limit` of them."""
    # Thousands of objects without a cycle among them: to look for one costs as much as to parse.
    gc.disable()
    page = min(PAGE, limit or PAGE)
    first = client.get("/v1/jobs", {**params, "limit": page})
    answer = first.json()
    jobs: list[dict[str, Any]] = answer["jobs"]
    cursor, whole = answer.get("next"), True
    while cursor is not None and (limit is None or len(jobs) < limit):
        whole = False
        answer = client.get("/v1/jobs", {**params, "limit": page, "cursor": cursor}).json()
        jobs += answer["jobs"]
        cursor = answer.get("next")
    if limit is not None and len(jobs) > limit:
        whole = False
        del jobs[limit:]
    return Listing(jobs, first, whole)
