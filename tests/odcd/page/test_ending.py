"""Objects made from an API key end with it: tickets, sessions, and their streams."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from odcd.api.http import credentials
from odcd.records.api_keys import new_key
from odcd.records.page_keys import SESSION_LIFE
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Spoken
from tests.odcd.page.browse import OURS, Browsed, browse

HOUR = timedelta(hours=1)
Ends = Callable[[Browsed, "Keyed"], Awaitable[Any]]


class Keyed:
    """A client of the API by a key of alice's."""

    def __init__(self, it: Browsed, key: str) -> None:
        self._it = it
        self.key = key

    async def ask(self, method: str, path: str) -> httpx.Response:
        async with self._it.client(None) as client:
            key = {"authorization": f"Bearer {self.key}"}
            return await client.request(method, path, headers=key)

    async def ticket(self) -> str:
        answer = await self.ask("POST", "/v1/page/tickets")
        assert answer.status_code == 201, answer.text
        return answer.json()["ticket"]


async def keyed(it: Browsed, life: timedelta = 2 * HOUR, until: timedelta | None = None) -> Keyed:
    """until: how long rotation may extend it."""
    made, now = new_key(), it.service.api.clock.now()
    who = await it.page._sessions._identifier._of_peer(ALICE)  # pyright: ignore
    await it.service.store.keys.create(who, made, now, life)
    if until is not None:
        await it.service.database.execute(
            "update odc.api_key set until_at = $2 where digest = $1", made.digest, now + until
        )
    return Keyed(it, made.key)


@asynccontextmanager
async def browser(it: Browsed, alice: Keyed, *, paste: bool) -> AsyncGenerator[httpx.AsyncClient]:
    """Signed in with a ticket of that key, or with the key itself."""
    async with it.client(None) as client:
        if paste:
            answer = await client.post("/page/key", data={"key": alice.key}, headers=OURS)
        else:
            answer = await it.enter(client, await alice.ticket())
        assert answer.status_code == 303, answer.text
        yield client


async def _log_out(_: Browsed, alice: Keyed) -> None:
    assert (await alice.ask("DELETE", "/v1/keys/current")).status_code == 204


async def _rotate_and_log_out(it: Browsed, alice: Keyed) -> None:
    for _ in range(2):
        alice.key = (await alice.ask("POST", "/v1/keys/rotate")).json()["key"]
    await _log_out(it, alice)


async def _end_all(it: Browsed, _: Keyed) -> None:
    async with it.client(OPERATOR) as client:
        assert (await client.delete("/v1/users/64001/keys")).status_code == 200


ENDS = [_log_out, _rotate_and_log_out, _end_all]


