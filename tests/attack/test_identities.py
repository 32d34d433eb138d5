"""Coordinators cannot assign identities: only operators set uids and other users' default
accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from odcd.api.http.identity import Peer
from odcd.database.pool import connect
from odcd.errors import LoginRefused
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.support.builders.jobs import NOW
from tests.support.harness.races import until_it_waits

CAROL = Peer(64003, 64003)
"""Coordinator of the account lab."""
KEEP = "select odc.keep_api_key($1, $1, $2, $2, $3, $4)"
LOG_IN = "select odc.log_in($1, '{}', null, 0, 'digest-' || $1, 'p', $2, $3, $3)"
PUT = """select odc.put_member('{"user": "root", "uid": 0, "operator": true}', 'default', $1, $2,
         true, '{}', $3)"""
SOURCES = ("login", "key", "usage", "disk")


async def ask(
    service: Service, method: str, path: str, body: Any = None, peer: Peer = OPERATOR
) -> httpx.Response:
    async with service.client(peer) as client:
        return await client.request(method, path, json=body)


async def made(service: Service, method: str, path: str, body: Any) -> Any:
    answer = await ask(service, method, path, body)
    assert answer.status_code < 300, answer.text
    return answer.json()


async def prepare(service: Service) -> None:
    """Account lab with a coordinator, carol; bob's default account is another one."""
    for name in ("lab", "home"):
        await made(service, "POST", "/v1/accounts", {"name": name})
    body = {"user": "carol", "uid": CAROL.uid}
    await made(service, "POST", "/v1/accounts/lab/coordinators", body)
    await made(service, "POST", "/v1/accounts/home/users", {"user": "bob", "uid": BOB.uid})


async def known_by(service: Service, source: str, user: str, uid: int) -> None:
    """The name is in use: by a login, a key, jobs or a disk."""
    now = service.api.clock.now()
    execute = service.database.execute
    if source == "login":
        await execute(
            "insert into odc.login_user (user_name, uid, made_at, login_at) "
            "values ($1, $2, $3, $3)",
            user, uid, now,
        )  # fmt: skip
    elif source == "key":
        await execute(KEEP, user, uid, now, now + timedelta(hours=1))
    elif source == "usage":
        await execute(
            "insert into odc.usage (account_id, uid, qos_id, user_name, used_ms, used_gpu_ms, "
            "used_at) select a.id, $2, q.id, $1, 0, 0, $3 from odc.account as a, odc.qos as q "
            "where a.name = 'default' and q.name = 'normal'",
            user, uid, now,
        )  # fmt: skip
    else:
        await execute(
            "insert into odc.disk (uid, user_name, name, size_gib, made_at) "
            "values ($2, $1, 'data', 10, $3)",
            user, uid, now,
        )  # fmt: skip


async def everybody(service: Service) -> Any:
    return (await ask(service, "GET", "/v1/users")).json()


def attack(url: str, work: Callable[[Service], Awaitable[None]]) -> None:
    async def run(service: Service) -> None:
        await prepare(service)
        await work(service)

    serve(url, run)


USERS = "/v1/accounts/lab/users"


@pytest.mark.parametrize(
    "body",
    [
        {"user": "ann", "uid": BOB.uid},
        {"user": "ann", "uid": ALICE.uid},
        {"user": "ann", "uid": 64010},
        {"user": "ann", "uid": 0},
        {"user": "bob", "uid": 64010},
    ],
)
def test_a_coordinator_cannot_assign_uids(database_url: str, body: dict[str, Any]) -> None:
    async def work(service: Service) -> None:
        await service.submit(ALICE)
        before = await everybody(service)
        refused = await ask(service, "POST", USERS, body, CAROL)
        assert refused.status_code in (400, 403, 409), refused.text
        assert await everybody(service) == before
        if body == {"user": "ann", "uid": 64010}:
            answer = refused.json()
            assert (refused.status_code, answer["code"]) == (403, "OD013")
            assert answer["detail"] == "user ann was not added: only operators may set a uid"
            assert "Leave the uid out" in answer["hint"]

    attack(database_url, work)


def test_a_coordinator_can_add_only_known_users(database_url: str) -> None:
    """By a login, the accounts or the machine; the uid may be repeated, and no other is taken."""

    async def work(service: Service) -> None:
        await known_by(service, "login", "ann", 1_900_000_001)
        unknown = await ask(service, "POST", USERS, {"user": "zed"}, CAROL)
        assert unknown.json()["code"] == "OD027"
        for body, uid in (
            ({"user": "ann"}, 1_900_000_001),
            ({"user": "bob", "uid": BOB.uid}, BOB.uid),
            ({"user": "root"}, 0),
        ):
            answer = await ask(service, "POST", USERS, body, CAROL)
            assert (answer.status_code, answer.json()["uid"]) == (201, uid), answer.text

    attack(database_url, work)


