"""/v1/disks, and dev servers with a disk: created objects, answers and refusals. The cloud is
simulated."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from odcd.api.answers.disks import Disk, DiskContents, DiskList, StrayList
from odcd.api.answers.submit import Preview
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.odcd.api.test_reservations import ask, read, started
from tests.support.builders.disks import PlayedCloud

PATH = "/v1/reservations"


async def save_disk(service: Service, name: str, contents: str | None = None) -> None:
    """As if a dev server had used it."""
    await service.database.execute(
        "with volume as ("
        "    insert into odc.disk_volume (disk_id, job_id, attempt, fence, size_gib, cloud_id, "
        "                                 state, state_at, made_at) "
        "    select id, 0, 1, 1, size_gib, 'vol-' || gen_random_uuid(), 'deleted', $2, $2 "
        "      from odc.disk where name = $1 returning *) "
        "insert into odc.disk_snapshot (disk_id, volume_id, kind, size_gib, cloud_id, state, "
        "                               asked_at, completed_at, contents, used_bytes) "
        "select disk_id, id, 'shutdown', size_gib, 'snap-' || id, 'completed', $2, $2, $3, 2048 "
        "from volume",
        name, service.api.clock.now(), contents,
    )  # fmt: skip


def one(answer: Any, status: int = 200) -> Disk:
    assert answer.status_code == status, answer.text
    return msgspec.json.decode(answer.content, type=Disk)


async def listed(service: Service, user: str = "", **options: Any) -> list[Disk]:
    answer = await ask(service, "GET", f"/v1/disks{user}", **options)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=DiskList).disks


class Played:
    """The worker and a cloud, as far as this test needs them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.cloud = PlayedCloud()
        self._ahead = timedelta()

    async def settle(self) -> None:
        """Snapshots stay pending."""
        store = self._service.store
        for _ in range(40):
            self._ahead += timedelta(seconds=1)
            now = self._service.api.clock.now() + self._ahead
            for work in await store.disk_work.take(0, now):
                await store.disk_work.record(0, work, self.cloud.do(dataclasses.asdict(work)), now)

    async def complete(self) -> None:
        self.cloud.pending.clear()
        await self.settle()


def test_a_disk_from_first_to_last(database_url: str) -> None:
    """API-05, CLI-36 to CLI-40, STO-19: a create, rename or delete is complete when it is answered.
    The state shows the work of the cloud, so there is no operation to poll."""

    async def work(service: Service) -> None:
        made = one(await ask(service, "POST", "/v1/disks", {"name": "main"}, key="k"), 201)
        assert (made.name, made.size_gib, made.state) == ("main", 100, "available")
        again = one(await ask(service, "POST", "/v1/disks", {"name": "main"}, key="k"), 201)
        assert again == made
        other = await ask(service, "POST", "/v1/disks", {"name": "other"}, key="k")
        assert (other.status_code, other.json()["code"]) == (409, "OD014")
        small = one(await ask(service, "POST", "/v1/disks", {"name": "b", "size_gib": 10}), 201)
        assert small.size_gib == 10
        assert one(await ask(service, "GET", "/v1/disks/main")) == made
        assert [disk.name for disk in await listed(service)] == ["b", "main"]
        await save_disk(service, "main")
        renamed = await ask(service, "POST", "/v1/disks/main/rename", {"new_name": "home"})
        assert (one(renamed).name, one(renamed).used_bytes) == ("home", 2048)
        gone = one(await ask(service, "DELETE", "/v1/disks/home"))
        assert (gone.state, gone.snapshot_count) == ("deleted", 1)
        assert gone.purge_at is not None
        assert [disk.name for disk in await listed(service)] == ["b", "home"]

    serve(database_url, work, disk_gib=100)


REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("POST", "", {"name": "main"}, 409, "already exists"),
    ("POST", "", {"name": "a b"}, 400, "is not a valid disk name"),
    ("POST", "", {"name": "none"}, 400, "is not a valid disk name"),
    ("POST", "", {"name": "x" * 51}, 400, "is not a valid disk name"),
    ("POST", "", {"name": "x", "size_gib": 9}, 400, "size_gib cannot be 9"),
    ("POST", "", {"name": "x", "size": 10}, 400, "size"),
    ("GET", "/nothing", None, 404, "no disk"),
    ("GET", "/gone", None, 410, "was deleted"),
    ("DELETE", "/gone", None, 410, "was deleted"),
    ("DELETE", "/busy", None, 409, "is waiting for it"),
    ("POST", "/busy/rename", {"new_name": "x"}, 409, "is waiting for it"),
    ("POST", "/main/rename", {"new_name": "busy"}, 409, "already exists"),
    ("POST", "/main/rename", {"new_name": "a/b"}, 400, "is not a valid disk name"),
    ("POST", "/gone/rename", {"new_name": "x"}, 410, "was deleted"),
    ("POST", "/nothing/rename", {"new_name": "x"}, 404, "no disk"),
    ("GET", "/nothing/content", None, 404, "no disk"),
    ("GET", "?user=64002", None, 403, "disks of 64002"),
    ("GET", "?user=all", None, 403, "all"),
    ("GET", "/main?user=64002", None, 403, "disks of 64002"),
    ("POST", "/main/clone", {"new_name": "x"}, 403, "clone"),
    ("POST", "/main/unlock", None, 403, "unlock"),
    ("GET", "/main?users=x", None, 400, "users"),
    ("GET", "/%00", None, 400, "cannot be shown"),
]


def test_refusals_have_their_http_statuses(database_url: str) -> None:
    """CLI-40, API-05: 404 unknown, 410 deleted, 409 in use or there."""

    async def work(service: Service) -> None:
        for name in ("main", "busy", "gone"):
            one(await ask(service, "POST", "/v1/disks", {"name": name}), 201)
        await ask(service, "DELETE", "/v1/disks/gone")
        read(await ask(service, "POST", PATH, {"disk": "busy"}), 201)
        for method, path, body, status, message in REFUSED:
            answer = await ask(service, method, f"/v1/disks{path}", body)
            assert answer.status_code == status, (method, path, answer.text)
            assert message in answer.json()["detail"], (method, path, answer.text)
        assert [disk.name for disk in await listed(service)] == ["busy", "main", "gone"]

    serve(database_url, work, disk_gib=100)


@pytest.mark.parametrize(
    ("terminals", "message"), [(True, "processes of this machine"), (False, "no AWS region")]
)
def test_a_daemon_without_disks_refuses_with_the_reason_and_the_setting(
    database_url: str, terminals: bool, message: str
) -> None:
    """STO-11, CLI-08: an unavailable disk is refused, and nothing replaces it."""

    async def work(service: Service) -> None:
        answer = await ask(service, "GET", "/v1/disks")
        assert answer.json() == {"default_gib": None, "disks": []}
        for path, body in (("/v1/disks", {"name": "main"}), (PATH, {"disk": "main"})):
            answer = await ask(service, "POST", path, body)
            assert (answer.status_code, answer.json()["code"]) == (501, "OD016")
            assert message in answer.json()["detail"]
            assert "ODC_AWS_REGION" in answer.json()["hint"]
        answer = await ask(
            service, "POST", "/v1/disks/main/clone", {"new_name": "x"}, peer=OPERATOR
        )
        assert answer.status_code == 501
        assert read(await ask(service, "POST", PATH, {"disk": "none"}), 201).disk_name is None

    serve(database_url, work, dev_server_terminals=terminals)


def test_a_missing_disk_is_refused_at_once(database_url: str) -> None:
    """STO-11."""

    async def work(service: Service) -> None:
        answer = await ask(service, "POST", PATH, {"disk": "nothing"})
        assert (answer.status_code, answer.json()["code"]) == (404, "OD036")
        one(await ask(service, "POST", "/v1/disks", {"name": "main"}), 201)
        await ask(service, "DELETE", "/v1/disks/main")
        answer = await ask(service, "POST", PATH, {"disk": "main"})
        assert (answer.status_code, answer.json()["code"]) == (410, "OD037")
        await ask(service, "POST", "/v1/disks", {"name": "main"}, peer=BOB)
        answer = await ask(service, "POST", PATH, {"disk": "main"})
        assert answer.status_code == 410, "another user's is not one's own"

    serve(database_url, work, disk_gib=100)


