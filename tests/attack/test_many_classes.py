"""No user's queue makes a scheduler pass long, however many different jobs it contains."""

from __future__ import annotations

from tests.odcd.api.service import ALICE, BOB, BODY, Service, serve

LIMIT = 1000
"""Maximum number of job classes of one user in a pass."""
JOBS = 1100
CLASSES = """select unnest(uids) as uid, unnest(head_ids) as head
               from odc._plan_classes($1, null, null, null)"""


def test_a_pass_limits_the_job_classes_of_one_user_and_considers_all_others(
    database_url: str,
) -> None:
    """Before: all classes were considered. With 40,000 jobs of one user, each with another memory
    request, the database ended every pass after 60 s, and no user's jobs started."""

    async def work(service: Service) -> None:
        held = {**BODY, "gpus": 8, "partitions": []}
        async with service.client(ALICE) as client:
            first = await client.post("/v1/jobs", json=held)
            assert await service.plan() == [first.json()["id"]]
            many = [{**held, "mem_per_node_mib": 1000 + at} for at in range(JOBS)]
            answer = await client.post("/v1/jobs/batch", json={"jobs": many})
        ids = answer.json()["ids"]
        bobs = await service.submit(BOB, gpus=0, mem_per_node_mib=1)
        rows = await service.database.fetch(CLASSES, service.api.clock.now())
        assert [row["head"] for row in rows if row["uid"] == BOB.uid] == [bobs]
        alices = [row["head"] for row in rows if row["uid"] == ALICE.uid]
        # The jobs that have waited longest.
        assert sorted(alices) == ids[:LIMIT]
        async with service.client(ALICE) as client:
            await client.post("/v1/jobs/cancel", json={"ids": [str(one) for one in ids[:200]]})
        rows = await service.database.fetch(CLASSES, service.api.clock.now())
        assert sorted(row["head"] for row in rows if row["uid"] == ALICE.uid) == ids[200:]

    serve(database_url, work)


def test_the_components_of_heterogeneous_jobs_count_as_classes(database_url: str) -> None:
    """Before: 270 jobs of up to 100 components made each pass last half a minute, and a thousand of
    them let the database end every pass, so that no user's jobs started."""
    parts = 50

    async def work(service: Service) -> None:
        body = {**BODY, "gpus": None, "partitions": []}
        jobs = [
            {**body, "components": [{"mem_per_node_mib": 1 + at * parts + n} for n in range(parts)]}
            for at in range(25)
        ]
        async with service.client(ALICE) as client:
            answer = await client.post("/v1/jobs/batch", json={"jobs": jobs})
        ids = answer.json()["ids"]
        bobs = await service.submit(BOB, gpus=0, mem_per_node_mib=1)
        rows = await service.database.fetch(CLASSES, service.api.clock.now())
        assert [row["head"] for row in rows if row["uid"] == BOB.uid] == [bobs]
        alices = [row["head"] for row in rows if row["uid"] == ALICE.uid]
        assert sorted(alices) == ids[: LIMIT // parts]

    serve(database_url, work)
