"""Disks at AWS: each request creates one resource, whatever AWS answers; a list is complete or an
error."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from odcd.aws import records as aws_records
from odcd.aws.disks import Aws
from odcd.aws.link import Limits
from odcd.call_metrics import NOBODY, Calls
from odcd.disks import tags
from odcd.disks.cloud import Cloud, CloudBusy, CloudRefused, Snapshot, Volume
from odcd.disks.settings import DiskSettings
from odcd.metrics import Metrics
from tests.support.builders.jobs import NOW
from tests.support.fakes.aws import REGION, ZONES, FakeAws, Fault
from tests.support.fakes.clock import VirtualClock

pytestmark = pytest.mark.long

SERVER = "lab-1"
LIMITS = Limits(connect_s=10, read_s=30, tries=1)
BUSY: tuple[Fault, ...] = ("throttle", "error", "cut", "swallow", "half", "hang")

HASTY = replace(LIMITS, read_s=1.5)

Work = Callable[[Aws, VirtualClock], Awaitable[None]]


def run(
    fake: FakeAws, work: Work, *, limits: Limits = LIMITS, server: str = SERVER,
    calls: Calls = NOBODY, **settings: Any,
) -> None:  # fmt: skip
    async def all_of_it() -> None:
        clock = VirtualClock(NOW)
        disk_settings = DiskSettings(aws_region=REGION, aws_endpoint=fake.url, **settings)
        cloud = Aws(disk_settings, server, clock, limits, calls)
        await cloud.open()
        try:
            await work(cloud, clock)
        finally:
            await cloud.close()

    asyncio.run(all_of_it())


async def a_volume(cloud: Cloud, operation: str = "volume-lab-1", **changed: Any) -> Volume:
    fields: dict[str, Any] = {"zone": ZONES[0], "size_gib": 10, "snapshot_id": None, "tags": {}}
    return await cloud.create_volume(operation, **{**fields, **changed})


async def a_snapshot(cloud: Cloud, volume: str, operation: str = "snapshot-lab-1") -> Snapshot:
    return await cloud.create_snapshot(operation, volume_id=volume, tags={"a": "b"})


async def until_done(call: Callable[[], Awaitable[Any]], clock: VirtualClock) -> Any:
    for _ in range(10):
        try:
            return await call()
        except CloudBusy:
            clock.move(60)
    raise AssertionError("it stays busy")


# -- volumes ------------------------------------------------------------------------------------


def test_a_volume_is_created_as_requested(fake: FakeAws) -> None:
    """STO-02, STO-40: with the configured size and speed, gp3, and encrypted."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        made = await a_volume(cloud, size_gib=1024, tags={"disk_name": "main"})
        assert (made.state, made.zone, made.size_gib) == ("creating", ZONES[0], 1024)
        volume = fake.ec2.describe_volumes(VolumeIds=[made.id])["Volumes"][0]
        assert (volume["VolumeType"], volume["Iops"], volume["Throughput"]) == ("gp3", 16000, 1000)
        assert volume["Encrypted"]
        assert made.tags == {
            "disk_name": "main",
            "ManagedBy": "odc",
            "odc-server": SERVER,
            "odc-operation": "volume-lab-1",
        }
        assert await cloud.volumes([made.id]) == {made.id: replace(made, state="available")}

    run(fake, work, disk_iops=16000, disk_mbps=1000)
    request = fake.last("CreateVolume")
    assert "KmsKeyId" not in request
    assert (DiskSettings().disk_gib, DiskSettings().disk_iops, DiskSettings().disk_mbps) == (
        100, 3000, 125,
    )  # fmt: skip


