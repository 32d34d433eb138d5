"""/v1/disk-imports: who may import disks of gpu-dev, and the requests that are refused. The leader
and the cloud are simulated."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from odcd.api.answers.disks import DiskImport, ImportedDisk
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.odcd.api.test_disks import listed
from tests.odcd.api.test_reservations import ask

PATH = "/v1/disk-imports"
FOUND = {
    "gpu_dev_user": "64001", "gpu_dev_disk": "main", "kind": "snapshot", "cloud_id": "snap-1",
    "source": "vol-1", "size_gib": 20, "snapshot_count": 3, "kms_key": "arn:key", "server": None,
    "last_used_at": "2026-01-01T00:00:00Z", "contents": None, "skip": None, "note": None,
}  # fmt: skip


async def requested(service: Service, body: dict[str, Any]) -> DiskImport:
    answer = await ask(service, "POST", PATH, body, peer=OPERATOR)
    assert answer.status_code == 201, answer.text
    return msgspec.json.decode(answer.content, type=DiskImport)


async def answered(service: Service, number: int, *found: dict[str, Any]) -> list[ImportedDisk]:
    """The result, after the leader's worker has listed the cloud."""
    store, now = service.store.disk_work, service.api.clock.now()
    [work] = [one for one in await store.take(0, now) if one.kind == "import"]
    await store.record(0, work, {"found": found}, now)
    answer = await ask(service, "GET", f"{PATH}/{number}", peer=OPERATOR)
    done = msgspec.json.decode(answer.content, type=DiskImport)
    assert done.state == "done"
    return done.disks


def test_an_operator_lists_and_imports_the_disks_of_others(database_url: str) -> None:
    async def work(service: Service) -> None:
        await service.submit(ALICE)
        plan = await requested(service, {})
        assert (plan.state, plan.apply, plan.disks) == ("wanted", False, [])
        [disk] = await answered(service, plan.id, FOUND)
        assert (disk.outcome, disk.user, disk.name) == ("import", "64001", "main")
        assert await listed(service) == []
        applied = await requested(service, {"apply": True, "users": ["64001"]})
        [disk] = await answered(service, applied.id, FOUND, {**FOUND, "gpu_dev_user": "other"})
        assert (disk.outcome, disk.kms_key) == ("imported", "arn:key")
        [made] = await listed(service)
        assert (made.name, made.user, made.size_gib, made.state) == (
            "main", "64001", 20, "backing-up"
        )  # fmt: skip

    serve(database_url, work, disk_gib=100)


def test_an_ordinary_user_imports_nothing_and_sees_no_import(database_url: str) -> None:
    """Neither the disks of others, nor own ones: tags prove no owner."""

    async def work(service: Service) -> None:
        number = (await requested(service, {})).id
        bodies: list[dict[str, Any]] = [{}, {"apply": True, "owners": {"64001": "64002"}}]
        for peer in (ALICE, BOB):
            for body in bodies:
                refused = await ask(service, "POST", PATH, body, peer=peer)
                assert (refused.status_code, refused.json()["code"]) == (403, "OD013")
                assert refused.json()["detail"] == f"user {peer.uid} may not import disks"
            refused = await ask(service, "GET", f"{PATH}/{number}", peer=peer)
            assert refused.status_code == 403
        assert await service.database.fetchval("select count(*) from odc.disk_import") == 1

    serve(database_url, work, disk_gib=100)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"owners": {"ann": "mallory"}}, 404, "OD027"),
        ({"owners": {"ann": ""}}, 400, "OD010"),
        ({"owners": {"ann": 7}}, 400, "OD010"),
        ({"users": []}, 400, "OD010"),
        ({"users": ["a\x1bb"]}, 400, "OD010"),
        ({"tags": {"user": ""}}, 400, "OD010"),
        ({"tags": {"user": "x" * 128}}, 400, "OD010"),
        ({"tags": {"owner": "x"}}, 400, "OD010"),
        ({"apply": "yes"}, 400, "OD010"),
        ({"prefix": "x"}, 400, "OD010"),
    ],
)
def test_a_wrong_request_is_refused(
    database_url: str, body: dict[str, Any], status: int, code: str
) -> None:
    async def work(service: Service) -> None:
        answer = await ask(service, "POST", PATH, body, peer=OPERATOR)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert await service.database.fetchval("select count(*) from odc.disk_import") == 0

    serve(database_url, work, disk_gib=100)


def test_an_unknown_import_and_a_daemon_without_disks_are_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        for name in ("7", "x", "9" * 30):
            answer = await ask(service, "GET", f"{PATH}/{name}", peer=OPERATOR)
            assert (answer.status_code, answer.json()["code"]) == (404, "OD036")
        answer = await ask(service, "POST", PATH, {}, peer=OPERATOR)
        assert (answer.status_code, answer.json()["code"]) == (501, "OD016")

    serve(database_url, work)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"gpu_dev_disk": "a b"}, "odc has no such names"),
        ({"gpu_dev_disk": "x" * 51}, "odc has no such names"),
        ({"gpu_dev_disk": "none"}, "odc has no such names"),
        ({"size_gib": 20_000}, "it has 20000 GiB, and a disk of odc has at most 16384"),
        ({"skip": "gpu-dev is using it"}, "gpu-dev is using it"),
        ({"server": "x"}, "another odc has imported snap-1"),
    ],
)
def test_a_disk_that_cannot_be_imported_is_skipped_with_the_reason(
    database_url: str, change: dict[str, Any], why: str
) -> None:
    async def work(service: Service) -> None:
        await service.submit(ALICE)
        number = (await requested(service, {"apply": True})).id
        [disk] = await answered(service, number, {**FOUND, **change})
        assert disk.outcome == "skipped"
        assert disk.why is not None
        assert disk.why.startswith(why)
        assert await listed(service) == []

    serve(database_url, work, disk_gib=100)


def test_a_small_disk_gets_the_minimum_size_and_an_event_names_the_operator(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        await service.submit(ALICE)
        number = (await requested(service, {"apply": True})).id
        await answered(service, number, {**FOUND, "size_gib": 5})
        [made] = await listed(service)
        assert made.size_gib == 10
        [event] = await service.database.fetch(
            "select actor, detail from odc.event where kind = 'disk_imported'"
        )
        detail = json.loads(event["detail"])
        assert (event["actor"], detail["user"], detail["from"]) == (
            "root", "64001", "snap-1"
        )  # fmt: skip

    serve(database_url, work, disk_gib=100)
