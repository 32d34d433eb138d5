"""Logins by AWS identity: the accepted callers, their user names, and the duration."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from botocore.credentials import Credentials

from odcd.clock import SystemClock
from odcd.errors import BadRequest
from odcd.login.settings import read_login
from tests.odcd.api.service import OPERATOR, Service, serve
from tests.odcd.login.house import SERVER, House, live
from tests.support.fakes.sts import ACCOUNT, ROLE, Sts, presign


def test_an_aws_identity_is_exchanged_for_a_key(database_url: str, sts: Sts) -> None:
    """AUT-01, AUT-02, AUT-03: no password, no secret of AWS on the wire, two hours."""
    ann = sts.add("ann")

    async def work(house: House) -> None:
        answer = await house.log_in(ann)
        assert answer.status_code == 201, answer.text
        assert answer.headers["cache-control"] == "no-store"
        login = answer.json()
        assert login["key"].startswith("odc_" + login["prefix"])
        assert len(login["prefix"]) == 8
        assert (login["user"], login["account"], login["role"]) == ("ann", ACCOUNT, "GpuUsers")
        async with house.client(login["key"]) as client:
            job = await client.post("/v1/jobs", json={"script": "#!/bin/sh\n", "work_dir": "/"})
            assert job.status_code == 201
            [shown] = (await client.get(f"/v1/jobs/{job.json()['id']}")).json()["jobs"]
            assert (shown["user"], shown["uid"]) == ("ann", login["uid"])
            me = (await client.get("/v1/users/me")).json()
        assert me["key"]["expires_at"] == login["expires_at"]
        assert (me["user"], me["operator"], me["sessions"]) == ("ann", False, 1)
        assert await house.audit_events("login") == [
            {"actor": "ann", "account": ACCOUNT, "role": "GpuUsers", "from": "127.0.0.1",
             "uid": login["uid"], "key": login["prefix"]}
        ]  # fmt: skip
        [kept] = await house.service.database.fetch(
            "select to_jsonb(k)::text as row, expires_at - made_at as life from odc.api_key as k"
        )
        assert kept["life"] == timedelta(hours=2)
        for secret in (login["key"], ann.secret_key, ann.token):
            assert secret not in kept["row"]

    live(database_url, sts, work)


def test_a_name_keeps_its_uid_and_each_has_its_own(database_url: str, sts: Sts) -> None:
    ann, bob = sts.add("ann"), sts.add("bob")

    async def work(house: House) -> None:
        first = (await house.log_in(ann)).json()
        other = (await house.log_in(bob)).json()
        again = (await house.log_in(ann)).json()
        assert first["uid"] == again["uid"] != other["uid"]
        assert min(first["uid"], other["uid"]) >= 1_900_000_000
        async with house.client(first["key"]) as one, house.client(again["key"]) as two:
            assert (await one.get("/v1/users/me")).json()["sessions"] == 2
            assert (await two.get("/v1/users/me")).json()["key"]["prefix"] == again["prefix"]
        # From now on the accounts know the name with that uid.
        async with house.service.client(OPERATOR) as client:
            made = await client.post("/v1/accounts/default/users", json={"user": "ann"})
            assert made.json()["uid"] == first["uid"]

    live(database_url, sts, work)


def test_the_uid_of_a_user_comes_from_the_accounts(database_url: str, sts: Sts) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        async with house.service.client(OPERATOR) as client:
            await client.post("/v1/accounts/default/users", json={"user": "ann", "uid": 64009})
        assert (await house.log_in(ann)).json()["uid"] == 64009

    live(database_url, sts, work)


def test_accounts_cannot_change_the_identity_of_a_login(database_url: str, sts: Sts) -> None:
    """SEC-01: a coordinator chooses names and uids of users; a login does not trust them
    blindly."""
    mallory, bob = sts.add("mallory"), sts.add("bob")

    async def work(house: House) -> None:
        uid = (await house.log_in(bob)).json()["uid"]
        for taken in (uid, 0):
            await house.service.database.execute(
                "delete from odc.association where user_name = 'mallory'"
            )
            await house.service.database.execute(
                "insert into odc.association (account_id, uid, user_name, made_at) "
                "select min(id), $1, 'mallory', now() from odc.account",
                taken,
            )
            refused = await house.log_in(mallory)
            assert (refused.status_code, refused.json()["reason"]) == (403, "user")
        assert "but that uid belongs to user bob" not in refused.text
        assert len(await house.audit_events("login_refused")) == 2

    live(database_url, sts, work)


def test_a_key_can_be_rotated_and_ended(database_url: str, sts: Sts) -> None:
    """API-02, AUT-06, AUT-07: the old key ends at once, other sessions continue."""
    ann = sts.add("ann")

    async def work(house: House) -> None:
        first, other = await house.key_of(ann), await house.key_of(ann)
        async with house.client(first) as client:
            rotated = await client.post("/v1/keys/rotate")
            assert rotated.status_code == 201
            assert (await client.get("/v1/users/me")).status_code == 401
            assert (await client.post("/v1/keys/rotate")).status_code == 401
        async with house.client(rotated.json()["key"]) as client:
            assert (await client.get("/v1/users/me")).json()["sessions"] == 2
            assert (await client.delete("/v1/keys/current")).status_code == 204
            assert (await client.get("/v1/users/me")).status_code == 401
        async with house.client(other) as client:
            assert (await client.get("/v1/users/me")).json()["sessions"] == 1
        async with house.service.client(OPERATOR) as client:
            for method, path in (("POST", "/v1/keys/rotate"), ("DELETE", "/v1/keys/current")):
                answer = await client.request(method, path)
                assert (answer.status_code, answer.json()["code"]) == (409, "OD012")
            assert (await client.get("/v1/users/me")).json()["key"] is None

    live(database_url, sts, work)


def test_key_rotation_does_not_extend_a_session(database_url: str, sts: Sts) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        key = await house.key_of(ann)
        sql = house.service.database
        await sql.execute(
            "update odc.api_key set made_at = made_at - interval '11 hours', "
            "expires_at = expires_at - interval '11 hours' + interval '10 hours', "
            "until_at = until_at - interval '11 hours'"
        )
        async with house.client(key) as client:
            assert (await client.post("/v1/keys/rotate")).status_code == 201
        left = await sql.fetchval(
            "select extract(epoch from max(expires_at) filter (where active) - now()) "
            "from odc.api_key"
        )
        assert 3500 < left <= 3600

    live(database_url, sts, work)


def test_a_key_that_has_expired_is_refused_at_once_and_removed_later(
    database_url: str, sts: Sts
) -> None:
    """AUT-06, AUT-07: and when a key was used last is written once a minute."""
    ann = sts.add("ann")

    async def work(house: House) -> None:
        key = await house.key_of(ann)
        sql = house.service.database
        async with house.client(key) as client:
            used = []
            for back_s in (0, 30, 61):
                await sql.execute(
                    "update odc.api_key set last_used_at = last_used_at - $1::interval",
                    timedelta(seconds=back_s),
                )
                before = await sql.fetchval("select last_used_at from odc.api_key")
                assert (await client.get("/v1/users/me")).status_code == 200
                used.append(await sql.fetchval("select last_used_at from odc.api_key") != before)
            assert used == [True, False, True]
            await sql.execute("update odc.api_key set expires_at = now()")
            assert (await client.get("/v1/users/me")).status_code == 401
        await sql.execute("update odc.login_signature set expires_at = now() - interval '1 s'")
        await sql.fetchval("select odc.sweep(0, now() + interval '1 s')")
        # A terminal that it opened may continue until the login ends.
        assert await sql.fetchval("select count(*) from odc.api_key") == 1
        await sql.execute("update odc.api_key set until_at = now()")
        await sql.fetchval("select odc.sweep(0, now() + interval '2 s')")
        assert await sql.fetchval("select count(*) from odc.api_key") == 0
        assert await sql.fetchval("select count(*) from odc.login_signature") == 0

    live(database_url, sts, work)


@pytest.mark.parametrize(
    ("arn", "reason"),
    [
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Other/ann", "role"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsersX/ann", "role"),
        ("arn:aws:sts::999988887777:assumed-role/GpuUsers/ann", "role"),
        (f"arn:aws-cn:sts::{ACCOUNT}:assumed-role/GpuUsers/ann", "role"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/path/GpuUsers/ann", "identity"),
        (f"arn:aws:iam::{ACCOUNT}:root", "identity"),
        (f"arn:aws:iam::{ACCOUNT}:user/ann", "role"),
        (f"arn:aws:iam::{ACCOUNT}:role/GpuUsers", "identity"),
        (f"arn:aws:sts::{ACCOUNT}:federated-user/ann", "identity"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/root", "user"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/odcd", "user"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/1001", "user"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/ann@example.org", "user"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/a=b", "user"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/GpuUsers/-rf", "user"),
    ],
)
def test_only_sessions_of_a_listed_role_can_log_in(
    database_url: str, sts: Sts, arn: str, reason: str
) -> None:
    """AUT-05."""
    who = sts.add("x", arn=arn)

    async def work(house: House) -> None:
        answer = await house.log_in(who)
        assert (answer.status_code, answer.json()["code"]) == (403, "OD033"), answer.text
        assert answer.json()["reason"] == reason
        [refused] = await house.audit_events("login_refused")
        assert (refused["actor"], refused["reason"]) == ("odcd", reason)
        assert await house.audit_events("login") == []
        assert await house.service.database.fetchval("select count(*) from odc.api_key") == 0

    live(database_url, sts, work)


def test_sso_sessions_carry_a_domain_and_roles_a_tail(database_url: str, sts: Sts) -> None:
    role = "AWSReservedSSO_Gpu_0123456789abcdef"
    ann = sts.add("Ann.Lee@example.org", role=role)
    plain, other = sts.add("ann", role=role), sts.add("ann@example.com", role=role)
    environment = {
        "ODC_AWS_ROLES": f"{ROLE}, arn:aws:iam::{ACCOUNT}:role/AWSReservedSSO_Gpu_*",
        "ODC_AWS_DOMAIN": "example.org",
    }

    async def work(house: House) -> None:
        assert (await house.log_in(ann)).json()["user"] == "Ann.Lee"
        for who in (plain, other):
            assert (await house.log_in(who)).json()["reason"] == "user"

    live(database_url, sts, work, environment=environment)


def test_only_configured_operators_are_operators(
    database_url: str, sts: Sts, tmp_path: Path
) -> None:
    """AUT-09: where the role may name them; tests/attack/test_aws_names.py has others."""
    trusted = tmp_path / "identities.toml"
    trusted.write_text(f'[[identity]]\narn = "{ROLE}"\nuser = "{{session}}"\noperators = true\n')
    ann, bob = sts.add("ann"), sts.add("bob")

    async def work(house: House) -> None:
        for who, status in ((ann, 201), (bob, 403)):
            async with house.client(await house.key_of(who)) as client:
                made = await client.post("/v1/accounts", json={"name": "lab"})
                assert made.status_code == status

    live(
        database_url, sts, work, operators=frozenset(["ann"]),
        environment={"ODC_AWS_IDENTITIES": str(trusted)},
    )  # fmt: skip


def test_without_roles_logins_are_refused(database_url: str) -> None:
    async def work(service: Service) -> None:
        async with service.client(None) as client:
            body = {"url": "https://x/", "headers": {}}
            answer = await client.post("/v1/auth/login", json=body)
        assert (answer.status_code, answer.json()["reason"]) == (403, "off")
        assert answer.json()["detail"] == "this server does not accept logins"

    serve(database_url, work)


def test_logins_in_the_audit_log_are_for_operators(database_url: str, sts: Sts) -> None:
    """SEC-09, SEC-10."""
    ann = sts.add("ann")

    async def work(house: House) -> None:
        key = await house.key_of(ann)
        url = presign(ann, house.sts.url, "another")
        await house.send(url)
        params = {"after": 0, "follow": "false"}
        async with house.client(key) as client:
            assert "event: login" not in (await client.get("/v1/events", params=params)).text
        async with house.service.client(OPERATOR) as client:
            events = ""
            async with asyncio.timeout(60):
                while "event: login_refused\n" not in events:  # Behind an open transaction none is.
                    events = (await client.get("/v1/events", params=params)).text
        assert "event: login\n" in events
        assert "event: login_refused\n" in events
        for secret in (key, "X-Amz", "Signature", "secret", ann.access_key):
            assert secret not in events

    live(database_url, sts, work)


def test_repeated_refusals_of_one_address_are_rate_limited(database_url: str, sts: Sts) -> None:
    class Clock(SystemClock):
        """A clock that stays within one minute."""

        def monotonic(self) -> float:
            return 1000.0

    ann = sts.add("ann")

    async def work(house: House) -> None:
        for number in range(30):
            unknown = Credentials(f"ASIAUNKNOWN{number:09}", "guess", "token")
            assert (await house.log_in(unknown)).status_code == 403
        many = await house.log_in(ann)
        assert (many.status_code, many.json()["code"]) == (429, "OD034")
        assert many.headers["retry-after"] == "60"
        assert len(sts.requests) == 30
        assert len(await house.audit_events("login_refused")) == 30

    live(database_url, sts, work, clock=Clock())


def test_a_large_or_malformed_body_is_refused(database_url: str, sts: Sts) -> None:
    async def work(house: House) -> None:
        async with house.client() as client:
            for body, status in (
                ({"url": "x" * 40_000, "headers": {}}, 413),
                ({"url": "x"}, 400),
                ({"url": 7, "headers": {}}, 400),
                ({"url": "x", "headers": {"a": 1}}, 400),
                ({"url": "x", "headers": {}, "user": "root"}, 400),
            ):
                answer = await client.post("/v1/auth/login", content=json.dumps(body))
                assert answer.status_code == status, answer.text

    live(database_url, sts, work)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ODC_AWS_ROLES": "arn:aws:iam::*:role/X"}, "is not a role"),
        ({"ODC_AWS_ROLES": "arn:aws:iam::111122223333:role//X"}, "is not a role"),
        ({"ODC_AWS_ROLES": "arn:aws:iam::111122223333:user/X"}, "is not a role"),
        ({"ODC_AWS_ROLES": "*"}, "is not a role"),
        ({"ODC_URL": ""}, "the server has no name"),
        ({"ODC_URL": "odc.example"}, "is not an address"),
        ({"ODC_SERVER_ID": "my server"}, "has blanks"),
        ({"ODC_STS_ENDPOINT": "http://sts.us-east-2.amazonaws.com"}, "is not an address"),
        ({"ODC_STS_ENDPOINT": "https://me@sts.us-east-2.amazonaws.com"}, "is not an address"),
        ({"ODC_STS_ENDPOINT": "https://sts.us-east-2.amazonaws.com/x"}, "has a path"),
        ({"ODC_STS_ENDPOINT": "https://sts..amazonaws.com"}, "is not an address"),
        ({"ODC_AWS_DOMAIN": "a b"}, "is not a domain"),
        ({"ODC_GITHUB_ORG": "a/b/c", "ODC_GITHUB_TOKEN_FILE": "/t"}, "is not an organisation"),
        ({"ODC_GITHUB_ORG": "../x", "ODC_GITHUB_TOKEN_FILE": "/t"}, "is not an organisation"),
        ({"ODC_GITHUB_ORG": "lab"}, "needs a token"),
    ],
)
def test_a_wrong_setting_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        read_login({"ODC_AWS_ROLES": ROLE, "ODC_URL": SERVER, **environment})


def test_the_server_id_defaults_to_its_url() -> None:
    def named(url: str) -> str | None:
        return read_login({"ODC_URL": url}).server_id

    assert named("https://ODC.example") == "https://odc.example:443"
    assert named("http://odc.example/") == "http://odc.example:80"
    assert named("https://[::1]:8443") == "https://[::1]:8443"
    assert read_login({"ODC_URL": "https://x:1", "ODC_SERVER_ID": "lab"}).server_id == "lab"
    assert read_login({}).aws_roles == ()
