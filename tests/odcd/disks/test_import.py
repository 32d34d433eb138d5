"""Disks of gpu-dev in the cloud, imported by an operator and used by odc's own worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from odcd.records.job import Identity
from tests.odcd.disks.test_worker import Site
from tests.support.builders.dev_servers import actor
from tests.support.builders.jobs import ALICE, BOB, ROOT
from tests.support.fakes.aws import ZONES, FakeAws
from tests.support.fakes.gpu_dev import GpuDev
from tests.support.harness.database import Sql

TAGS = {"user": "gpu-dev-user", "disk": "disk_name", "kind": "SnapshotType"}


class Importer(Site):
    """A site whose account gpu-dev uses, too."""

    def __init__(self, sql: Sql, url: str, fake: FakeAws) -> None:
        super().__init__(sql, url, fake)
        self.gpu_dev = GpuDev(fake)
        for who in (ALICE, BOB):
            self.queue.sql.execute(
                "insert into odc.login_user (user_name, uid, made_at, login_at) "
                "values ($1, $2, $3, $3)",
                who.user, who.uid, self.queue.now,
            )  # fmt: skip

    def ask(
        self, *, apply: bool = True, owners: dict[str, str] | None = None,
        users: list[str] | None = None, tags: dict[str, str] | None = None, who: Identity = ROOT,
    ) -> int:  # fmt: skip
        text = self.queue.sql.value(
            "select odc.request_import($1::jsonb, $2::jsonb, $3, $4::jsonb, $5, $6)",
            actor(who), json.dumps(owners or {}), users, json.dumps(TAGS | (tags or {})), apply,
            self.queue.now,
        )  # fmt: skip
        return json.loads(text)["id"]

    def show(self, number: int) -> dict[str, Any]:
        text = self.queue.sql.value("select odc.show_import($1::jsonb, $2)", actor(ROOT), number)
        return json.loads(text)

    def run(self, seconds: float = 4, **options: Any) -> list[dict[str, Any]]:
        number = self.ask(**options)
        self.work(seconds)
        found = self.show(number)
        assert found["state"] == "done", found
        return found["disks"]

    def outcomes(self, **options: Any) -> dict[str, str]:
        return {
            f"{disk['gpu_dev_user']}/{disk['gpu_dev_disk']}": disk["outcome"]
            for disk in self.run(**options)
        }

    def all_disks(self) -> list[dict[str, Any]]:
        return json.loads(
            self.queue.sql.value(
                "select odc.list_disks($1::jsonb, 'all', $2)", actor(ROOT), self.queue.now
            )
        )


@pytest.fixture
def site(database_url: str, fake: FakeAws) -> Iterator[Importer]:
    with Sql(database_url) as sql:
        yield Importer(sql, database_url, fake)


def test_a_dry_run_reports_and_changes_nothing(site: Importer) -> None:
    old = site.gpu_dev.saved(word="old")
    new = site.gpu_dev.saved(word="new")
    tags = site.gpu_dev.tags(new)
    [disk] = site.run(apply=False)
    assert disk["outcome"] == "import"
    assert (disk["user"], disk["name"], disk["cloud_id"]) == ("alice", "main", new)
    assert (disk["kind"], disk["size_gib"], disk["snapshot_count"]) == ("snapshot", 20, 2)
    assert disk["last_used_at"] is not None
    assert site.all_disks() == []
    assert site.gpu_dev.tags(new) == tags
    assert "ManagedBy" not in site.gpu_dev.tags(old)
    assert site.fake.count("CreateTags") == 0


def test_a_dev_server_uses_the_imported_disk_and_saves_it(site: Importer) -> None:
    """From gpu-dev's snapshot to a snapshot of odc, by odc's own worker, in another zone."""
    source = site.gpu_dev.saved(word="thesis", snapshot_content_s3="s3://b/alice/main/x.txt")
    assert site.outcomes() == {"alice/main": "imported"}
    disk = site.disks.show()
    assert (disk["state"], disk["size_gib"]) == ("available", 20)
    assert disk["last_snapshot_id"] == source
    contents = site.disks.act("show_contents", None, "main")["contents"]
    assert contents == "gpu-dev listed the files of this snapshot in s3://b/alice/main/x.txt"

    first = site.reserve(ZONES[1])
    site.work(10)
    assert site.fake.last("CreateVolume")["SnapshotId"] == source
    assert site.fake.last("CreateVolume")["Size"] == "20"
    assert site.fake.last("CreateVolume")["Encrypted"] == "true"
    assert (site.bytes_of(first) / "thesis").exists()
    (site.bytes_of(first) / "chapter-2").touch()
    site.reservations.facts(first, "started", 0)
    site.reservations.facts(first, "lost", 0)
    site.work(40)
    second = site.reserve(ZONES[0])
    site.work(10)
    assert {one.name for one in site.bytes_of(second).iterdir()} == {"thesis", "chapter-2"}
    assert site.disks.show()["snapshot_count"] == 2


def test_an_adopted_snapshot_has_odcs_tags_and_keeps_those_of_gpu_dev(site: Importer) -> None:
    """STO-09: else gpu-dev would no longer find it, and odc's role could not delete it."""
    source = site.gpu_dev.saved("ann@example.com")
    before = site.gpu_dev.tags(source)
    site.run(owners={"ann@example.com": "bob"})
    after = site.gpu_dev.tags(source)
    assert before.items() <= after.items()
    assert after["ManagedBy"] == "odc"
    assert after["odc-adopted"] == "gpu-dev"
    assert after["odc-disk"] == "bob/main"
    site.disks.act("rename_disk", None, "main", "home", who=BOB)
    site.work(4)
    renamed = site.gpu_dev.tags(source)
    assert renamed["odc-disk"] == "bob/home"
    assert before.items() <= renamed.items()