def test_a_configured_kms_key_encrypts_volumes(fake: FakeAws) -> None:
    """STO-40: volumes are encrypted with the configured key, and so are their snapshots."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        made = await a_volume(cloud)
        snapshot = await a_snapshot(cloud, made.id)
        described = fake.ec2.describe_snapshots(SnapshotIds=[snapshot.id])["Snapshots"][0]
        assert described["Encrypted"]

    run(fake, work, disk_kms_key="alias/odc")
    assert fake.last("CreateVolume")["KmsKeyId"] == "alias/odc"


def test_a_volume_has_the_data_of_its_snapshot_in_any_zone(fake: FakeAws) -> None:
    """Followed by ids, and by bytes."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        first = await a_volume(cloud)
        fake.ebs.path(first.id).joinpath("thesis.tex").write_text("42")
        snapshot = await a_snapshot(cloud, first.id)
        fake.ebs.path(first.id).joinpath("thesis.tex").write_text("later")
        await cloud.delete_volume(first.id)
        second = await a_volume(cloud, "volume-lab-2", zone=ZONES[1], snapshot_id=snapshot.id)
        assert second.zone == ZONES[1]
        assert fake.ebs.path(second.id).joinpath("thesis.tex").read_text() == "42"
        assert await cloud.volumes([first.id, second.id]) == {
            second.id: replace(second, state="available")
        }

    run(fake, work)


def test_a_volume_becomes_available_and_is_attached_and_detached(fake: FakeAws) -> None:
    """A volume that its node does not release is detached by force."""
    fake.ebs.creating_polls = 2

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        id = (await a_volume(cloud)).id
        states = [(await cloud.volumes([id]))[id].state for _ in range(3)]
        assert states == ["creating", "creating", "available"]
        fake.ebs.attach(id, stuck=True)
        assert (await cloud.volumes([id]))[id].state == "in-use"
        with pytest.raises(CloudBusy, match="VolumeInUse") as busy:
            await cloud.delete_volume(id)
        assert not busy.value.sent
        await cloud.detach_volume(id, force=False)
        assert (await cloud.volumes([id]))[id].state == "in-use"
        await cloud.detach_volume(id, force=True)
        assert (await cloud.volumes([id]))[id].state == "available"
        await cloud.detach_volume(id, force=False)
        await cloud.delete_volume(id)
        await cloud.delete_volume(id)
        await cloud.detach_volume(id, force=True)
        assert await cloud.volumes([id]) == {}

    run(fake, work)


def test_a_failed_volume_has_the_state_error(fake: FakeAws) -> None:
    async def work(cloud: Aws, clock: VirtualClock) -> None:
        id = (await a_volume(cloud)).id
        fake.ebs.fail(id)
        assert (await cloud.volumes([id]))[id].state == "error"

    run(fake, work)


# -- made once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", BUSY)
def test_no_second_volume_after_any_trouble(fake: FakeAws, fault: Fault) -> None:
    """Intent is recorded before every call, so the call can be repeated: it finds the existing
    resource."""
    fake.fail("CreateVolume", fault)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        with pytest.raises(CloudBusy) as busy:
            await a_volume(cloud)
        assert busy.value.sent == (fault != "throttle")
        made = await a_volume(cloud)
        assert await a_volume(cloud) == replace(made, state="available")
        assert [volume.id for volume in await cloud.list_volumes()] == [made.id]

    run(fake, work, limits=HASTY if fault == "hang" else LIMITS)
    # And AWS itself recognizes it by its token, which has at most the allowed length.
    assert len(fake.last("CreateVolume")["ClientToken"]) == 64


def test_a_name_of_another_server_is_another_name() -> None:
    """Two servers may share an account, and a file system."""
    assert aws_records.token("lab-1", "storage-17") != aws_records.token("lab-2", "storage-17")


def test_another_operation_makes_another_volume(fake: FakeAws) -> None:
    async def work(cloud: Aws, clock: VirtualClock) -> None:
        first, second = await a_volume(cloud), await a_volume(cloud, "volume-lab-11")
        assert first.id != second.id
        assert fake.last("CreateVolume")["ClientToken"] != fake.calls[1].params["ClientToken"]

    run(fake, work)


def test_a_volume_created_with_other_tags_is_waited_for(fake: FakeAws) -> None:
    """AWS refuses a token that comes with other tags: the resource of the first call will
    appear."""
    fake.fail("CreateVolume", "refuse", code="IdempotentParameterMismatch")

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        with pytest.raises(CloudBusy, match="does not show"):
            await a_volume(cloud)

    run(fake, work)


