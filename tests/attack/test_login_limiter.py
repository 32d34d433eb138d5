"""One user cannot keep others from logging in, fill the audit log, or cause requests to AWS without
limit."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from botocore.credentials import Credentials

from odcd.api.http.door import Door
from odcd.clock import SystemClock
from odcd.front.hosts import Hosts
from odcd.front.proxies import Proxies, parse_networks
from odcd.front.watch import Nobody
from tests.odcd.api.conftest import _api_database, database_url
from tests.odcd.login.house import SERVER, House, live
from tests.support.fakes.sts import Sts, presign, serving_sts

__all__ = ["_api_database", "database_url"]

PROXY = "127.0.0.1"
LIMIT = 30


class Minute(SystemClock):
    """All of a test happens within one minute."""

    def monotonic(self) -> float:
        return 1000.0


@pytest.fixture
def sts() -> Iterator[Sts]:
    with serving_sts() as server:
        yield server


def stranger(number: int) -> Credentials:
    """Well formed, but unknown to AWS."""
    return Credentials(f"ASIASTRANGER{number:08}", "guess", "token")


async def through_proxy(house: House, client: str, credentials: Credentials) -> int:
    """The status of a login of a client that a proxy forwards."""
    door = Door(
        house.service.app, Hosts.of(["odc"]), Proxies(parse_networks([PROXY], "X")), Nobody()
    )
    transport = httpx.ASGITransport(door, client=(PROXY, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://odc") as connection:
        answer = await connection.post(
            "/v1/auth/login",
            json={
                "url": presign(credentials, house.sts.url, SERVER),
                "headers": {"X-Odc-Server-Id": SERVER},
            },
            headers={"X-Forwarded-For": f"198.51.100.99, {client}"},
        )
    return answer.status_code


def test_malformed_logins_do_not_lock_out_other_users(database_url: str, sts: Sts) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        for _ in range(4 * LIMIT):
            assert (await house.send("https://x/")).status_code == 403
        assert sts.requests == []
        assert (await house.log_in(ann)).status_code == 201
        assert len(await house.audit_events("login_refused")) == LIMIT

    live(database_url, sts, work, clock=Minute())


def test_clients_behind_a_trusted_proxy_are_counted_apart(database_url: str, sts: Sts) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        for number in range(LIMIT):
            assert await through_proxy(house, "198.51.100.1", stranger(number)) == 403
        assert await through_proxy(house, "198.51.100.1", stranger(99)) == 429
        assert await through_proxy(house, "198.51.100.2", ann) == 201

    live(database_url, sts, work, clock=Minute())


def test_a_user_who_logged_in_recently_is_not_locked_out_by_neighbours(
    database_url: str, sts: Sts
) -> None:
    ann, bob = sts.add("ann"), sts.add("bob")

    async def work(house: House) -> None:
        assert (await house.log_in(ann)).status_code == 201
        for number in range(LIMIT):
            assert (await house.log_in(stranger(number))).status_code == 403
        assert (await house.log_in(bob)).status_code == 429
        assert (await house.log_in(ann)).status_code == 201
        assert len(sts.requests) == LIMIT + 2

    live(database_url, sts, work, clock=Minute())


def test_repeated_logins_with_one_invalid_credential_are_rate_limited(
    database_url: str, sts: Sts
) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        for _ in range(10):
            assert (await house.log_in(stranger(1))).status_code == 403
        many = await house.log_in(stranger(1))
        assert (many.status_code, many.json()["code"]) == (429, "OD034")
        assert many.headers["retry-after"] == "60"
        assert (await house.log_in(ann)).status_code == 201

    live(database_url, sts, work, clock=Minute())
