"""No user can fill the database's disk: the bytes that each user's submits add per day are
limited."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from odcd.fairness.limits import Fairness
from odcd.fairness.settings import FairnessSettings
from odcd.jobs.submission import prepare
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.records.job import Identity, JobSpec, Submitted
from tests.odcd.api.service import ALICE, BOB, BODY, OPERATOR, Service, serve
from tests.support.fakes.clock import VirtualClock

MIB = 1024 * 1024
EVE = Identity(user="eve", uid=64001, gid=64001, operator=False)
BOSS = Identity(user="root", uid=0, gid=0, operator=True)


def a_script(number: int, size: int = MIB) -> str:
    return f"#!/bin/sh\n# {number}\n#".ljust(size, "x")


class Submitting:
    """A daemon's submits with a clock that stands still."""

    def __init__(self, service: Service, stored_bytes: int) -> None:
        self.clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self._batcher = SubmitBatcher(service.store.jobs, self.clock, stored_bytes=stored_bytes)

    async def __call__(
        self, who: Identity, *scripts: str, dry_run: bool = False, key: str | None = None,
        **spec: Any,
    ) -> list[Submitted]:  # fmt: skip
        jobs = [JobSpec(script=script, work_dir="/tmp", gpus=1, **spec) for script in scripts]
        return await self._batcher.submit(prepare(who, jobs, key=key, dry_run=dry_run))


def taken(answers: list[Submitted]) -> bool:
    assert {answer.code for answer in answers} <= {None, "OD042"}
    return all(answer.job_id is not None for answer in answers)


def test_scripts_of_one_user_cannot_fill_the_disk(database_url: str) -> None:
    """Before: 2,000,000 pending jobs could have a script of 4 MiB each."""

    async def work(service: Service) -> None:
        submit = Submitting(service, 10 * MIB)
        answers = [await submit(EVE, a_script(number)) for number in range(20)]
        assert [taken(answer) for answer in answers] == [True] * 9 + [False] * 11
        refusal = answers[-1][0]
        assert "add more than 10 MiB to the database in a day" in (refusal.message or "")
        assert "ODC_USER_STORED_MIB" in (refusal.hint or "")
        # Cancelling gives nothing back, because the database keeps ended jobs.
        async with service.client(ALICE) as client:
            ids = [str(answer[0].job_id) for answer in answers if taken(answer)]
            assert (await client.post("/v1/jobs/cancel", json={"ids": ids})).is_success
        assert not taken(await submit(EVE, a_script(100)))
        stored = "select sum(length(content)) from odc.job_text"
        assert await service.database.fetchval(stored) < 10 * MIB
        # Time does give it back.
        submit.clock.move(3 * 3600)
        later = [taken(await submit(EVE, a_script(number))) for number in (101, 102, 103)]
        assert later == [True, True, False]

    serve(database_url, work)


def test_arguments_and_environments_count_and_texts_that_repeat_do_not(database_url: str) -> None:
    async def work(service: Service) -> None:
        submit = Submitting(service, 10 * MIB)
        # Once per request and array, and not at all once they are kept.
        assert taken(await submit(EVE, *[a_script(0, 2 * MIB)] * 50, array="1-1000"))
        for _ in range(50):
            assert taken(await submit(EVE, a_script(0, 2 * MIB)))
        # A dry run stores nothing.
        for number in range(20):
            assert (await submit(EVE, a_script(number), dry_run=True))[0].code is None
        big = {f"V{number}": "x" * 100_000 for number in range(10)}
        script = "#!/bin/sh\n"
        many = [await submit(EVE, script, environment={**big, "N": str(n)}) for n in range(9)]
        assert 6 <= sum(map(taken, many)) < 9
        args = [f"{number}".ljust(100_000, "x") for number in range(10)]
        assert not taken(await submit(EVE, script, args=args))

    serve(database_url, work)