@pytest.mark.parametrize("fault", BUSY)
def test_no_second_snapshot_after_any_trouble(fake: FakeAws, fault: Fault) -> None:
    """STO-10: EC2 has no token for snapshots; after an unanswered call the snapshot is searched."""
    fake.ebs.pending_polls = math.inf
    fake.fail("CreateSnapshot", fault)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        with pytest.raises(CloudBusy):
            await a_snapshot(cloud, volume)
        made = await until_done(lambda: a_snapshot(cloud, volume), clock)
        assert [one.id for one in await cloud.list_snapshots()] == [made.id]
        assert made.tags["odc-operation"] == "snapshot-lab-1"

    run(fake, work, limits=HASTY if fault == "hang" else LIMITS)
    assert len(fake.ec2.describe_snapshots(Filters=[{"Name": "tag:a", "Values": ["b"]}])[
        "Snapshots"
    ]) == 1  # fmt: skip


def test_a_snapshot_that_does_not_show_yet_is_waited_for(fake: FakeAws) -> None:
    """STO-10: EC2's lists lag; for a while nothing is asked for again after an unanswered call."""
    fake.ebs.pending_polls = math.inf
    fake.fail("CreateSnapshot", "swallow")

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        with pytest.raises(CloudBusy):
            await a_snapshot(cloud, volume)
        [made] = fake.ec2.describe_snapshots(Filters=[{"Name": "tag:a", "Values": ["b"]}])[
            "Snapshots"
        ]
        fake.ebs.hide(made["SnapshotId"], 1)
        with pytest.raises(CloudBusy, match="may already be creating a snapshot") as busy:
            await a_snapshot(cloud, volume)
        assert busy.value.sent
        assert (await a_snapshot(cloud, volume)).id == made["SnapshotId"]

    run(fake, work)
    assert fake.count("CreateSnapshot") == 1


def test_a_snapshot_that_was_never_created_is_requested_again(fake: FakeAws) -> None:
    fake.fail("CreateSnapshot", "cut")

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        with pytest.raises(CloudBusy):
            await a_snapshot(cloud, volume)
        with pytest.raises(CloudBusy, match="may already be creating a snapshot"):
            await a_snapshot(cloud, volume)
        clock.move(LIMITS.settle_s)
        assert (await a_snapshot(cloud, volume)).state == "pending"

    run(fake, work)


def test_a_pending_snapshot_is_reused_by_another_operation(fake: FakeAws) -> None:
    """STO-10: another operation gets the pending snapshot, and sees whose it is."""
    fake.ebs.pending_polls = math.inf

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        first, same = await asyncio.gather(
            a_snapshot(cloud, volume), a_snapshot(cloud, volume, "snapshot-lab-2")
        )
        assert first.id == same.id
        assert same.tags["odc-operation"] == "snapshot-lab-1"
        fake.ebs.release()
        third = await a_snapshot(cloud, volume, "snapshot-lab-3")
        assert third.id != first.id

    run(fake, work)
    assert fake.count("CreateSnapshot") == 2


def test_idempotent_calls_are_repeated(fake: FakeAws) -> None:
    fake.fail("DescribeVolumes", "throttle", times=2)
    fake.fail("DeleteVolume", "error", times=2)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        assert await cloud.list_volumes() == []
        await cloud.delete_volume("vol-0123456789abcdef0")

    run(fake, work, limits=replace(LIMITS, tries=3))
    assert (fake.count("DescribeVolumes"), fake.count("DeleteVolume")) == (3, 3)


def test_creating_calls_are_never_repeated_by_the_library(fake: FakeAws) -> None:
    fake.fail("CreateSnapshot", "swallow", times=math.inf)
    fake.fail("CreateVolume", "error", times=math.inf, after=1)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        with pytest.raises(CloudBusy):
            await a_volume(cloud, "volume-lab-2")
        with pytest.raises(CloudBusy):
            await a_snapshot(cloud, volume)

    run(fake, work, limits=replace(LIMITS, tries=4))
    assert (fake.count("CreateSnapshot"), fake.count("CreateVolume")) == (1, 2)


