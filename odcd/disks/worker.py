"""Carry out the work that is due for disks. The database lists it, the cloud and the cluster do it,
and their answers are recorded. Runs on the leader only.

No state is kept here: after a worker is killed, the next one sends the same requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Protocol

from odcd.clock import Clock
from odcd.disks.cloud import OPERATION, Cloud, CloudBusy, CloudRefused, Snapshot, Volume
from odcd.disks.gpu_dev import TagNames, find_disks
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.isolation import Isolation, IsolationWatch
from odcd.stores.disk_work import DiskWork, DiskWorkStore

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Concurrent calls to the cloud and the cluster."""
RECONCILE_EVERY = timedelta(minutes=5)
DEV_SERVER_UID = 1081
"""The uid of every user in dev servers: files of shared storage appear as their own."""
SOON_S = 0.25
"""The time between two checks while work is in progress."""

Answer = Mapping[str, object]


class Claims(Protocol):
    """Gives pods access to disks. Every call can be repeated, and raises RunnerDown or
    ApiRefused."""

    async def publish(self, volume_id: int, cloud_id: str, zone: str, size_gib: int) -> None:
        """Afterwards, pods that name the claim of this row can be scheduled in its zone."""
        ...

    async def withdraw(self, volume_id: int) -> bool:
        """Return True if no pod can use it any longer; False: one still does, so call again."""
        ...

    async def publish_personal(self, uid: int, file_system: str, access_point: str) -> None: ...


