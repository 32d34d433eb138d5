"""One user cannot use up what GitHub allows the daemon, and so keep others from reserving."""

from __future__ import annotations

from datetime import UTC, datetime

from odcd.clock import SystemClock
from odcd.fairness.limits import LOOKUPS, Fairness
from odcd.jobs.github_keys import GithubKeys
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.support.fakes.clock import VirtualClock
from tests.support.fakes.github import ED25519, a_github

TRIES = LOOKUPS + 40


def test_a_user_requests_few_lists_of_keys_per_minute(database_url: str) -> None:
    """Before: each request, also a dry run, with a name that GitHub does not know was one to
    GitHub: 200 per second, until GitHub refuses the daemon's address."""

    async def work(service: Service) -> None:
        async with a_github(octocat=f"{ED25519}\n") as github:
            keys = GithubKeys(github.url, SystemClock())
            object.__setattr__(service.api, "keys", keys)
            path = "/v1/reservations?dry_run=true"
            async with service.client(ALICE) as alice:
                codes = [
                    (await alice.post(path, json={"gpus": 1, "github_user": f"n{at}"})).status_code
                    for at in range(TRIES)
                ]
                last = await alice.post(path, json={"gpus": 1, "github_user": "octocat"})
            assert codes == [404] * LOOKUPS + [429] * (TRIES - LOOKUPS)
            assert (last.status_code, last.json()["code"]) == (429, "OD041")
            assert int(last.headers["retry-after"]) >= 1
            assert last.json()["hint"].startswith("Try again")
            assert len(github.requested) == LOOKUPS
            for other in (BOB, OPERATOR):
                async with service.client(other) as client:
                    answer = await client.post(path, json={"gpus": 1, "github_user": "octocat"})
                assert answer.status_code == 200, answer.text
            await keys.close()

    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    serve(database_url, work, fairness=Fairness(clock=clock))


def test_a_user_sets_few_names_per_minute(database_url: str) -> None:
    """Before: 140 per second, each an event in the database and a pass."""

    async def work(service: Service) -> None:
        async with service.client(ALICE) as alice:
            codes = [
                (await alice.put("/v1/users/me", json={"github_user": f"n{at}"})).status_code
                for at in range(TRIES)
            ]
        assert codes == [200] * LOOKUPS + [429] * (TRIES - LOOKUPS)
        async with service.client(BOB) as bob:
            assert (await bob.put("/v1/users/me", json={"github_user": "n"})).status_code == 200

    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    serve(database_url, work, fairness=Fairness(clock=clock))