def test_calls_are_timed_and_failures_counted_but_not_found_is_no_failure(
    fake: FakeAws,
) -> None:
    metrics = Metrics()
    fake.fail("DescribeVolumes", "throttle", times=math.inf, after=2)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        assert await cloud.volumes(["vol-0123456789abcdef0"]) == {}
        with pytest.raises(CloudBusy):
            await cloud.list_volumes()

    run(fake, work, limits=replace(LIMITS, tries=1), calls=metrics.backend("aws"))

    def metric(name: str, operation: str) -> float | None:
        labels = {"backend": "aws", "operation": operation}
        return metrics.registry.get_sample_value(f"odcd_backend_{name}", labels)

    assert metric("request_seconds_count", "DescribeVolumes") == fake.count("DescribeVolumes")
    assert metric("errors_total", "DescribeVolumes") == fake.count("DescribeVolumes") - 2


# -- messages ----------------------------------------------------------------------------------


def test_a_snapshot_is_pending_with_its_progress_until_it_is_completed(fake: FakeAws) -> None:
    """The message for a user who waits for it."""
    fake.ebs.pending_polls = 2

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        made = await a_snapshot(cloud, volume)
        assert (made.state, made.progress, made.volume_id) == ("pending", 0, volume)
        snapshots = [(await cloud.snapshots([made.id]))[made.id] for _ in range(3)]
        assert [one.state for one in snapshots] == ["pending", "pending", "completed"]
        assert snapshots[0].progress < snapshots[1].progress < snapshots[2].progress == 100
        assert snapshots[2].started_at.tzinfo is not None
        fake.ebs.fail(made.id)
        assert (await cloud.snapshots([made.id]))[made.id].state == "error"
        await cloud.delete_snapshot(made.id)
        await cloud.delete_snapshot(made.id)
        assert await cloud.snapshots([made.id]) == {}

    run(fake, work)


def test_a_new_resource_that_aws_does_not_list_yet_is_not_treated_as_deleted(fake: FakeAws) -> None:
    """An id is reported as absent only when AWS is certain: after that its row would be given
    up."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = await a_volume(cloud)
        snapshot = await a_snapshot(cloud, volume.id)
        for id, look in ((volume.id, cloud.volumes), (snapshot.id, cloud.snapshots)):
            fake.ebs.hide(id, 2)
            with pytest.raises(CloudBusy, match="does not show"):
                await look([id])
            assert list(await look([id])) == [id]
            fake.ebs.hide(id, 1)
            assert list(await look([id])) == [id]
        clock.move(LIMITS.new_s)
        fake.ebs.hide(volume.id, 2)
        assert await cloud.volumes([volume.id]) == {}

    run(fake, work)


@pytest.mark.parametrize("fault", ["throttle", "cut", "half", "refuse"])
def test_a_listing_is_complete_or_an_error(fake: FakeAws, fault: Fault) -> None:
    """A listing is complete, or an error: with half of one, disks would be given up."""
    fake.ebs.page_size = 2

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        made = [(await a_volume(cloud, f"volume-lab-{n}")).id for n in range(5)]
        copied = [(await a_snapshot(cloud, id, f"snapshot-{id}")).id for id in made]
        for one in range(3):
            await cloud.create_access_point(
                f"access-{one}", uid=one, gid=one, path=f"/{one}", tags={}
            )
        lists: list[tuple[str, Callable[[], Awaitable[list[Any]]], list[str]]] = [
            ("DescribeVolumes", cloud.list_volumes, made),
            ("DescribeSnapshots", cloud.list_snapshots, copied),
        ]
        for action, call, ids in lists:
            assert sorted(one.id for one in await call()) == sorted(ids)
            fake.fail(action, fault, after=2)
            with pytest.raises((CloudBusy, CloudRefused)):
                await call()
            fake.heal()
        fake.fail("DescribeVolumes", fault)
        with pytest.raises((CloudBusy, CloudRefused)):
            await cloud.volumes(made[:1])
        fake.fail("DescribeAccessPoints", fault, after=1, times=2)
        with pytest.raises((CloudBusy, CloudRefused)):
            await cloud.access_points()
        fake.heal()
        assert len(await cloud.access_points()) == 3

    run(fake, work, efs_id=fake.make_file_system())


def test_only_resources_of_this_server_are_listed(fake: FakeAws) -> None:
    """Resources of a second server in the account, and all others, are not ours."""

    async def ours(cloud: Aws, clock: VirtualClock) -> None:
        await a_snapshot(cloud, (await a_volume(cloud)).id)

    async def theirs(cloud: Aws, clock: VirtualClock) -> None:
        assert await cloud.list_volumes() == []
        assert await cloud.list_snapshots() == []

    run(fake, ours, server="lab-1")
    fake.ec2.create_volume(AvailabilityZone=ZONES[0], Size=1)
    run(fake, theirs, server="lab-2")


def test_wildcards_in_a_tag_filter_are_escaped() -> None:
    """EC2 treats * and ? in a filter as wildcards."""
    assert aws_records.tag_filter("odc-server", "a*b?\\c") == {
        "Name": "tag:odc-server",
        "Values": ["a\\*b\\?\\\\c"],
    }


def test_snapshots_created_by_others_are_ignored(fake: FakeAws) -> None:
    """STO-07, BUG-12: copies by other accounts and by ours, and snapshots of a backup service, all
    with our tags; a pending one does not make odc wait."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        volume = (await a_volume(cloud)).id
        made = await a_snapshot(cloud, volume)
        fake.copy_snapshot(made.id)
        fake.copy_snapshot(made.id, owner="123456789012")
        fake.foreign_snapshot(volume, owner="999999999999", polls=math.inf)
        fake.foreign_snapshot(volume, polls=math.inf)
        assert [one.id for one in await cloud.list_snapshots()] == [made.id]
        again = await a_snapshot(cloud, volume, "snapshot-lab-2")
        assert again.id != made.id
        assert again.tags["odc-operation"] == "snapshot-lab-2"

    run(fake, work)