def test_an_imported_snapshot_is_deleted_by_the_rules_of_odc(site: Importer) -> None:
    source = site.gpu_dev.saved()
    other = site.gpu_dev.saved("bob")
    site.run(users=["alice"])
    site.disks.act("delete_disk", None, "main")
    site.work(4)
    assert "delete-date" in site.gpu_dev.tags(source)
    [again] = site.run(users=["alice"])
    assert again["outcome"] == "skipped"
    assert 'it was imported as disk "main" of alice, which was deleted' in again["why"]
    site.queue.move(31 * 86_400)
    site.queue.sweep()
    site.work(4)
    left = {one["SnapshotId"] for one in site.fake.ec2.describe_snapshots()["Snapshots"]}
    assert source not in left
    assert other in left


def test_an_older_snapshot_of_a_disk_that_was_deleted_here_is_not_imported(
    site: Importer,
) -> None:
    site.gpu_dev.saved(word="old")
    site.gpu_dev.saved(word="new")
    site.run()
    site.disks.act("delete_disk", None, "main")
    site.work(4)
    assert site.outcomes() == {"alice/main": "skipped"}


def test_the_same_import_twice_changes_nothing(site: Importer) -> None:
    site.gpu_dev.saved()
    site.gpu_dev.volume("bob", word="b")
    site.run(8)
    disks, tagged = site.all_disks(), site.fake.count("CreateTags")
    made = site.fake.count("CreateSnapshot")
    again = site.run(8)
    assert [disk["outcome"] for disk in again] == ["present", "present"]
    assert [disk["why"] for disk in again] == ["it was imported before"] * 2
    assert site.all_disks() == disks
    assert (site.fake.count("CreateTags"), site.fake.count("CreateSnapshot")) == (tagged, made)