def test_the_disk_options_of_a_reservation_are_stored(database_url: str) -> None:
    """STO-12, STO-13, CLI-08, CLI-09, CLI-11, SCH-23; in addition to the folder shared by all dev
    servers."""

    async def work(service: Service) -> None:
        one(await ask(service, "POST", "/v1/disks", {"name": "main"}), 201)
        requested = {"disk": "main", "recreate_env": True}
        no_disk: dict[str, Any] = {}
        brief = {"no_persist": True}
        for body, kept in ((requested, requested), ({"disk": "none"}, no_disk), (brief, brief)):
            made = read(await ask(service, "POST", PATH, body), 201)
            stored = await service.database.fetchval(
                "select ask from odc.reservation where job_id = $1", made.id
            )
            assert json.loads(stored) == {**kept, "shared_storage": True}
            assert (made.disk_name, made.storage == "disk") == (kept.get("disk"), "disk" in kept)

    serve(database_url, work, disk_gib=100, shared_storage=True)


def test_a_reservation_that_waits_for_a_disk_shows_its_holder(database_url: str) -> None:
    """STO-03, STO-06, SCH-22: it waits in the queue, with the holder of the disk as the reason,
    then the snapshot."""

    async def work(service: Service) -> None:
        played = Played(service)
        one(await ask(service, "POST", "/v1/disks", {"name": "main"}), 201)
        first = read(await ask(service, "POST", PATH, {"disk": "main"}), 201)
        assert (first.disk_state, first.storage) == ("free", "disk")
        await service.plan()

        async def state(job_id: int) -> str | None:
            return read(await ask(service, "GET", f"{PATH}/{job_id}")).disk_state

        assert await state(first.id) == "creating"
        await played.settle()
        await started(service, first.id)
        assert await state(first.id) == "in-use"
        shown = one(await ask(service, "GET", "/v1/disks/main"))
        assert (shown.state, shown.reservation_id) == ("in-use", first.id)
        assert shown.volume_id is not None

        answer = await ask(service, "POST", f"{PATH}?dry_run=true", {"disk": "main"})
        preview = msgspec.json.decode(answer.content, type=Preview)
        assert f'"main" is in use by reservation {first.id}' in preview.text
        assert (preview.start_at, preview.reason) == (None, "DiskBusy")

        second = read(await ask(service, "POST", PATH, {"disk": "main"}), 201)
        assert (second.status, second.reason, second.disk_state) == ("queued", "DiskBusy", "busy")
        assert second.message == (
            f'it waits (DiskBusy): disk "main" is in use by reservation {first.id}'
        )
        [cause] = (await ask(service, "GET", f"/v1/jobs/{second.id}/why")).json()["why"]
        assert (cause["cause"], cause["job_id"]) == ("disk", first.id)

        await ask(service, "POST", f"/v1/jobs/{first.id}/cancel")
        await service.end(first.id)
        assert await state(first.id) == "backing-up"
        await played.settle()
        assert one(await ask(service, "GET", "/v1/disks/main")).state == "backing-up"
        waits = read(await ask(service, "GET", f"{PATH}/{second.id}"))
        assert waits.reason == "SnapshotPending"
        assert waits.message.startswith("it waits (SnapshotPending): the snapshot snap-")
        assert await service.plan() == []
        await played.complete()
        assert await state(first.id) == "saved"
        assert await service.plan() == [second.id]

    serve(database_url, work, disk_gib=100)