def test_tags_have_the_names_that_gpu_dev_scripts_use(fake: FakeAws) -> None:
    """STO-09: the names that gpu-dev's scripts search for, on volumes and snapshots."""
    at = NOW + timedelta(days=1)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        of_volume = tags.volume_tags("ann", "main", created_at=NOW, used_at=at)
        volume = await a_volume(cloud, tags=of_volume)
        assert of_volume.keys() == {
            "gpu-dev-user", "disk_name", "Name", "created_at", "last_used",
        }  # fmt: skip
        assert of_volume.items() < volume.tags.items()
        of_snapshot = tags.snapshot_tags("ann", "main", "shutdown", created_at=at, size_gib=100)
        made = await cloud.create_snapshot("s-1", volume_id=volume.id, tags=of_snapshot)
        assert {"SnapshotType": "shutdown", "disk_size": "100", "gpu-dev-user": "ann",
                "disk_name": "main"}.items() < made.tags.items()  # fmt: skip
        kept = tags.contents_tag("/v1/disks/main/contents/7")
        gone = tags.deleted_tags(marked_at=NOW, delete_at=NOW + timedelta(days=30))
        await cloud.tag([made.id, volume.id], kept | gone | {"disk_name": "renamed"})
        snapshot_tags = (await cloud.snapshots([made.id]))[made.id].tags
        assert snapshot_tags["snapshot_content_s3"] == "/v1/disks/main/contents/7"
        assert snapshot_tags["delete-date"] == f"{NOW + timedelta(days=30):%Y-%m-%d}"
        assert snapshot_tags["disk_name"] == "renamed"
        assert snapshot_tags["odc-operation"] == "s-1"
        await cloud.tag([], kept)

    run(fake, work)


def test_a_permanent_refusal_of_aws_is_reported_with_its_message(fake: FakeAws) -> None:
    fake.fail("CreateVolume", "refuse", code="UnauthorizedOperation")
    fake.fail("CreateVolume", "refuse", code="InsufficientVolumeCapacity")

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        with pytest.raises(CloudRefused, match="told to say so") as refused:
            await a_volume(cloud)
        assert refused.value.code == "UnauthorizedOperation"
        with pytest.raises(CloudBusy) as busy:
            await a_volume(cloud)
        assert not busy.value.sent
        with pytest.raises(CloudRefused, match=r"InvalidSnapshot\.NotFound"):
            await a_volume(cloud, snapshot_id="snap-0123456789abcdef0")

    run(fake, work)


