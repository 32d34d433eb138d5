"""Days of many users, with a cloud that fails, or answers late or never: no written data is lost,
and no one reads an older state."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import ALICE, BOB, Queue

USERS = (ALICE, BOB)
NAMES = ("one", "two")


class Day:
    def __init__(self, queue: Queue, seed: int) -> None:
        self.random = random.Random(seed)
        self.queue = queue
        self.reservations = Reservations(queue)
        self.disks = Disks(queue)
        self.written: dict[tuple[int, str], list[str]] = {}
        self.mounted: set[int] = set()
        self.reads = 0

    def cloud(self, work: dict[str, Any]) -> dict[str, Any] | None:
        """Does it, or not, and answers, or not."""
        chance = self.random.random()
        if chance < 0.15:
            return {"busy": "RequestLimitExceeded"}
        if chance < 0.25:
            # Done, but the answer is lost: the next attempt finds the result.
            self.disks.cloud.do(work)
            return {"busy": "no answer in 30 s"}
        if chance < 0.28 and work["kind"] == "snapshot" and work["verb"] == "look":
            return {"state": "error"}
        key = (work["kind"], work["id"])
        if chance < 0.30 and key not in self.disks.cloud.made and key[0] == "volume":
            return {"refused": "InsufficientVolumeCapacity"}
        if work["verb"] == "withdraw" and chance < 0.5:
            return {"done": False}
        return None

    def step(self) -> None:
        self.random.choice(
            [self.reserve, self.reserve, self.cancel, self.end, self.end, self.ready, self.ready,
             self.complete, self.complete, self.queue.sweep, *[self.work] * 6]
        )()  # fmt: skip
        self.queue.start()
        self.queue.move(self.random.choice([1, 5, 20, 60]))
        self.check()

    def reserve(self) -> None:
        if self.queue.sql.value("select count(*) from odc.pending") < 6:
            who = self.random.choice(USERS)
            self.reservations.reserve(who, hours=1, details={"disk": self.random.choice(NAMES)})

    def cancel(self) -> None:
        waiting = self.queue.sql.values("select job_id from odc.pending order by 1")
        if waiting and self.random.random() < 0.3:
            self.queue.cancel(self.random.choice(waiting), who=ALICE)

    def ready(self) -> None:
        """The pods of one whose volume they can mount are there, and its user writes."""
        for job in self.queue.sql.values(
            "select v.job_id from odc.disk_volume as v join odc.running as r "
            "on r.job_id = v.job_id and r.attempt = v.attempt where v.published_at is not null "
            "order by 1"
        ):
            volume = self.disks.volume(job)["cloud_id"]
            key = self.disk_of(job)
            if job not in self.mounted:
                self.mounted.add(job)
                self.disks.cloud.attached.add(volume)
                assert self.disks.read(job) == self.written.get(key, []), "older, or another's"
                self.reads += 1
                if self.random.random() < 0.8:
                    self.reservations.facts(job, "started", 0)
            self.disks.write(job, f"{job}:{len(self.disks.read(job))}")
            self.written[key] = list(self.disks.read(job))

    def disk_of(self, job: int) -> tuple[int, str]:
        row = self.queue.sql.row(
            "select d.uid, d.name from odc.reservation as v join odc.disk as d "
            "on d.id = v.disk_id where v.job_id = $1",
            job,
        )
        return row["uid"], row["name"]

    def end(self) -> None:
        running = self.queue.sql.values("select job_id from odc.running order by 1")
        if not running:
            return
        used = [job for job in running if job in self.mounted]
        job = self.random.choice(used if used and self.random.random() < 0.8 else running)
        how = self.random.choice(["cancel", "lost", "launch"])
        if how == "cancel":
            self.queue.cancel(job, who=ALICE if self.disk_of(job)[0] == ALICE.uid else BOB)
        self.gone(job, how)

    def gone(self, job: int, how: str) -> None:
        """Its pods are over; kubelet unmounts."""
        kind, more = {
            "cancel": ("exited", {"exit_code": 0}), "lost": ("lost", {}),
            "launch": ("start_failed", {"cause": "launch", "detail": "no"}),
        }[how]  # fmt: skip
        self.disks.cloud.attached.discard(self.disks.volume(job)["cloud_id"])
        self.reservations.facts(job, kind, 0, **more)
        self.mounted.discard(job)

    def work(self) -> None:
        self.disks.work(self.cloud)
        for job in self.queue.sql.values(
            "select job_id from odc.running where intent = 'member_failed' order by 1"
        ):
            self.gone(job, "cancel")

    def complete(self) -> None:
        self.disks.cloud.pending.clear()

    def check(self) -> None:
        sql = self.queue.sql
        assert not sql.values(
            "select disk_id from odc.disk_volume "
            "where state not in ('deleting', 'deleted', 'lost') group by 1 having count(*) > 1"
        )
        # A volume that may be mounted has the disk's holder, and the newest fence.
        assert not sql.values(
            "select v.id from odc.disk_volume as v join odc.disk as d on d.id = v.disk_id "
            "where v.state in ('creating', 'available', 'published', 'releasing') "
            "and (d.holder is distinct from v.job_id or d.fence <> v.fence)"
        )
        # A running job with a disk is its holder.
        assert not sql.values(
            "select r.job_id from odc.running as r join odc.reservation as v using (job_id) "
            "join odc.disk as d on d.id = v.disk_id where d.holder is distinct from r.job_id "
            "and exists (select from odc.disk_volume as m where m.job_id = r.job_id "
            "and m.attempt = r.attempt and m.state <> 'deleted')"
        )

    def settle(self) -> None:
        """Everything ends; the cloud is well again."""
        for job in self.queue.sql.values("select job_id from odc.pending order by 1"):
            for who in USERS:
                self.queue.cancel(job, who=who)
        for job in self.queue.sql.values("select job_id from odc.running order by 1"):
            self.gone(job, "lost")
        for job in self.queue.sql.values("select job_id from odc.pending order by 1"):
            for who in USERS:
                self.queue.cancel(job, who=who)
        for _ in range(300):
            self.disks.work()
            self.complete()
            self.queue.move(5)
        self.queue.sweep()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 8))]
)
def test_no_written_data_is_lost(queue: Queue, seed: int) -> None:
    """STO-03, STO-04, STO-06, STO-10, STO-22, STO-26, BUG-13, BUG-23, BUG-24: one holder, one live
    volume, and who mounts a disk reads what was written last."""
    day = Day(queue, seed)
    for who in USERS:
        for name in NAMES:
            day.disks.create(name, who=who)
    for _ in range(400):
        day.step()
    day.settle()
    assert day.reads >= 5, "hardly a day"
    rows = queue.sql.rows("select * from odc.disk")
    assert [row["holder"] for row in rows] == [None] * 4
    assert day.disks.cloud.volumes == {}, "orphans"
    for row in rows:
        kept = queue.sql.values(
            "select cloud_id from odc.disk_snapshot where disk_id = $1 and state = 'completed' "
            "order by id desc limit 1",
            row["id"],
        )
        newest = day.disks.cloud.snapshots[kept[0]] if kept else []
        assert newest == day.written.get((row["uid"], row["name"]), [])