def test_disk_contents_are_shown_without_a_reservation(database_url: str) -> None:
    """CLI-39, STO-17, STO-18: of the newest snapshot; null if they could not be listed."""

    async def work(service: Service) -> None:
        one(await ask(service, "POST", "/v1/disks", {"name": "main"}), 201)

        async def contents() -> DiskContents:
            answer = await ask(service, "GET", "/v1/disks/main/content")
            return msgspec.json.decode(answer.content, type=DiskContents)

        assert (await contents()).snapshot_id is None
        await save_disk(service, "main", "3 files\n/home/dev/a")
        assert (await contents()).contents == "3 files\n/home/dev/a"
        await save_disk(service, "main")
        listing = await contents()
        assert (listing.contents, listing.used_bytes) == (None, 2048)
        assert listing.snapshot_id is not None

    serve(database_url, work, disk_gib=100)


def test_operators_can_change_disks_of_other_users(database_url: str) -> None:
    """AUT-09, CLI-36, CLI-41."""

    async def work(service: Service) -> None:
        made = one(await ask(service, "POST", "/v1/disks", {"name": "main"}), 201)
        one(await ask(service, "POST", "/v1/disks", {"name": "own"}, peer=BOB), 201)
        named = f"?user={made.user}"
        assert [disk.name for disk in await listed(service, named, peer=OPERATOR)] == ["main"]
        assert len(await listed(service, "?user=all", peer=OPERATOR)) == 2
        await save_disk(service, "main")
        clone = await ask(
            service, "POST", f"/v1/disks/main/clone{named}",
            {"new_name": "copy", "new_user": "64002"}, peer=OPERATOR,
        )  # fmt: skip
        assert (one(clone, 201).user, one(clone, 201).snapshot_count) == ("64002", 0)
        await service.database.execute("update odc.disk set trouble = 'lost' where name = 'main'")
        refused = await ask(service, "POST", PATH, {"disk": "main"})
        assert (refused.status_code, refused.json()["code"]) == (409, "OD012")
        unlocked = await ask(service, "POST", f"/v1/disks/main/unlock{named}", peer=OPERATOR)
        assert one(unlocked).state == "available"
        assert service.woken
        renamed = await ask(
            service, "POST", f"/v1/disks/main/rename{named}", {"new_name": "new"}, peer=OPERATOR
        )
        assert (one(renamed).name, one(renamed).user) == ("new", made.user)
        assert ALICE.uid == one(renamed).uid

    serve(database_url, work, disk_gib=100)


def test_orphan_volumes_are_listed_for_operators(database_url: str) -> None:
    """STO-25."""

    async def work(service: Service) -> None:
        await service.database.execute(
            "insert into odc.disk_stray (cloud_id, kind, tags, first_at, seen_at) "
            'values (\'snap-9\', \'snapshot\', \'{"gpu-dev-user": "bob", "k": "v"}\', $1, $1)',
            service.api.clock.now(),
        )
        answer = await ask(service, "GET", "/v1/disk-strays", peer=OPERATOR)
        [stray] = msgspec.json.decode(answer.content, type=StrayList).strays
        assert (stray.cloud_id, stray.user, stray.disk) == ("snap-9", "bob", None)
        assert stray.tags["k"] == "v"

    serve(database_url, work)


def test_disk_events_are_visible_only_to_the_owner_and_operators(database_url: str) -> None:
    """AUT-08, SEC-10: users see the events of their own disks, operators of all."""

    async def work(service: Service) -> None:
        one(await ask(service, "POST", "/v1/disks", {"name": "thesis"}), 201)
        path = "/v1/disks/thesis?user=64001"
        await ask(service, "DELETE", path, peer=OPERATOR)
        events = "/v1/events?after=0&follow=false"
        for peer, seen in ((ALICE, 2), (OPERATOR, 2), (BOB, 0)):
            async with asyncio.timeout(60):
                stream = (await ask(service, "GET", events, peer=peer)).text
                while stream.count("event: disk_") < seen:  # None behind an open transaction.
                    stream = (await ask(service, "GET", events, peer=peer)).text
            assert stream.count("event: disk_") == seen, (peer, stream)
            assert ("thesis" in stream) == bool(seen)

    serve(database_url, work, disk_gib=100)
