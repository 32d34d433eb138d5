"""Events tell nobody what belongs to another user."""

from __future__ import annotations

import json

import pytest

from tests.odcd.api.service import ALICE, BOB, OPERATOR, Peer, Service, serve

ADDRESS = "ann@example.org"
DETAILS = {
    "disk_saved": {"name": "secret-disk", "user": str(ALICE.uid)},
    "cron_refused": {"user": str(ALICE.uid), "line": 1, "why": "account secret"},
    "notification_failed": {
        "user": str(ALICE.uid), "channel": "mail", "kind": "end",
        "why": f"the mail server answered 550 no such user {ADDRESS}",
    },
}  # fmt: skip


async def seen(service: Service, peer: Peer, path: str) -> set[str]:
    async with service.client(peer) as client:
        answer = await client.get(path, params={"after": "0", "follow": "false"})
    assert answer.status_code == 200
    return {line.removeprefix("event: ") for line in answer.text.splitlines() if "event: " in line}


@pytest.mark.parametrize("kind", DETAILS)
def test_events_about_disks_and_notifications_are_for_their_user(
    kind: str, database_url: str
) -> None:
    """Before: with the number of a job, everybody read the names of disks, and what a mail server
    or webhook answered, which contains addresses."""

    async def work(service: Service) -> None:
        job = await service.submit()
        await service.database.execute(
            "insert into odc.event (at, kind, actor, job_id, detail) "
            "values ($1, $2, 'odcd', $3, $4)",
            service.api.clock.now(), kind, job, json.dumps(DETAILS[kind]),
        )  # fmt: skip
        await service.final()
        for path in ("/v1/events", f"/v1/jobs/{job}/events"):
            assert await seen(service, BOB, path) == {"submitted"}
            for peer in (ALICE, OPERATOR):
                assert await seen(service, peer, path) == {"submitted", kind}

    serve(database_url, work)