def test_a_request_above_the_limit_is_accepted_after_a_quiet_day_and_owed(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        submit = Submitting(service, 10 * MIB)
        batch = [a_script(number) for number in range(30)]
        assert taken(await submit(EVE, *batch, key="once"))
        # Sent again under its key, it costs nothing.
        assert taken(await submit(EVE, *batch, key="once"))
        submit.clock.move(timedelta(days=1).total_seconds())
        assert not taken(await submit(EVE, a_script(100)))
        submit.clock.move(timedelta(days=1.2).total_seconds())
        assert taken(await submit(EVE, a_script(100)))

    serve(database_url, work)


def test_the_storage_limit_of_one_user_delays_no_other_user_and_no_operator(
    database_url: str,
) -> None:
    async def work(service: Service) -> None:
        one, other = Submitting(service, 10 * MIB), Submitting(service, 10 * MIB)
        bob = Identity(user="bob", uid=64002, gid=64002, operator=False)
        # Two daemons together; the batches of each are orderly mixtures of users.
        answers = await asyncio.gather(
            *((one if n % 2 else other)(EVE, a_script(n)) for n in range(30)),
            *((one if n % 2 else other)(bob, a_script(n, 1000)) for n in range(30)),
            *((one if n % 2 else other)(BOSS, a_script(100 + n)) for n in range(12)),
        )
        assert sum(map(taken, answers[:30])) == 9
        assert all(map(taken, answers[30:]))

    serve(database_url, work)


def test_the_api_answers_429_and_counts_it(database_url: str) -> None:
    holder: list[SubmitBatcher] = []

    class Limited:
        async def submit(self, prepared: Any) -> Any:
            return await holder[0].submit(prepared)

    async def work(service: Service) -> None:
        holder.append(SubmitBatcher(service.store.jobs, service.api.clock, stored_bytes=2 * MIB))
        async with service.client(ALICE) as client:
            big = {**BODY, "script": a_script(0, 2 * MIB)}
            assert (await client.post("/v1/jobs", json=big)).status_code == 201
            answer = await client.post("/v1/jobs", json=BODY)
            assert (answer.status_code, answer.json()["code"]) == (429, "OD042")
            assert answer.headers["retry-after"] == "60"
        await service.submit(BOB)
        await service.submit(OPERATOR, script=a_script(1, 3 * MIB))
        async with service.client(OPERATOR) as client:
            metrics = (await client.get("/metrics")).text
        assert 'odcd_requests_limited_total{limit="stored"} 1.0' in metrics

    serve(database_url, work, batcher=Limited())


def test_changes_of_one_user_cannot_fill_the_disk_either(database_url: str) -> None:
    """Before: a comment of 16 KB given to 999 tasks of an array was kept 999 times, with the one
    before it, 55 MB in all, and the next request did the same."""

    async def work(service: Service) -> None:
        array = await service.submit(ALICE, array="0-99", hold=True)
        other = await service.submit(BOB, array="0-99", hold=True)
        answers: list[list[str | None]] = []
        for number in range(5):
            comment = chr(0x10400 + number) * 4096
            async with service.client(ALICE) as client:
                response = await client.patch(f"/v1/jobs/{array}_[0-49]", json={"comment": comment})
            answers.append([one["code"] for one in response.json()["jobs"]])
        assert [len(codes) for codes in answers] == [50] * 5
        assert answers[0] == [None] * 50
        assert answers[4] == ["OD042"] * 50
        kept = "select sum(octet_length(detail::text)) from odc.event where kind = 'updated'"
        assert await service.database.fetchval(kept) < 6 * MIB
        for peer, job_id in ((BOB, other), (OPERATOR, array)):
            async with service.client(peer) as client:
                response = await client.patch(
                    f"/v1/jobs/{job_id}_[0-49]", json={"comment": "x" * 4096}
                )
            assert {one["code"] for one in response.json()["jobs"]} == {None}

    settings = FairnessSettings(stored_mib=5)
    serve(database_url, work, fairness=Fairness(settings))
