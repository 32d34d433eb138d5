"""Disks of a database, and a cloud that the test simulates. Volumes and snapshots contain words, so
that a test can follow the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from odcd.records.job import Identity
from tests.support.builders.dev_servers import actor
from tests.support.builders.jobs import ALICE, Queue


@dataclass
class PlayedCloud:
    """The content of each volume and of each snapshot, by id."""

    volumes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    snapshots: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    pending: set[str] = field(default_factory=set[str])
    attached: set[str] = field(default_factory=set[str])
    made: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])

    def do(self, work: dict[str, Any]) -> dict[str, Any]:
        """As the worker does: the same request has no second effect."""
        kind, verb, own = work["kind"], work["verb"], work["cloud_id"]
        if verb == "create":
            made = self.made.setdefault((kind, work["id"]), f"{kind[:4]}-{work['id']}")
            if kind == "volume" and made not in self.volumes:
                source = work["snapshot_cloud_id"]
                assert source is None or source not in self.pending
                self.volumes[made] = list(self.snapshots[source]) if source else []
            if kind == "snapshot" and made not in self.snapshots:
                assert work["volume_cloud_id"] not in self.attached, "written to while it is saved"
                self.snapshots[made] = list(self.volumes[work["volume_cloud_id"]])
                self.pending.add(made)
            return {"cloud_id": made, "state": "creating" if kind == "volume" else "pending"}
        if verb == "look" and kind == "volume":
            there = "in-use" if own in self.attached else "available"
            return {"cloud_id": own, "state": there if own in self.volumes else "missing"}
        if verb == "look":
            if own not in self.snapshots:
                return {"cloud_id": own, "state": "missing"}
            return {"cloud_id": own, "state": "pending" if own in self.pending else "completed"}
        if verb == "delete":
            assert own not in self.attached
            (self.volumes if kind == "volume" else self.snapshots).pop(own, None)
        if verb == "detach":
            self.attached.discard(own)
            return {"cloud_id": own, "state": "in-use"}
        return {"done": True}


class Disks:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.sql = queue.sql
        self.cloud = PlayedCloud()

    def act(self, verb: str, *arguments: object, who: Identity = ALICE) -> Any:
        places = "".join(f"${n}, " for n in range(2, len(arguments) + 2))
        return json.loads(
            self.sql.value(
                f"select odc.{verb}($1::jsonb, {places}${len(arguments) + 2})",
                actor(who), *arguments, self.queue.now,
            )
        )  # fmt: skip

    def create(self, name: str = "main", size_gib: int = 100, who: Identity = ALICE) -> int:
        return self.act("create_disk", name, size_gib, who=who)["id"]

    def show(self, name: str = "main", who: Identity = ALICE) -> dict[str, Any]:
        return self.act("show_disk", None, name, who=who)

    def due(self) -> list[dict[str, Any]]:
        rows = self.sql.rows("select * from odc.take_disk_work(0, $1)", self.queue.now)
        return [{**row, "tags": json.loads(row["tags"])} for row in rows]

    def note(self, work: dict[str, Any], answer: dict[str, Any]) -> None:
        self.sql.value(
            f"select odc.note_{work['kind']}(0, $1, $2, $3::jsonb, $4)",
            work["id"], work["verb"], json.dumps(answer), self.queue.now,
        )  # fmt: skip

    def work(
        self, answer: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None
    ) -> list[str]:
        """Do every due operation once; returns the operations. answer: replaces the cloud; None:
        the cloud answers."""
        done: list[str] = []
        for work in self.due():
            done.append(f"{work['kind']} {work['verb']}")
            self.note(work, (answer(work) if answer else None) or self.cloud.do(work))
        return done

    def settle(self, seconds: float = 30) -> list[str]:
        """Work for this many seconds; snapshots stay pending."""
        done: list[str] = []
        for _ in range(int(seconds * 2)):
            done += self.work()
            self.queue.move(0.5)
        return done

    def complete(self) -> None:
        """The snapshots that are pending."""
        self.cloud.pending.clear()
        self.settle(40)

    def volume(self, job_id: int) -> dict[str, Any]:
        """The newest of a job."""
        return self.sql.row(
            "select * from odc.disk_volume where job_id = $1 order by id desc limit 1", job_id
        )

    def write(self, job_id: int, word: str) -> None:
        self.cloud.volumes[self.volume(job_id)["cloud_id"]].append(word)

    def read(self, job_id: int) -> Sequence[str]:
        return self.cloud.volumes[self.volume(job_id)["cloud_id"]]

    def why(self, job_id: int) -> dict[str, Any]:
        """The first cause of a job's waiting."""
        explanation = self.sql.value("select odc.explain_job($1, $2)", job_id, self.queue.now)
        return json.loads(explanation)["why"][0]
