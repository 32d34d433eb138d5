"""No client can make the daemon keep gigabytes of unread answers in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odcd.errors import DaemonBusy, TooManyRequests
from odcd.fairness.answers import IN_ALL, MIB, PER_USER, SMALL, Answers
from odcd.fairness.limits import Fairness
from odcd.records.job import Identity
from tests.odcd.api.service import ALICE, BOB, Service, serve, until

LIST = "/v1/jobs?user=64001"
COMMENT = "\U0001f600" * 4096
JOBS = 40


def user(uid: int, *, operator: bool = False) -> Identity:
    return Identity(user=f"u{uid}", uid=uid, gid=uid, operator=operator)


async def never_read(service: Service) -> None:
    """A client that reads nothing: the server writes one piece to the socket's buffer and waits
    with the next one."""
    pieces = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal pieces
        pieces += message["type"] == "http.response.body"
        if pieces > 1:
            await asyncio.Event().wait()

    path, _, query = LIST.partition("?")
    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": query.encode(),
        "headers": [], "state": {"peer": ALICE},
    }  # fmt: skip
    await service.app(scope, receive, send)


def test_answers_that_one_user_never_reads_are_limited(database_url: str) -> None:
    """Before: 26 unread lists of 2,000 jobs with long comments took 880 MB, and a user may have 512
    connections."""
    answers = Answers(per_user=3 * MIB // 2)

    async def work(service: Service) -> None:
        async with service.client(ALICE) as alice, service.client(BOB) as bob:
            for _ in range(JOBS):
                await service.submit(ALICE, comment=COMMENT, hold=True)
            size = len((await alice.get(LIST)).content)
            assert MIB // 2 < size < 3 * MIB // 4
            assert answers.size == 0
            unread = [asyncio.create_task(never_read(service)) for _ in range(2)]
            await until(lambda: answers.size == 2 * size)
            refused = await alice.get(LIST)
            assert (refused.status_code, refused.json()["code"]) == (429, "OD041")
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["hint"]
            # Small answers, and others' answers.
            assert (await alice.get("/v1/nodes")).status_code == 200
            assert len((await bob.get(LIST)).content) == size
            for task in unread:
                task.cancel()
            await asyncio.wait(unread)
            assert answers.size == 0
            assert len((await alice.get(LIST)).content) == size

    serve(database_url, work, fairness=Fairness(answers=answers))


def test_a_user_above_the_limit_is_refused_before_anything_is_read(database_url: str) -> None:
    answers = Answers(per_user=SMALL)

    async def work(service: Service) -> None:
        for _ in range(8):
            await service.submit(ALICE, comment=COMMENT, hold=True)
        unread = asyncio.create_task(never_read(service))
        await until(lambda: answers.size > SMALL)
        async with service.client(ALICE) as alice, service.client(BOB) as bob:
            assert (await alice.get("/v1/nodes")).status_code == 429
            assert (await bob.get("/v1/nodes")).status_code == 200
        unread.cancel()
        await asyncio.wait([unread])

    serve(database_url, work, fairness=Fairness(answers=answers))


def test_the_first_response_may_have_any_size_and_changes_always_get_a_response() -> None:
    answers = Answers()
    with answers.hold(user(1), 2 * IN_ALL, done=False):
        with pytest.raises(TooManyRequests):
            answers.check(user(1))
        with answers.hold(user(2), PER_USER, done=False), pytest.raises(DaemonBusy):
            answers.check(user(2, operator=True))
        with answers.hold(user(1), PER_USER, done=True):
            assert answers.size == 2 * IN_ALL + PER_USER
        with answers.hold(user(1), SMALL, done=False):
            pass
    assert answers.size == 0