class DiskWorker:
    def __init__(
        self, term: int, store: DiskWorkStore, cloud: Cloud, claims: Claims, clock: Clock,
        every: timedelta, efs_id: str | None = None, leads: Callable[[], bool] = lambda: True,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """every: check at least this often. efs_id: the shared file system. leads: whether no other
        daemon can be the leader yet."""
        self._term = term
        self._store = store
        self._cloud = cloud
        self._claims = claims
        self._clock = clock
        self._every = every
        self._efs_id = efs_id
        self._leads = leads
        self._wake = asyncio.Event()
        self._doing: set[tuple[str, int]] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._isolation = Isolation[DiskWork](
            "disks", clock, watch, key=lambda work: (work.kind, work.id)
        )
        self._listing = Isolation[str]("disks", clock, watch)

    def wake(self) -> None:
        """Called on a change: a job may have taken a disk, or ended."""
        self._wake.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        # First: a database restored from a backup lacks the newest snapshots.
        await self._reconcile_apart()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconcile(), name="reconcile disks")
            while True:
                self._wake.clear()
                for parcel in await self._take():
                    group.create_task(self._do(parcel))
                try:
                    async with asyncio.timeout(await self._patience_s()):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    async def work_once(self) -> int:
        """Do all the work that is due, and return how much there was."""
        parcels = await self._take()
        await asyncio.gather(*map(self._do, parcels))
        return sum(map(len, parcels))

    async def _take(self) -> list[list[DiskWork]]:
        """Work that is due and not in progress, grouped by what a single call can do."""
        if not self._leads():
            return []
        due = await self._store.take(self._term, self._clock.now())
        ready = self._isolation.ready(due)
        new = [work for work in ready if (work.kind, work.id) not in self._doing]
        self._doing.update((work.kind, work.id) for work in new)
        looks = [
            [work for work in new if work.verb == "look" and work.kind == kind]
            for kind in ("volume", "snapshot")
        ]
        return [*filter(None, looks), *([work] for work in new if work.verb != "look")]

    async def _patience_s(self) -> float:
        every_s = self._every.total_seconds()
        if not self._leads():
            return SOON_S
        next_at = await self._store.get_next_time()
        if next_at is None:
            return every_s
        # Work that is set aside stays due.
        soonest_s = SOON_S if self._doing else every_s if len(self._isolation) else 0.0
        return min(every_s, max(soonest_s, (next_at - self._clock.now()).total_seconds()))

    async def _do(self, parcel: list[DiskWork]) -> None:
        try:
            async with self._slots:
                answers = await self._answers(parcel)
            for work, answer in zip(parcel, answers, strict=True):
                if "busy" in answer or "refused" in answer:
                    log.warning(
                        f"disk.{work.kind}_{work.verb}",
                        extra={"id": work.id, "cloud_id": work.cloud_id, "why": str(answer)},
                    )
                await self._isolation.one(
                    work, self._store.record(self._term, work, answer, self._clock.now())
                )
        finally:
            self._doing.difference_update((work.kind, work.id) for work in parcel)
            self._wake.set()

    async def _answers(self, parcel: list[DiskWork]) -> list[Answer]:
        try:
            if parcel[0].verb == "look":
                return await self._look(parcel)
            return [await self._act(work) for work in parcel]
        except (CloudBusy, RunnerDown) as error:
            return [{"busy": error.message}] * len(parcel)
        except CloudRefused as error:
            return [{"refused": f"{error.message} ({error.code})"}] * len(parcel)
        except ApiRefused as error:
            outcome = "busy" if error.passing else "refused"
            return [{outcome: f"the cluster refused it: {error.message}"}] * len(parcel)
        except Exception as error:
            # Disks wait for a fix; everything else continues.
            log.exception("disk.failed", extra={"verb": parcel[0].verb})
            return [{"busy": f"odc failed: {type(error).__name__}"}] * len(parcel)

    async def _look(self, parcel: list[DiskWork]) -> list[Answer]:
        ids = [work.cloud_id for work in parcel if work.cloud_id is not None]
        if parcel[0].kind == "volume":
            volumes = await self._cloud.volumes(ids)
            return [_answer_from(work.cloud_id, volumes) for work in parcel]
        snapshots = await self._cloud.snapshots(ids)
        return [_answer_from(work.cloud_id, snapshots) for work in parcel]

    async def _act(self, work: DiskWork) -> Answer:
        match work.kind, work.verb:
            case "volume", "create":
                if work.zone is None:
                    return {"refused": "the zone of its node is not known"}
                assert work.size_gib is not None
                return _of(
                    await self._cloud.create_volume(
                        work.operation,
                        zone=work.zone,
                        size_gib=work.size_gib,
                        snapshot_id=work.snapshot_cloud_id,
                        tags=work.tags,
                    )
                )
            case "volume", "detach":
                await self._cloud.detach_volume(_id(work.cloud_id), force=True)
            case "volume", "delete":
                await self._cloud.delete_volume(_id(work.cloud_id))
            case "volume", "withdraw":
                return {"done": await self._claims.withdraw(work.id)}
            case "volume", "publish":
                assert work.zone is not None
                assert work.size_gib is not None
                await self._claims.publish(work.id, _id(work.cloud_id), work.zone, work.size_gib)
            case "snapshot", "create":
                return _of(
                    await self._cloud.create_snapshot(
                        work.operation, volume_id=_id(work.volume_cloud_id), tags=work.tags
                    )
                )
            case "snapshot", "save":
                return await self._save_volume(work)
            case "snapshot", "adopt":
                adopted = await self._cloud.adopt_snapshot(
                    work.operation, _id(work.cloud_id), tags=work.tags
                )
                return _answer_from(work.cloud_id, {adopted.id: adopted} if adopted else {})
            case "import", "list":
                found = await self._cloud.list_tagged(work.tags["user"])
                return {"found": find_disks(*found, TagNames(**work.tags))}
            case "snapshot", "label":
                await self._cloud.tag([_id(work.cloud_id)], work.tags)
            case "snapshot", "delete":
                await self._cloud.delete_snapshot(_id(work.cloud_id))
            case "storage", "create":
                made = await self._cloud.create_access_point(
                    work.operation,
                    uid=DEV_SERVER_UID,
                    gid=DEV_SERVER_UID,
                    path=f"/users/{work.uid}",
                    tags=work.tags,
                )
                return {"cloud_id": made.id}
            case "storage", "publish":
                assert self._efs_id is not None
                await self._claims.publish_personal(work.uid, self._efs_id, _id(work.cloud_id))
            case _:
                raise AssertionError(f"unknown work: {work.kind} {work.verb}")
        return {"done": True}

    async def _save_volume(self, work: DiskWork) -> Answer:
        """Make a snapshot of a volume of gpu-dev, which no node may be writing to."""
        volume_id = _id(work.volume_cloud_id)
        volume = (await self._cloud.volumes([volume_id])).get(volume_id)
        if volume is None:
            return {"refused": f"gpu-dev's volume {volume_id} no longer exists"}
        if volume.state != "available":
            return {"busy": f"gpu-dev is using volume {volume_id}: it is {volume.state}"}
        return _of(
            await self._cloud.create_snapshot(work.operation, volume_id=volume_id, tags=work.tags)
        )

    async def _reconcile(self) -> None:
        """Compare the cloud's lists with the database. A failed listing changes nothing."""
        while True:
            await self._clock.sleep(RECONCILE_EVERY.total_seconds())
            if self._leads():
                await self._reconcile_apart()

    async def _reconcile_apart(self) -> None:
        """Work on disks goes on if the lists cannot be compared."""
        await self._listing.one("lists", self.reconcile_once())

    async def reconcile_once(self) -> int | None:
        """Return how many orphans the cloud has; None: unknown."""
        listed_at = self._clock.now()
        try:
            volumes = await self._cloud.list_volumes()
            snapshots = await self._cloud.list_snapshots()
        except (CloudBusy, CloudRefused) as error:
            log.warning("disks.not_listed", extra={"why": error.message})
            return None
        unknown = await self._store.reconcile(
            self._term, _listed(volumes), _listed(snapshots), listed_at, self._clock.now()
        )
        if unknown is None:
            seen = {"volumes": len(volumes), "snapshots": len(snapshots)}
            log.error("disks.empty_listing", extra=seen)
        elif unknown:
            log.warning("disks.strays", extra={"count": unknown})
        return unknown


def _answer_from(
    cloud_id: str | None, found: Mapping[str, Volume] | Mapping[str, Snapshot]
) -> Answer:
    one = found.get(cloud_id) if cloud_id is not None else None
    return {"cloud_id": cloud_id, "state": "missing"} if one is None else _of(one)


def _of(one: Volume | Snapshot) -> Answer:
    progress = {"progress": one.progress} if isinstance(one, Snapshot) else {}
    return {"cloud_id": one.id, "state": one.state, **progress}


def _id(cloud_id: str | None) -> str:
    assert cloud_id is not None
    return cloud_id


def _listed(found: Iterable[Volume | Snapshot]) -> list[Mapping[str, object]]:
    return [
        {"id": one.id, "operation": one.tags.get(OPERATION), "tags": dict(one.tags)}
        for one in found
    ]
