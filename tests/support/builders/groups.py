"""Elastic groups, their instances and nodes, as AWS and the cluster would report them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.builders.jobs import NODES, ROOT, Queue


@dataclass
class Group:
    name: str
    gpu_type: str = "h100"
    min_nodes: int = 0
    max_nodes: int = 4
    desired: int = 0
    cooldown_s: int = 60
    idle_s: int = 600
    boot_s: int = 300
    features: tuple[str, ...] = ()
    problem: str | None = None
    failure: str | None = None
    failed_at: str | None = None
    instances: list[str] = field(default_factory=list[str])


class Groups:
    """AWS and a cluster of a queue. Launches succeed when launch() is called."""

    def __init__(self, queue: Queue, *groups: Group) -> None:
        self.queue = queue
        self.sql = queue.sql
        self.groups = {group.name: group for group in groups}
        self.joined: dict[str, str] = {}
        """Node name by instance."""
        self.states: dict[str, str] = {}
        """States that the cluster reports, by instance; others are UP."""
        self.pods: set[str] = set()
        """Instances whose node has a pod of someone else."""
        self.ended: list[str] = []
        self.count = 0
        self.fixed: list[dict[str, Any]] = []
        # The catalogue has the sizes of the tests' nodes, as it has those of real ones.
        for kind, (_, cpus, mem_mib) in NODES.items():
            self.sql.execute(
                "update odc.gpu_type set cpus_per_node = $2, mem_per_node_mib = $3 where name = $1",
                kind, cpus, mem_mib,
            )  # fmt: skip
        self.see()

    # -- AWS and the cluster ----

    def launch(self, name: str, *, join: bool = True) -> list[str]:
        """AWS launches what is desired."""
        group = self.groups[name]
        new: list[str] = []
        while len(group.instances) < group.desired:
            self.count += 1
            new.append(f"i-{self.count:08x}")
            group.instances.append(new[-1])
        for instance in new if join else ():
            self.joined[instance] = f"node-{instance[-4:]}"
        self.see()
        return new

    def see(self) -> list[dict[str, Any]]:
        """Register the nodes, and report the groups; groups that are ignored."""
        nodes = [
            {"name": name, "gpu_type": kind, "gpus": NODES[kind][0], "cpus": NODES[kind][1],
             "mem_mib": NODES[kind][2], "features": list(group.features),
             "state": self.states.get(instance, "UP"),
             "foreign_cpus": 2 if instance in self.pods else 0}
            for group in self.groups.values()
            for kind in (group.gpu_type,)
            for instance in group.instances
            if (name := self.joined.get(instance)) is not None
        ]  # fmt: skip
        if nodes or self.count or self.fixed:
            self.sql.execute(
                "select odc.register_nodes(0, $1::jsonb, true, $2)",
                json.dumps([*self.fixed, *nodes]), self.queue.now,
            )  # fmt: skip
        return self.sql.rows(
            "select * from odc.see_groups(0, $1::jsonb, $2::jsonb, $3)",
            json.dumps([vars(group) for group in self.groups.values()]),
            json.dumps(
                [{"name": name, "instance_id": instance} for instance, name in self.joined.items()]
            ),
            self.queue.now,
        )

    # -- the leader's loop ----

    def grow(self) -> dict[str, int]:
        """What the groups are to grow to; AWS does not know yet."""
        return {
            row["group_name"]: row["wanted"]
            for row in self.sql.rows("select * from odc.grow_groups(0, $1)", self.queue.now)
        }

    def ask(self, *, failure: str | None = None) -> None:
        """AWS is asked, and answers."""
        for row in self.sql.rows("select * from odc.take_sizes(0)"):
            if failure is None:
                self.groups[row["group_name"]].desired = row["wanted"]
            self.sql.value(
                "select odc.note_size(0, $1, $2, $3, $4)",
                row["group_name"], row["wanted"], failure, self.queue.now,
            )  # fmt: skip

    def shrink(self) -> list[str]:
        return self.sql.values("select * from odc.shrink_groups(0, $1)", self.queue.now)

    def leaving(self) -> list[dict[str, Any]]:
        return self.sql.rows("select * from odc.leaving_nodes(0, $1)", self.queue.now)

    def confirm(self, instance: str) -> bool:
        return self.sql.value("select odc.confirm_removal(0, $1, $2)", instance, self.queue.now)

    def remove(self, instance: str, *, kept: str | None = None) -> None:
        """AWS ends it, if it was not kept."""
        if kept is None:
            [group] = [one for one in self.groups.values() if instance in one.instances]
            group.desired -= 1
            group.instances.remove(instance)
            self.joined.pop(instance, None)
            self.ended.append(instance)
        self.sql.value("select odc.note_removal(0, $1, $2, $3)", instance, kept, self.queue.now)

    def round(self) -> None:
        """One whole round, as the loop does it."""
        self.see()
        self.grow()
        self.ask()
        self.shrink()
        for row in self.leaving():
            if self.confirm(row["instance_id"]):
                self.remove(row["instance_id"])
        self.see()

    # -- looking ----

    def listed(self) -> dict[str, dict[str, Any]]:
        text = self.sql.value("select odc.list_groups($1)", self.queue.now)
        return {group["name"]: group for group in json.loads(text)}

    def needs(self) -> dict[int, str]:
        rows = self.sql.rows("select job_id, group_name from odc.elastic_need order by 1")
        return {row["job_id"]: row["group_name"] for row in rows}

    def node(self, instance: str) -> dict[str, Any]:
        return self.sql.row("select * from odc.node where name = $1", self.joined[instance])

    def set_node(self, name: str, state: str) -> None:
        actor = json.dumps({"user": ROOT.user, "uid": ROOT.uid, "operator": True})
        self.sql.value(
            "select odc.set_node_state($1::jsonb, array[$2], $3, 'test', $4)",
            actor, name, state, self.queue.now,
        )  # fmt: skip
