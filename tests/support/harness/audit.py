"""The result that a pass must leave, found by trying every node: small, slow, obviously right.

The plan that the database keeps (who runs, whose start is planned, on which nodes) is laid out in
time per node, and looked at from outside: nothing here knows how the planner came to it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.support.harness.database import Sql

Amounts = tuple[int, int, int]
"""GPUs, CPUs, MiB."""


@dataclass(frozen=True)
class Use:
    """The amounts used on a node from start to end, in seconds from the pass; end None: forever."""

    start: float
    end: float | None
    amounts: Amounts
    job_id: int
    running: bool

    def at(self, second: float) -> bool:
        return self.start <= second and (self.end is None or second < self.end)


@dataclass
class Node:
    name: str
    gpu_type: str
    domain: str | None
    total: Amounts
    partitions: list[int]
    uses: list[Use] = field(default_factory=list)
    closed: list[tuple[float, float, int]] = field(default_factory=list)
    """Bookings: from, until, id."""

    def free_at(self, second: float, but: set[int]) -> Amounts:
        taken = [u.amounts for u in self.uses if u.job_id not in but and u.at(second)]
        gpus, cpus, mem = (sum(t[i] for t in taken) for i in range(3))
        return self.total[0] - gpus, self.total[1] - cpus, self.total[2] - mem

    def fits(self, job: Job, start: float, but: set[int]) -> bool:
        """Is there room from start on for as long as the job may run?"""
        end = None if job.limit is None else start + job.limit
        inside = False
        for opens, closes, booking in self.closed:
            meets = (end is None or opens < end) and start < closes
            if job.booking == booking:
                inside |= opens <= start and end is not None and end <= closes
            elif meets:
                return False
        if job.booking is not None and not inside:
            return False
        moments = {start} | {u.start for u in self.uses if u.start > start}
        return all(
            all(
                have >= want for have, want in zip(self.free_at(at, but), job.on(self), strict=True)
            )
            for at in moments
            if end is None or at < end
        )


@dataclass(frozen=True)
class Job:
    job_id: int
    nodes: int
    amounts: Amounts
    gpu_type: str | None
    exclusive: bool
    only: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: tuple[int, ...]
    limit: float | None
    booking: int | None
    claims: bool = False
    """Other jobs end for it: it waits for their nodes, and takes no other nodes."""

    def on(self, node: Node) -> Amounts:
        return node.total if self.exclusive else self.amounts

    def could_use(self, node: Node) -> bool:
        return (
            self.gpu_type in (None, node.gpu_type)
            and all(have >= want for have, want in zip(node.total, self.amounts, strict=True))
            and (not self.only or node.name in self.only)
            and node.name not in self.exclude
        )


@dataclass
class Audit:
    nodes: list[Node]
    waiting: dict[int, Job]
    planned: dict[int, float | None]
    efa: set[str]
    depth: int

    def could_start(self, job: Job, at: float, but: set[int]) -> bool:
        """Are there nodes for it at that second, beside all running and planned jobs?"""
        for partition in job.partitions:
            sets: Counter[tuple[str, str]] = Counter()
            for node in self.nodes:
                if partition not in node.partitions or not job.could_use(node):
                    continue
                if not node.fits(job, at, but):
                    continue
                whole = job.exclusive or (node.total[0] > 0 and job.amounts[0] == node.total[0])
                bound = job.nodes > 1 and whole and node.gpu_type in self.efa and node.domain
                kind = node.gpu_type if job.nodes > 1 and job.amounts[0] > 0 else ""
                sets[kind, node.domain or "" if bound else ""] += 1
            if any(count >= job.nodes for count in sets.values()):
                return True
        return False

    def check(self, ready: set[int]) -> None:
        """ready: the jobs that were ready before the pass; its starts may make more jobs ready."""
        self._nothing_is_promised_twice()
        for job in self.waiting.values():
            at = self.planned.get(job.job_id)
            if job.job_id not in ready or job.claims or (at is not None and at <= 0):
                continue
            assert not self.could_start(job, 0.0, {job.job_id}), f"{job} could have started"
        if self.depth == 1:
            self._protected_starts_are_the_earliest()

    def _nothing_is_promised_twice(self) -> None:
        for node in self.nodes:
            for at in {u.start for u in node.uses}:
                free = node.free_at(at, set())
                assert min(free) >= 0, f"{node.name} is promised twice in {at} s: {node.uses}"

    def _protected_starts_are_the_earliest(self) -> None:
        for job_id, at in self.planned.items():
            job = self.waiting.get(job_id)
            if job is None or job.claims:
                continue
            moments = sorted(
                {u.end for n in self.nodes for u in n.uses if u.end is not None}
                | {closes for n in self.nodes for _, closes, _ in n.closed}
                | {opens for n in self.nodes for opens, _, _ in n.closed}
            )
            first = next((m for m in moments if m > 0 and self.could_start(job, m, {job_id})), None)
            assert first == at, f"{job} is planned in {at} s and could start in {first} s"


def audit(sql: Sql, now: datetime) -> Audit:
    """The plan that the last pass, run at this time, left."""

    def seconds(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - now) / timedelta(seconds=1)

    nodes = [
        Node(r["name"], r["gpu_type"], r["efa_domain"], (r["gpus"], r["cpus"], r["mem_mib"]),
             r["partition_ids"])
        for r in sql.rows(
            "select n.*, g.partition_ids from odc.node as n join odc.node_free as f "
            "on f.node_id = n.id join odc.node_group as g on g.id = f.group_id where f.up")
    ]  # fmt: skip
    by_name = {node.name: node for node in nodes}
    for r in sql.rows(
        "select a.*, n.name, case when r.intent is not null and r.preempted_by is null then $1 "
        "else nullif(a.ends_at, 'infinity') end as ends from odc.allocation as a "
        "join odc.node as n on n.id = a.node_id join odc.running as r on r.job_id = a.job_id",
        now,
    ):
        if r["name"] in by_name:
            end = seconds(r["ends"])
            amounts = (r["gpus"], r["cpus"], r["mem_mib"])
            use = Use(-1.0, None if end is None else max(1.0, end), amounts, r["job_id"], True)
            by_name[r["name"]].uses.append(use)
    for r in sql.rows(
        "select n.name, b.* from odc._plan_bookings($1) as b "
        "join odc.node as n on n.id = b.node_id",
        now,
    ):
        if r["name"] in by_name:
            window = (seconds(r["starts_at"]), seconds(r["ends_at"]), r["booking_id"])
            by_name[r["name"]].closed.append(window)
    jobs = {
        r["job_id"]: Job(
            r["job_id"], r["node_count"],
            (r["gpus_per_node"], r["cpus_per_node"], r["mem_per_node_mib"]), r["gpu_type"],
            r["exclusive"], tuple(r["node_list"] or ()), tuple(r["exclude_nodes"] or ()),
            tuple(r["partition_ids"]),
            None if r["time_limit_s"] == 2_147_483_647 else float(r["time_limit_s"]),
            r["booking_id"], r["claim_nodes"] is not None,
        )
        for r in sql.rows(
            "select p.job_id, p.time_limit_s, p.claim_nodes, s.* "
            "from odc.pending as p join odc.shape as s on s.id = p.shape_id "
            "where p.ready and not exists (select from odc.limited as l "
            "where (l.shape_id, l.time_limit_s, l.uid, l.account_id, l.qos_id) "
            "= (p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id))")
    }  # fmt: skip
    planned: dict[int, float | None] = {}
    for r in sql.rows("select * from odc.planned"):
        at, job = seconds(r["planned_start_at"]), jobs.get(r["job_id"])
        planned[r["job_id"]] = at
        if at is None or job is None:
            continue
        end = None if job.limit is None else at + job.limit
        for name in r["node_names"]:
            node = by_name[name]
            node.uses.append(Use(at, end, job.on(node), job.job_id, False))
    return Audit(
        nodes, jobs, planned,
        efa=set(sql.values("select name from odc.gpu_type where efa_per_node > 0")),
        depth=sql.value("select max(y.plan_depth) from odc.partition as p "
                        "join odc.policy as y on y.name = p.policy"),
    )  # fmt: skip
