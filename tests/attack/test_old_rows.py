"""The old rows of arrays with many ranges, which the database keeps, count for their user."""

from __future__ import annotations

from typing import Any

from odcd.fairness.limits import Fairness
from odcd.fairness.settings import FairnessSettings
from odcd.jobs.submission import prepare
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.support.builders.jobs import BOB as WHO
from tests.support.builders.jobs import a_job

MIB = 1024 * 1024
RANGES = 1_000
SPARSE = ",".join(str(10_000 + 2 * n) for n in range(RANGES))


def test_holds_and_releases_count_the_ranges_of_an_array(database_url: str) -> None:
    """Before: they were not counted. A loop of them over 59 arrays of 10,000 ranges, one request
    each time, wrote 7.6 MB each, until the disk was full."""
    settings = FairnessSettings(stored_mib=1)

    async def statuses(service: Service, job: int, peer: Any) -> list[int]:
        found: list[int] = []
        async with service.client(peer) as client:
            for _ in range(40):
                for way in ("hold", "release"):
                    found.append((await client.post(f"/v1/jobs/{job}/{way}")).status_code)
        return found

    async def work(service: Service) -> None:
        array = await service.submit(ALICE, array=SPARSE, begin_at="2100-01-01T00:00:00Z")
        found = await statuses(service, array, ALICE)
        assert set(found) == {200, 429}
        assert found.count(200) < MIB / (RANGES * 8)
        assert set(await statuses(service, array, OPERATOR)) == {200}
        other = await service.submit(BOB, begin_at="2100-01-01T00:00:00Z")
        assert set(await statuses(service, other, BOB)) == {200}

    serve(database_url, work, fairness=Fairness(settings))


def test_a_submit_counts_what_the_starts_of_an_array_will_add() -> None:
    def stored(array: str | None) -> int:
        request = prepare(WHO, [a_job(array=array)], key=None, dry_run=False).request
        return request["own_bytes"] - len(array or "")

    assert stored("0-999999") < 2_000
    assert stored(",".join(f"{10 * n}-{10 * n + 5}" for n in range(100))) < 2_000
    assert stored(SPARSE) > RANGES * RANGES * 10


def test_requeues_and_checkpoints_count(database_url: str) -> None:
    """Before: a loop of them over many running jobs wrote a kilobyte each time, without a limit."""

    async def stored(service: Service) -> int:
        return await service.database.fetchval(
            "select coalesce(sum(bytes), 0) from odc.stored_bound where uid = $1", ALICE.uid
        )

    async def work(service: Service) -> None:
        job = await service.submit(ALICE)
        await service.plan()
        await service.database.execute("update odc.running set running_at = started_at")
        async with service.client(ALICE) as client:
            for way in ("checkpoint", "requeue"):
                before = await stored(service)
                assert (await client.post(f"/v1/jobs/{job}/{way}")).status_code == 200
                assert await stored(service) >= before + 400
            await service.database.execute("update odc.stored_bound set bytes = $1", MIB)
            await service.database.execute("update odc.running set intent = null")
            for way in ("checkpoint", "requeue"):
                answer = await client.post(f"/v1/jobs/{job}/{way}")
                assert (answer.status_code, answer.json()["code"]) == (429, "OD042")

    serve(database_url, work, fairness=Fairness(FairnessSettings(stored_mib=1)))