def test_a_coordinator_cannot_change_default_accounts(database_url: str) -> None:
    async def work(service: Service) -> None:
        await known_by(service, "login", "ann", 1_900_000_001)
        body = {"user": "bob", "default": True}
        refused = await ask(service, "POST", USERS, body, CAROL)
        assert (refused.status_code, refused.json()["code"]) == (403, "OD013")
        message = "the default account of user bob was not changed: only operators may do that"
        assert refused.json()["detail"] == message
        for user, default in (("bob", "home"), ("ann", None)):
            added = await ask(service, "POST", USERS, {"user": user}, CAROL)
            assert (added.status_code, added.json()["default_account"]) == (201, default)
            refused = await ask(service, "PATCH", f"{USERS}/{user}", {"default": True}, CAROL)
            assert (refused.status_code, refused.json()["code"]) == (403, "OD013")
        shown = (await ask(service, "GET", "/v1/users/bob")).json()
        assert shown["default_account"] == "home"
        # Users may set their own, and operators may set all.
        own = await ask(service, "POST", USERS, {"user": "carol", "default": True}, CAROL)
        assert own.json()["default_account"] == "lab", own.text
        changed = await ask(service, "PATCH", f"{USERS}/bob", {"default": True})
        assert changed.json()["default_account"] == "lab"

    attack(database_url, work)


@pytest.mark.parametrize("source", SOURCES)
def test_the_uid_of_a_known_name_cannot_be_changed(database_url: str, source: str) -> None:
    async def work(service: Service) -> None:
        await known_by(service, source, "ann", 64020)
        for path in (USERS, "/v1/accounts/lab/coordinators"):
            refused = await ask(service, "POST", path, {"user": "ann", "uid": 64021})
            assert (refused.status_code, refused.json()["code"]) == (409, "OD028"), refused.text
            assert "user ann is known with uid 64020" in refused.json()["detail"]
        added = await ask(service, "POST", USERS, {"user": "ann", "uid": 64020})
        assert added.json()["uid"] == 64020, added.text

    attack(database_url, work)


@pytest.mark.parametrize("source", ["login", "key"])
def test_a_uid_in_use_cannot_get_another_name(database_url: str, source: str) -> None:
    async def work(service: Service) -> None:
        await known_by(service, source, "ann", 64020)
        for path in (USERS, "/v1/accounts/lab/coordinators"):
            refused = await ask(service, "POST", path, {"user": "mallory", "uid": 64020})
            assert (refused.status_code, refused.json()["code"]) == (409, "OD028"), refused.text
            assert "uid 64020 belongs to user ann" in refused.json()["detail"]

    attack(database_url, work)


def test_a_login_never_changes_the_uid_of_a_name(database_url: str) -> None:
    """Even if the accounts of an older version contradict this."""

    async def work(service: Service) -> None:
        await known_by(service, "login", "ann", 1_900_000_001)
        await service.database.execute(
            "insert into odc.association (account_id, uid, user_name, made_at) "
            "select min(id), 64020, 'ann', now() from odc.account"
        )
        now = service.api.clock.now()
        with pytest.raises(LoginRefused, match="uid 1900000001 but has uid 64020"):
            await service.database.fetchval(LOG_IN, "ann", now, now + timedelta(hours=1))

    attack(database_url, work)


@pytest.mark.parametrize("login_first", [True, False])
def test_a_first_login_and_an_account_agree_on_the_uid(
    database_url: str, login_first: bool
) -> None:
    """At the same moment: one waits for the other, and then agrees with it or is refused."""

    async def race(first: asyncpg.Connection, second: asyncpg.Connection, waits: Any) -> None:
        login = (LOG_IN, "ann", NOW, NOW + timedelta(hours=1))
        put = (PUT, "ann", 64020, NOW)
        mine, other = (login, put) if login_first else (put, login)
        async with first.transaction():
            await first.fetchval(*mine)
            late = asyncio.create_task(second.fetchval(*other))
            await waits()
        if login_first:
            with pytest.raises(asyncpg.PostgresError) as refused:
                await late
            assert refused.value.sqlstate == "OD028"
        else:
            assert await late == 64020
        uids = await first.fetch(
            "select uid from odc.login_user union select uid from odc.association"
        )
        assert len(uids) == 1

    async def run() -> None:
        connections = [await connect(database_url) for _ in range(3)]
        first, second, watcher = connections
        try:
            async with asyncio.timeout(60):
                await race(first, second, lambda: until_it_waits(watcher, second.get_server_pid()))
        finally:
            for connection in connections:
                await connection.close()

    asyncio.run(run())