def test_two_imports_at_once_import_each_disk_once(site: Importer) -> None:
    site.gpu_dev.saved()
    first, second = site.ask(), site.ask()
    site.work(4)
    outcomes = [site.show(number)["disks"][0]["outcome"] for number in (first, second)]
    assert sorted(outcomes) == ["imported", "present"]
    assert len(site.all_disks()) == 1


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 3, 4, 5])
def test_a_daemon_killed_at_any_step_imports_everything_once(site: Importer, step: int) -> None:
    """1: the listing; 3: a snapshot's tags and a volume's snapshot, together; then it looks."""
    site.gpu_dev.saved(word="a")
    site.gpu_dev.volume("bob", word="b")
    site.fake.ebs.pending_polls = 2
    site.kill_at = step
    assert site.outcomes(seconds=20) == {"alice/main": "imported", "bob/main": "imported"}
    assert site.kill_at is None, "it was killed"
    assert [disk["state"] for disk in site.all_disks()] == ["available", "available"]
    assert site.fake.count("CreateSnapshot") == 1


@pytest.mark.long
@pytest.mark.parametrize("action", ["DescribeSnapshots", "DescribeVolumes", "CreateTags"])
@pytest.mark.parametrize("fault", ["throttle", "swallow"])
def test_an_import_survives_the_failure_of_any_call(
    site: Importer, action: str, fault: Any
) -> None:
    site.gpu_dev.saved()
    site.fake.fail(action, fault, times=2)
    assert site.outcomes(seconds=20) == {"alice/main": "imported"}
    assert site.disks.show()["state"] == "available"


def test_a_volume_is_saved_and_left_in_place(site: Importer) -> None:
    """STO-25: it may have newer data than any snapshot: gpu-dev leaves such volumes
    behind."""
    old = site.gpu_dev.saved(word="old")
    volume = site.gpu_dev.volume(word="new")
    [disk] = site.run(8)
    assert (disk["kind"], disk["cloud_id"]) == ("volume", volume)
    assert "ManagedBy" not in site.gpu_dev.tags(old)
    assert site.gpu_dev.tags(volume)["ManagedBy"] == "gpu-dev-cli"
    job_id = site.reserve(ZONES[1])
    site.work(10)
    assert [one.name for one in site.bytes_of(job_id).iterdir()] == ["new"]
    assert volume in {one["VolumeId"] for one in site.volumes()}


def test_a_volume_that_gpu_dev_takes_meanwhile_is_not_saved(site: Importer) -> None:
    """A snapshot of a volume that a pod writes to would be torn."""
    volume = site.gpu_dev.volume()
    number = site.ask()
    site.work(0.5)
    assert site.show(number)["state"] == "done"
    site.fake.ebs.attach(volume)
    site.work(10)
    disk = site.disks.show()
    assert disk["state"] == "backing-up"
    assert disk["trouble"] == f"gpu-dev is using volume {volume}: it is in-use"
    assert site.fake.count("CreateSnapshot") == 0
    site.fake.ebs.detach(volume)
    site.work(30)
    assert site.disks.show()["state"] == "available"


def test_a_disk_that_gpu_dev_uses_is_skipped(site: Importer) -> None:
    site.gpu_dev.saved()
    volume = site.gpu_dev.volume()
    site.fake.ebs.attach(volume)
    [disk] = site.run()
    assert disk["outcome"] == "skipped"
    assert disk["why"] == (f"gpu-dev is using it: volume {volume} is attached or is being created")
    assert site.all_disks() == []


def test_unknown_users_are_reported_and_skipped(site: Importer) -> None:
    site.gpu_dev.saved("mallory")
    [disk] = site.run()
    assert disk["outcome"] == "skipped"
    assert disk["why"] == (
        'user "mallory" is unknown to odc: name the owner with --user mallory=NAME'
    )


def test_a_name_in_use_gets_a_number(site: Importer) -> None:
    site.disks.create("main")
    site.gpu_dev.saved("alice", word="a")
    site.gpu_dev.saved("alice@example.com", word="b")
    options: dict[str, Any] = {"owners": {"alice@example.com": "alice"}}
    for apply in (False, True):
        disks = site.run(apply=apply, **options)
        assert [disk["name"] for disk in disks] == ["main-2", "main-3"]
    names = [disk["name"] for disk in site.all_disks()]
    assert names == ["main", "main-2", "main-3"]
    assert set(site.outcomes(**options).values()) == {"present"}