def test_an_aws_that_cannot_be_reached_is_busy(
    fake: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_keys(cloud: Aws, clock: VirtualClock) -> None:
        with pytest.raises(CloudBusy, match="credentials") as busy:
            await a_volume(cloud)
        assert not busy.value.sent

    async def nobody(cloud: Aws, clock: VirtualClock) -> None:
        with pytest.raises(CloudBusy, match="reached") as busy:
            await cloud.list_volumes()
        assert not busy.value.sent

    with monkeypatch.context() as none:
        none.delenv("AWS_ACCESS_KEY_ID")
        run(fake, no_keys)
    fake.server_close()
    run(fake, nobody)


# -- access points ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", BUSY)
def test_the_access_point_of_a_user_is_created_once(fake: FakeAws, fault: Fault) -> None:
    """STO-28, STO-29, BUG-11: one access point for each user on one file system; a lookup that
    fails makes no second one."""
    fake.fail("CreateAccessPoint", fault)
    # A GET that loses its connection is repeated once by the HTTP client itself.
    fake.fail("DescribeAccessPoints", fault, after=1, times=2)

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        async def make() -> Any:
            return await cloud.create_access_point(
                "access-point-lab-1", uid=1081, gid=1081, path="/users/17", tags={"Name": "ann"}
            )

        for _ in range(2):
            with pytest.raises(CloudBusy):
                await make()
        fake.heal()
        made = await make()
        assert (await make()) == made
        assert await cloud.access_points() == [made]
        assert (made.path, made.uid, made.gid, made.state) == ("/users/17", 1081, 1081, "available")
        other = await cloud.create_access_point(
            "access-point-lab-2", uid=1081, gid=1081, path="/users/18", tags={}
        )
        assert other.id != made.id

    limits = HASTY if fault == "hang" else LIMITS
    run(fake, work, limits=limits, efs_id=fake.make_file_system())


def test_one_listing_finds_the_access_point_of_a_user(fake: FakeAws) -> None:
    """BUG-32: there is no call per user, and none at all once the id is stored."""

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        for uid in range(4):
            await cloud.create_access_point(
                f"a-{uid}", uid=uid, gid=uid, path=f"/users/{uid}", tags={}
            )
        fake.calls.clear()
        await cloud.create_access_point("a-2", uid=2, gid=2, path="/users/2", tags={})
        assert [call.action for call in fake.calls] == ["DescribeAccessPoints"]

    run(fake, work, efs_id=fake.make_file_system())


def test_duplicate_access_points_lead_to_the_same_files(fake: FakeAws) -> None:
    """BUG-11: a duplicate does not remove a user's data, because the folder has it."""
    file_system = fake.make_file_system()

    async def work(cloud: Aws, clock: VirtualClock) -> None:
        def make() -> Awaitable[Any]:
            return cloud.create_access_point("a-1", uid=1, gid=1, path="/users/1", tags={})

        made = await make()
        fake.efs.create_access_point(
            ClientToken="2", FileSystemId=file_system, PosixUser={"Uid": 1, "Gid": 1},
            RootDirectory={"Path": "/users/1"},
            Tags=[{"Key": name, "Value": value} for name, value in made.tags.items()],
        )  # fmt: skip
        assert (await make()) == (await make())
        assert {one.path for one in await cloud.access_points()} == {"/users/1"}

    run(fake, work, efs_id=file_system)


def test_without_a_file_system_there_are_no_folders(fake: FakeAws) -> None:
    async def work(cloud: Aws, clock: VirtualClock) -> None:
        assert await cloud.access_points() == []
        with pytest.raises(CloudRefused, match="ODC_EFS_ID"):
            await cloud.create_access_point("a-1", uid=1, gid=1, path="/users/1", tags={})

    run(fake, work)


def test_aws_implements_the_cloud_protocol() -> None:
    made: Callable[..., Cloud] = Aws
    assert made
