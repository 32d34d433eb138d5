"""The worker between database, cloud and cluster: a disk from creation to deletion, and the same
with a worker that dies at each of its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.aws.disks import Aws
from odcd.aws.link import Limits
from odcd.database.pool import Database
from odcd.disks.settings import DiskSettings
from odcd.disks.worker import DiskWorker
from odcd.errors import RunnerDown
from odcd.stores.store import Store
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.fakes.aws import REGION, ZONES, FakeAws
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql

LIMITS = Limits(connect_s=60, read_s=60, tries=1, settle_s=0, new_s=0)
NODES = [
    {"name": f"n-{zone}", "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000,
     "declared": True, "zone": zone}
    for zone in ZONES[:2]
]  # fmt: skip


class Killed(BaseException):
    """The daemon dies here."""


@dataclass
class PlayedClaims:
    """The cluster: which volumes pods may mount."""

    published: dict[int, str] = field(default_factory=dict[int, str])
    busy: int = 0
    """So many times a pod still uses it."""
    personal: dict[int, str] = field(default_factory=dict[int, str])
    down: bool = False

    async def publish(self, volume_id: int, cloud_id: str, zone: str, size_gib: int) -> None:
        if self.down:
            raise RunnerDown("the API server does not answer", "Wait.")
        self.published[volume_id] = cloud_id

    async def withdraw(self, volume_id: int) -> bool:
        if self.busy:
            self.busy -= 1
            return False
        self.published.pop(volume_id, None)
        return True

    async def publish_personal(self, uid: int, file_system: str, access_point: str) -> None:
        self.personal[uid] = f"{file_system}::{access_point}"


class Site:
    """A database with two nodes in two zones, a cloud, a cluster, and users of disks."""

    def __init__(self, sql: Sql, url: str, fake: FakeAws, **settings: Any) -> None:
        a_cluster(sql, more=NODES)
        self.queue = Queue(sql)
        self.reservations = Reservations(self.queue)
        self.disks = Disks(self.queue)
        self.fake = fake
        self.claims = PlayedClaims()
        self.clock = VirtualClock(NOW)
        self._url = url
        self._settings = DiskSettings(aws_region=REGION, aws_endpoint=fake.url, **settings)
        self.steps = 0
        self.kill_at: int | None = None

    def reserve(self, zone: str, name: str = "main", **fields: object) -> int:
        job_id = self.reservations.reserve(
            details={"disk": name, **fields}, node_list=[f"n-{zone}"]
        )
        self.queue.start()
        return job_id

    def work(self, seconds: float = 30) -> None:
        """Run a worker for this many seconds, and another one after it was killed."""
        until = self.queue.now + timedelta(seconds=seconds)
        while self.queue.now < until:
            try:
                asyncio.run(self._work(until))
            except* Killed:
                self.kill_at = None

    async def _work(self, until: Any) -> None:
        async with Database(self._url, size=2) as database:
            store = Store(database)
            cloud = Aws(self._settings, await store.cluster.get_server_id(), self.clock, LIMITS)
            await cloud.open()
            worker = DiskWorker(
                0, store.disk_work, cloud, self.claims, self.clock, timedelta(seconds=30),
                self._settings.efs_id,
            )  # fmt: skip
            self._arm(worker)
            try:
                while self.queue.now < until:
                    self.clock.move_to(self.queue.now)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(worker.work_once())
                    self.queue.move(0.5)
            finally:
                await cloud.close()

    def _arm(self, worker: DiskWorker) -> None:
        whole: Callable[[Any], Awaitable[Any]] = worker._answers  # pyright: ignore[reportPrivateUsage]

        async def answers(parcel: Any) -> Any:
            self.steps += 1
            answer = await whole(parcel)
            if self.steps == self.kill_at:
                raise Killed
            return answer

        worker._answers = answers  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]

    def bytes_of(self, job_id: int) -> Path:
        """Where pods see them."""
        row = self.disks.volume(job_id)
        assert self.claims.published[row["id"]] == row["cloud_id"]
        folder = self.fake.ebs.folder
        assert folder is not None
        return folder / row["cloud_id"]

    def volumes(self) -> list[dict[str, Any]]:
        return self.fake.ec2.describe_volumes()["Volumes"]

    def snapshots(self) -> list[dict[str, Any]]:
        ours = [{"Name": "tag:ManagedBy", "Values": ["odc"]}]
        return self.fake.ec2.describe_snapshots(Filters=ours)["Snapshots"]


@pytest.fixture
def site(database_url: str, fake: FakeAws) -> Iterator[Site]:
    with Sql(database_url) as sql:
        yield Site(sql, database_url, fake)


def a_life(site: Site) -> None:
    """Used in one zone, put away, used in another."""
    site.disks.create(size_gib=10)
    first = site.reserve(ZONES[0])
    site.work(20)
    site.reservations.facts(first, "started", 0)
    (site.bytes_of(first) / "thesis").write_text("chapter 1")
    site.claims.busy = 1
    site.reservations.facts(first, "lost", 0)
    site.work(40)
    second = site.reserve(ZONES[1])
    site.work(20)
    assert (site.bytes_of(second) / "thesis").read_text() == "chapter 1"
    site.reservations.facts(second, "started", 0)
    site.reservations.facts(second, "lost", 0)
    site.work(40)


def all_is_well(site: Site) -> None:
    assert site.volumes() == []
    assert site.claims.published == {}
    disk = site.disks.show()
    assert (disk["state"], disk["snapshot_count"], disk["trouble"]) == ("available", 2, None)
    assert len(site.snapshots()) == 2, "orphans"


@pytest.mark.long
def test_a_disk_moves_between_zones_and_keeps_its_ids_and_data(site: Site) -> None:
    """STO-05, SCH-08, BUG-31: volume, snapshot, volume; and the bytes with them."""
    a_life(site)
    all_is_well(site)
    rows = site.queue.sql.rows(
        "select v.zone, v.cloud_id, s.cloud_id as source, o.cloud_id as made "
        "from odc.disk_volume as v left join odc.disk_snapshot as s on s.id = v.snapshot_id "
        "join odc.disk_snapshot as o on o.volume_id = v.id order by v.id"
    )
    assert [row["zone"] for row in rows] == list(ZONES[:2])
    assert (rows[0]["source"], rows[1]["source"]) == (None, rows[0]["made"])
    made = {one["SnapshotId"]: one["VolumeId"] for one in site.snapshots()}
    assert made == {row["made"]: row["cloud_id"] for row in rows}


STEPS = 17
"""The minimum number of steps of a_life."""


@pytest.mark.long
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_kill_at_any_step_loses_and_duplicates_nothing(site: Site, step: int) -> None:
    """STO-10, BUG-06, BUG-23, BUG-24, BUG-37: the call succeeded, and its answer was lost."""
    site.kill_at = step
    a_life(site)
    assert site.kill_at is None, "it was killed"
    all_is_well(site)
    assert site.fake.count("CreateVolume") <= 3
    assert site.fake.count("CreateSnapshot") <= 3


@pytest.mark.long
@pytest.mark.parametrize("fault", ["throttle", "error", "swallow"])
@pytest.mark.parametrize(
    "action",
    ["CreateVolume", "DescribeVolumes", "CreateSnapshot", "DescribeSnapshots", "DeleteVolume"],
)
def test_a_disk_survives_the_failure_of_any_call(site: Site, action: str, fault: Any) -> None:
    """STO-10, BUG-21, BUG-24: throttled, failing, and done without an answer."""
    site.fake.fail(action, fault, times=2)
    a_life(site)
    all_is_well(site)


@pytest.mark.long
def test_the_next_waits_for_the_snapshot(site: Site) -> None:
    """STO-06, BUG-06: as a state in the queue; no worker waits."""
    site.disks.create(size_gib=10)
    job_id = site.reserve(ZONES[0])
    site.work(10)
    site.reservations.facts(job_id, "started", 0)
    (site.bytes_of(job_id) / "new").touch()
    site.fake.ebs.pending_polls = float("inf")
    site.reservations.facts(job_id, "lost", 0)
    site.work(30)
    after = site.reserve(ZONES[1])
    site.work(60)
    assert site.reservations.show(after)["reason"] == "SnapshotPending"
    site.fake.ebs.release()
    site.work(30)
    assert site.queue.start() == [after]
    site.work(10)
    assert (site.bytes_of(after) / "new").exists()


@pytest.mark.long
def test_a_snapshot_copy_of_another_account_is_never_restored(site: Site) -> None:
    """STO-07, BUG-12: it has all our tags and is newer."""
    a_life(site)
    newest = site.disks.show()["last_snapshot_id"]
    copy = site.fake.copy_snapshot(newest)
    job_id = site.reserve(ZONES[0])
    site.work(10)
    source = site.fake.last("CreateVolume")["SnapshotId"]
    assert source == newest != copy
    assert site.queue.running(job_id)


def test_a_user_has_a_folder_of_the_shared_file_system(database_url: str, fake: FakeAws) -> None:
    """STO-27, STO-28, STO-29, BUG-11, BUG-32: one access point, created once, for all files of the
    user."""
    efs_id = fake.make_file_system()
    with Sql(database_url) as sql:
        site = Site(sql, database_url, fake, efs_id=efs_id)
        for _ in range(2):
            site.reservations.reserve(details={"shared_storage": True})
        site.queue.start()
        fake.fail("CreateAccessPoint", "swallow", times=2)
        site.work(30)
        [point] = fake.efs.describe_access_points(FileSystemId=efs_id)["AccessPoints"]
        assert point["PosixUser"] == {"Uid": 1081, "Gid": 1081}, "who works in dev servers"
        assert site.claims.personal == {1001: f"{efs_id}::{point['AccessPointId']}"}
        before = fake.count("DescribeAccessPoints")
        site.reservations.reserve(details={"shared_storage": True})
        site.queue.start()
        site.work(10)
        assert fake.count("DescribeAccessPoints") == before


def test_a_cluster_that_is_away_delays_and_loses_nothing(site: Site) -> None:
    site.disks.create(size_gib=10)
    job_id = site.reserve(ZONES[0])
    site.claims.down = True
    site.work(20)
    assert "does not answer" in site.reservations.show(job_id)["message"]
    site.claims.down = False
    site.work(20)
    assert site.bytes_of(job_id).is_dir()