def test_disks_are_chosen_by_user_and_by_tags(site: Importer) -> None:
    site.gpu_dev.saved("alice")
    site.gpu_dev.saved("bob")
    site.gpu_dev.saved("", "", **{"team-user": "bob", "team-disk": "data", "team-kind": "end"})
    assert site.outcomes(apply=False, users=["bob"]) == {"bob/main": "import"}
    tags = {"user": "team-user", "disk": "team-disk", "kind": "team-kind"}
    assert site.outcomes(tags=tags) == {"bob/data": "imported"}


def test_copies_of_other_tools_are_never_imported(site: Importer) -> None:
    """STO-07, BUG-12: newer, and with all tags."""
    source = site.gpu_dev.saved(word="mine")
    site.fake.copy_snapshot(source, owner="123456789012")
    site.fake.copy_snapshot(source)
    volume = site.gpu_dev.volume("bob")
    site.fake.foreign_snapshot(volume)
    site.fake.ec2.delete_volume(VolumeId=volume)
    alice, bob = site.run()
    assert (alice["outcome"], alice["cloud_id"]) == ("imported", source)
    assert (bob["outcome"], bob["cloud_id"]) == ("skipped", None)
    assert "other tools made all its snapshots" in bob["why"]


def test_what_another_odc_has_imported_is_skipped(site: Importer) -> None:
    source = site.gpu_dev.saved()
    site.fake.ec2.create_tags(
        Resources=[source],
        Tags=[
            {"Key": key, "Value": value}
            for key, value in {
                "ManagedBy": "odc", "odc-server": "another", "odc-adopted": "gpu-dev"
            }.items()
        ],
    )  # fmt: skip
    [disk] = site.run()
    assert (disk["outcome"], disk["why"]) == ("skipped", f"another odc has imported {source}")


def test_a_missing_right_is_reported_and_the_import_continues_once_it_exists(
    site: Importer,
) -> None:
    site.gpu_dev.saved()
    site.fake.fail("CreateTags", "refuse", times=3, code="UnauthorizedOperation")
    site.run()
    disk = site.disks.show()
    assert disk["state"] == "backing-up"
    assert "AWS refused to add odc's tags" in disk["trouble"]
    job_id = site.reserve(ZONES[0])
    assert site.reservations.show(job_id)["reason"] == "SnapshotPending"
    site.work(20)
    assert site.queue.start() == [job_id]
    number = site.ask()
    site.fake.fail("DescribeVolumes", "refuse", times=99, code="UnauthorizedOperation")
    site.work(4)
    refused = site.show(number)
    assert refused["state"] == "refused"
    assert "AWS refused to list volumes" in refused["trouble"]


def test_a_snapshot_that_gpu_dev_deletes_meanwhile_is_trouble(site: Importer) -> None:
    source = site.gpu_dev.saved()
    number = site.ask()
    site.work(0.5)
    assert site.show(number)["state"] == "done"
    site.fake.ec2.delete_snapshot(SnapshotId=source)
    site.work(4)
    disk = site.disks.show()
    assert disk["state"] == "trouble"
    assert disk["trouble"].startswith(f"snapshot {source} of gpu-dev was deleted before odc")


def test_newer_data_in_gpu_dev_is_reported_after_an_import(site: Importer) -> None:
    site.gpu_dev.saved(word="old")
    site.run()
    newer = site.gpu_dev.saved(word="new")
    [disk] = site.run()
    assert disk["outcome"] == "present"
    assert disk["why"] == (
        f"it was imported before, and gpu-dev has changed it since: {newer} is newer"
    )
    site.disks.act("delete_disk", None, "main")
    [disk] = site.run()
    assert (disk["outcome"], disk["name"], disk["cloud_id"]) == ("imported", "main", newer)
