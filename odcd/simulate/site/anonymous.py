"""A site's history without names and texts: they are replaced by numbers, always the same ones.

Only what a replay needs is kept: sizes, limits, times, and which things are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from odcd.simulate.site.records import Row, Site, SiteJob, Task, Term

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_UID = 10_000
ORDERINGS = ("fifo", "multifactor", "sjf", "saf", "wfp3", "odc")
LEFT_OUT = (
    "scripts, environments, arguments, paths, output, comments, exit codes, GPU usage, the reasons "
    "of node states and bookings, real dates and times of day"
)
_FEATURE = re.compile(r"[^&|]+")
"""In a constraint: names joined by & and |."""


class _Names:
    """Numbers for one kind of name, in the order in which they are first asked for."""

    def __init__(self, prefix: str, known: Iterable[str] = ()) -> None:
        self._prefix = prefix
        self._numbers: dict[str, str] = {}
        for name in known:
            self(name)

    def __call__(self, name: str | None) -> str | None:
        if name is None:
            return None
        return self._numbers.setdefault(name, f"{self._prefix}{len(self._numbers) + 1}")

    def all(self, names: Iterable[str] | None) -> list[str | None] | None:
        return None if names is None else [self(name) for name in names]


def anonymised(site: Site) -> Site:
    """The site with numbers instead of names. GPU types and the names of orderings are kept."""
    return _Anonymiser(site).site()


class _Anonymiser:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._shift = START - site.start
        tables = site.tables
        self._users = _Names("user", (job.user for job in sorted(site.jobs, key=lambda j: j.id)))
        self._names = _Names("job")
        self._nodes = _Names("node", (row["name"] for row in tables["node"]))
        self._features = _Names("feature")
        self._places = _Names("place")
        self._licences = _Names("licence", (row["name"] for row in tables["licence"]))
        self._policies = _Names("policy")
        self._plain = {
            "account": _Names("account"), "qos": _Names("qos"), "partition": _Names("partition"),
            "booking": _Names("booking"),
        }  # fmt: skip
        numbered = sorted(job.id for job in site.jobs)
        self._ids = {job_id: number for number, job_id in enumerate(numbered, start=1)}
        self._uids: dict[int, int] = {}

    def site(self) -> Site:
        tables = {
            name: [self._row(name, row) for row in rows] for name, rows in self._site.tables.items()
        }
        return replace(
            self._site, name="anonymous", start=START, tables=tables,
            changes=tuple(
                replace(change, node=self._nodes(change.node)) for change in self._site.changes
            ),
            jobs=tuple(self._job(job) for job in self._site.jobs),
        )  # fmt: skip

    def _uid(self, uid: int) -> int:
        return self._uids.setdefault(uid, FIRST_UID + len(self._uids) + 1)

    def _row(self, table: str, row: Row) -> Row:
        found = {key: self._value(table, key, value) for key, value in row.items()}
        if table == "gpu_type":
            found["label"] = row["name"]
        return found

    def _value(self, table: str, key: str, value: Any) -> Any:
        if value is None:
            return None
        if key in ("user_name", "uid"):
            return self._users(value) if key == "user_name" else self._uid(value)
        if key in ("user_names", "uids"):
            return [self._users(one) if key == "user_names" else self._uid(one) for one in value]
        if key in ("used_at", "made_at", "starts_at", "repeats_until", "created_at"):
            return (datetime.fromisoformat(value) + self._shift).isoformat()
        if key == "policy" or (table, key) == ("policy", "name"):
            return value if value in ORDERINGS else self._policies(value)
        if key == "name" and table in self._plain:
            return self._plain[table](value)
        return self._place_or_other(table, key, value)

    def _place_or_other(self, table: str, key: str, value: Any) -> Any:
        if (table, key) == ("node", "name"):
            return self._nodes(value)
        if (table, key) == ("licence", "name"):
            return self._licences(value)
        if key in ("node_list", "exclude_nodes"):
            return self._nodes.all(value)
        if key in ("zone", "efa_domain"):
            return self._places(value)
        if key == "topology":
            return self._places.all(value)
        if key == "features":
            return self._features.all(value)
        if key == "constraint_expr":
            return _FEATURE.sub(lambda found: self._features(found[0]) or "", value)
        if key == "licences":
            return {self._licences(name): count for name, count in value.items()}
        return value

    def _job(self, job: SiteJob) -> SiteJob:
        return replace(
            job, id=self._ids[job.id], name=self._names(job.name), user=self._users(job.user),
            uid=self._uid(job.uid), terms=tuple(self._term(term) for term in job.terms),
            tasks=tuple(self._task(task) for task in job.tasks),
        )  # fmt: skip

    def _term(self, term: Term) -> Term:
        if term.target_id is None:
            return term
        return replace(term, target_id=self._ids[term.target_id])

    def _task(self, task: Task) -> Task:
        spans = tuple(
            replace(span, nodes=tuple(self._nodes.all(span.nodes) or ())) for span in task.spans
        )
        return replace(task, spans=spans)