@pytest.mark.parametrize("paste", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_a_session_ends_with_its_key(database_url: str, end: Ends, paste: bool) -> None:
    async def work(it: Browsed) -> None:
        alice, other = await keyed(it), await keyed(it)
        async with browser(it, alice, paste=paste) as one, browser(it, other, paste=paste) as two:
            waiting = await alice.ticket()
            assert (await one.get("/page/queue")).status_code == 200
            await end(it, alice)
            assert (await one.get("/page/queue")).status_code == 401
            assert (await it.enter(one, waiting)).status_code == 401
            others = 401 if end is _end_all else 200  # that of another login
            assert (await two.get("/page/queue")).status_code == others

    browse(database_url, work)


def test_rotation_of_its_key_ends_no_session(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        alice = await keyed(it)
        waiting = await alice.ticket()
        async with browser(it, alice, paste=False) as client:
            alice.key = (await alice.ask("POST", "/v1/keys/rotate")).json()["key"]
            assert (await client.get("/page/queue")).status_code == 200
            assert (await it.enter(client, waiting)).status_code == 303

    browse(database_url, work)


def test_logging_out_of_the_page_keeps_the_key(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        alice = await keyed(it)
        async with browser(it, alice, paste=False) as one, browser(it, alice, paste=False) as two:
            await one.post("/page/leave", headers=OURS)
            assert (await two.get("/page/queue")).status_code == 200
        assert (await alice.ask("GET", "/v1/users/me")).status_code == 200

    browse(database_url, work)


@pytest.mark.parametrize("paste", [True, False])
@pytest.mark.parametrize(
    ("life", "until", "session"),
    [(2 * HOUR, 3 * HOUR, 3 * HOUR), (2 * HOUR, None, 2 * HOUR), (99 * HOUR, None, SESSION_LIFE),
     (2 * HOUR, 12 * HOUR, SESSION_LIFE)],
)  # fmt: skip
def test_a_session_outlives_no_key(
    database_url: str, life: timedelta, until: timedelta | None, session: timedelta, paste: bool
) -> None:
    """Neither the row nor the cookie lasts longer: both end when rotation of the key would."""

    async def work(it: Browsed) -> None:
        began = it.service.api.clock.now()
        alice = await keyed(it, life, until)
        async with browser(it, alice, paste=paste) as client:
            [cookie] = client.cookies.jar
        now = it.service.api.clock.now()
        assert cookie.expires is not None
        # A cookie's life and the moment that it came are whole seconds.
        begin_s = cookie.expires - session.total_seconds()
        assert began.timestamp() - 2 <= begin_s <= now.timestamp() + 1
        expires_at = await it.service.database.fetchval(
            "select expires_at from odc.api_key where kind = 'session'"
        )
        assert began <= expires_at - session <= now

    browse(database_url, work)


def test_the_key_count_includes_keys_and_counts_sessions_separately(database_url: str) -> None:
    """GET /v1/users/me: counts signed-in browsers separately; tickets do not count."""

    async def work(it: Browsed) -> None:
        alice = await keyed(it)
        await keyed(it)
        async with browser(it, alice, paste=False), it.inside(ALICE), it.inside(BOB):
            await alice.ticket()
            me = (await alice.ask("GET", "/v1/users/me")).json()
        assert (me["sessions"], me["page_sessions"]) == (2, 2)

    browse(database_url, work)


def test_an_operator_can_end_all_sessions_of_a_user_and_it_is_audited(database_url: str) -> None:
    async def work(it: Browsed) -> None:
        alice = await keyed(it)
        await keyed(it)
        ended: list[Any] = []
        async with it.inside(ALICE) as mine, it.inside(BOB) as others:
            waiting = (await it.ticket(ALICE))["ticket"]
            async with it.client(OPERATOR) as client:
                for _ in range(2):
                    ended.append((await client.delete("/v1/users/64001/keys")).json())
            assert (await mine.get("/page/queue")).status_code == 401
            assert (await it.enter(mine, waiting)).status_code == 401
            assert (await others.get("/page/queue")).status_code == 200
        assert (await alice.ask("GET", "/v1/users/me")).status_code == 401
        assert ended == [
            {"user": "64001", "keys": 2, "page_sessions": 1},
            {"user": "64001", "keys": 0, "page_sessions": 0},
        ]
        events = await it.service.database.fetch(
            "select actor, detail from odc.event where kind = 'login_ended'"
        )
        assert [(row["actor"], json.loads(row["detail"])) for row in events] == [("root", ended[0])]

    browse(database_url, work)


async def _leave(it: Browsed, alice: Keyed, client: httpx.AsyncClient) -> None:
    await client.post("/page/leave", headers=OURS)


async def _end(it: Browsed, alice: Keyed, client: httpx.AsyncClient) -> None:
    await _log_out(it, alice)


async def _expire(it: Browsed, alice: Keyed, client: httpx.AsyncClient) -> None:
    await it.service.database.execute(
        "update odc.api_key set expires_at = $1 where kind = 'session'",
        it.service.api.clock.now(),
    )  # fmt: skip


@pytest.mark.parametrize("end", [_leave, _end, _expire])
@pytest.mark.parametrize("path", ["/page/live?of=/", "/page/jobs/{}/logs?follow=true"])
def test_streams_end_with_their_session(
    database_url: str, monkeypatch: pytest.MonkeyPatch, path: str, end: Any
) -> None:
    """Aborted, so that the log does not look complete; other users' streams continue."""
    monkeypatch.setattr(credentials, "LOOK_S", 0.05)

    async def work(it: Browsed) -> None:
        job_id = await it.service.submit()
        alice = await keyed(it)
        async with browser(it, alice, paste=False) as one, it.inside(ALICE) as two:
            first, other = (
                asyncio.create_task(streamed(it, client, path.format(job_id)))
                for client in (one, two)
            )
            async with asyncio.timeout(60):
                while len(it.service.api.credentials.open) < 2:  # pyright: ignore
                    assert not first.done()
                    await asyncio.sleep(0.01)
                await asyncio.sleep(3 * credentials.LOOK_S)
                assert not first.done()
                await end(it, alice, one)
                assert await first == "broken"
                if end is _expire:
                    await asyncio.wait([other])
                else:
                    await asyncio.sleep(3 * credentials.LOOK_S)
                    assert not other.done()
                await two.post("/page/leave", headers=OURS)
                assert await other == "broken"
        assert dict(it.service.api.credentials.open) == {}  # pyright: ignore

    browse(database_url, work, executor_of=object)


def test_ended_streams_are_no_longer_checked(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although their session continues."""
    monkeypatch.setattr(credentials, "LOOK_S", 0.01)

    async def work(it: Browsed) -> None:
        async with it.inside(ALICE) as client:
            stream = asyncio.create_task(streamed(it, client, "/page/live?of=/"))
            async with asyncio.timeout(60):
                while not it.service.api.credentials.open:  # pyright: ignore
                    await asyncio.sleep(0.01)
                await asyncio.sleep(5 * credentials.LOOK_S)
                stream.cancel()
                await asyncio.wait([stream])
                del stream
                while it.service.api.credentials.open:  # pyright: ignore
                    gc.collect()
                    await asyncio.sleep(0.01)
            assert (await client.get("/page/queue")).status_code == 200

    browse(database_url, work)


async def streamed(it: Browsed, client: httpx.AsyncClient, path: str) -> str:
    """How the stream ends for a client that keeps reading."""
    from odcd.api.http.streaming import Broken

    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "root_path": "", "scheme": "http", "state": {},
        "headers": [(b"host", b"odc:7070"), (b"cookie", cookie.encode())], "server": None,
        "client": None, "http_version": "1.1",
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    try:
        await Spoken(it.page, None)(scope, receive, send)
    except Broken:
        assert statuses == [200]
        return "broken"
    return f"whole, {statuses}"
