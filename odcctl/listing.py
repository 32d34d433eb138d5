"""Lists of jobs, fetched page by page."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from odcctl.exits import Failure
from odcctl.http.client import Client, Reply

PAGE = 10_000


class Listing(NamedTuple):
    jobs: list[dict[str, Any]]
    reply: Reply
    """The response with the first page."""
    whole: bool
    """That page has the whole list."""

    def only(self, wanted: Callable[[dict[str, Any]], bool]) -> Listing:
        """Without the other jobs."""
        return self._replace(jobs=[job for job in self.jobs if wanted(job)], whole=False)

    @property
    def text(self) -> str:
        """The list as one JSON value of the API, however many pages it had."""
        if self.whole:
            return self.reply.text.rstrip("\n") + "\n"
        value = {"jobs": self.jobs, "next": None}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def fetch_job(client: Client, path: str, params: Mapping[str, str | int | None]) -> Listing:
    """The job at that path, or all rows of the array."""
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


def refuse_unknown(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Reject unknown names in a filter: an empty list would mean something else."""
    known_names = set(known)
    for name in sorted(set(names) - known_names):
        raise Failure(
            f'{what} "{name}" does not exist',
            f"{what.capitalize()}s: {', '.join(sorted(known_names))}.",
        )


def fetch_jobs(
    client: Client, params: Mapping[str, str | int | None], limit: int | None = None
) -> Listing:
    """All jobs that match, or the first `limit` of them."""
    # Garbage collection would find no cycles in these objects, and take as long as parsing them.
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
