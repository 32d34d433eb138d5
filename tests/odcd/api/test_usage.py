"""/v1/usage: its time span, its groups, and unknown names."""

from __future__ import annotations

import pytest

from odcd.api.usage import UsageList
from tests.odcd.api.service import ALICE, Service, serve
from tests.odcd.api.test_accounts import ask, read


def test_usage_covers_the_last_seven_days_by_user(database_url: str) -> None:
    async def work(service: Service) -> None:
        job_id = await service.submit(ALICE)
        assert job_id in await service.plan()
        usage = read(UsageList, await ask(service, "GET", "/v1/usage"))
        assert (usage.by, [row.group for row in usage.usage]) == (["user"], [{"user": "64001"}])
        path = "/v1/usage?by=account,gpu_type&user=64001"
        [row] = read(UsageList, await ask(service, "GET", path)).usage
        assert set(row.group) == {"account", "gpu_type"}

    serve(database_url, work)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("by=colour", 400), ("by=", 400), ("by=user,user", 400), ("kind=task", 400),
        ("since=2026-01-01T00:00:00", 400), ("until=2026-01-01T00:00:00", 400),
        ("since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", 400), ("user=nobody-at-all", 404),
        ("since=0001-01-01T00:00:00Z&until=0001-01-02T00:00:00Z", 200),
        ("until=0001-01-01T00:00:00Z", 400), ("gpu_type=none", 200),
        ("since=0001-01-01T00:00:00%2B14:00", 400), ("until=9999-12-31T23:59:59-14:00", 400),
    ],
)  # fmt: skip
def test_invalid_queries_are_refused(database_url: str, query: str, status: int) -> None:
    async def work(service: Service) -> None:
        answer = await ask(service, "GET", f"/v1/usage?{query}")
        assert answer.status_code == status, answer.text

    serve(database_url, work)
