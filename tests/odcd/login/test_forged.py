"""Invalid proofs of identity: each is refused for its own reason, and before AWS is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials

from odcd.clock import SystemClock
from tests.odcd.login.house import SERVER, House, live
from tests.support.fakes.sts import Sts, presign

HEADERS = {"X-Odc-Server-Id": SERVER}
Forge = Callable[[Sts, Credentials], str]


def _changed(old: str, new: str) -> Forge:
    """A good request with a part of it replaced."""

    def forge(sts: Sts, ann: Credentials) -> str:
        url = presign(ann, sts.url, SERVER, expires_s=60)
        assert old.format(host=sts.authority) in url
        return url.replace(old.format(host=sts.authority), new.format(host=sts.authority), 1)

    return forge


def _signed(**options: Any) -> Forge:
    return lambda sts, ann: presign(ann, sts.url, **{"server_id": SERVER, **options})


FORGED: dict[str, tuple[Forge, str]] = {
    "other host": (_changed("{host}", "evil.example"), "host"),
    "host of another region": (_changed("{host}", "sts.eu-west-1.amazonaws.com"), "host"),
    "host with a tail": (_changed("{host}", "{host}.evil.example"), "host"),
    "userinfo": (_changed("https://{host}", "https://{host}@evil.example"), "host"),
    "userinfo before": (_changed("https://{host}", "https://me:x@{host}"), "host"),
    "port": (_changed("{host}", "{host}0"), "host"),
    "port of the scheme": (_changed("{host}", "127.0.0.1:443"), "host"),
    "no port": (_changed("{host}", "127.0.0.1"), "host"),
    "IPv6": (_changed("{host}", "[::ffff:127.0.0.1]"), "host"),
    "host in upper case": (_changed("{host}", "LOCALHOST"), "host"),
    "host percent-encoded": (_changed("{host}", "%31{host}"), "host"),
    "host with a dot": (_changed("{host}", "{host}."), "host"),
    "backslash": (_changed("https://{host}/", "https://evil.example\\@{host}/"), "host"),
    "query as host": (_changed("https://{host}/", "https://evil.example?{host}/"), "host"),
    "scheme": (_changed("https://", "http://"), "scheme"),
    "scheme in upper case": (_changed("https://", "HTTPS://"), "scheme"),
    "file": (_changed("https://", "file://"), "scheme"),
    "blank before": (lambda sts, ann: " " + presign(ann, sts.url, SERVER), "form"),
    "line break": (_changed("/?", "/?\r\nHost: evil\r\n"), "form"),
    "other script": (_changed("/?", "/?\u0430"), "form"),
    "path": (_changed("/?", "/x?"), "path"),
    "two slashes": (_changed("/?", "//?"), "path"),
    "path percent-encoded": (_changed("/?", "/%2e?"), "path"),
    "fragment": (lambda sts, ann: presign(ann, sts.url, SERVER) + "#x", "path"),
    "no query": (lambda sts, _: f"{sts.url}/", "path"),
    "long": (lambda sts, ann: presign(ann, sts.url, SERVER) + "&x=" + "x" * 9000, "size"),
    "other action": (_signed(action="GetSessionToken"), "action"),
    "action in another case": (_signed(action="getcalleridentity"), "action"),
    "action with a tail": (_changed("GetCallerIdentity", "GetCallerIdentity%0a"), "action"),
    "two actions": (
        lambda sts, ann: presign(ann, sts.url, SERVER) + "&Action=AssumeRole", "parameter",
    ),
    "the same twice": (
        lambda sts, ann: presign(ann, sts.url, SERVER) + "&X-Amz-Expires=60", "parameter",
    ),
    "no action": (_changed("Action=GetCallerIdentity&", ""), "action"),
    "parameter too many": (
        lambda sts, ann: presign(ann, sts.url, SERVER) + "&RoleArn=x", "parameter",
    ),
    "empty parameter": (lambda sts, ann: presign(ann, sts.url, SERVER) + "&", "parameter"),
    "name in another case": (_changed("Action=", "action="), "parameter"),
    "name percent-encoded": (_changed("Action=", "%41ction="), "parameter"),
    "name percent-encoded beside": (
        lambda sts, ann: presign(ann, sts.url, SERVER) + "&%41ction=AssumeRole", "parameter",
    ),
    "semicolons": (_changed("Version=2011-06-15&", "Version=2011-06-15;Action=X&"), "parameter"),
    "plus": (_changed("Version=2011-06-15", "Version=2011-06-15+"), "parameter"),
    "other version": (_changed("2011-06-15", "2010-05-08"), "parameter"),
    "other algorithm": (_changed("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"), "parameter"),
    "other service": (_changed("%2Fsts%2F", "%2Fiam%2F"), "parameter"),
    "broken encoding": (_changed("%2Fsts", "%2sts"), "parameter"),
    "not UTF-8": (_changed("%2Fsts", "%ff%2Fsts"), "parameter"),
    "signature in upper case": (_changed("X-Amz-Signature=", "X-Amz-Signature=A"), "parameter"),
    "no signature": (_changed("X-Amz-Signature=", "X-Amz-Signature=&x="), "parameter"),
    "no expiry": (_changed("X-Amz-Expires=60&", ""), "parameter"),
    "long expiry": (_signed(expires_s=3600), "expiry"),
    "no life": (_changed("X-Amz-Expires=60", "X-Amz-Expires=0"), "expiry"),
    "less than no life": (_changed("X-Amz-Expires=60", "X-Amz-Expires=-60"), "parameter"),
    "no day": (_changed("X-Amz-Date=2", "X-Amz-Date=9999999"), "parameter"),
    "unsigned header": (_signed(server_id=None), "unsigned"),
    "header too many": (_signed(**{"X-Amz-Target": "x"}), "header"),
}  # fmt: skip


@pytest.fixture
def forged(database_url: str, sts: Sts) -> Callable[..., None]:
    def check(url: Forge, reason: str, headers: Any = None, **options: Any) -> None:
        async def work(house: House) -> None:
            answer = await house.send(url(sts, sts.add("ann")), headers or HEADERS, **options)
            assert (answer.status_code, answer.json().get("reason")) == (403, reason), answer.text
            assert sts.requests == []
            [refused] = await house.audit_events("login_refused")
            assert refused == {"actor": "odcd", "reason": reason, "from": "127.0.0.1"}

        live(database_url, sts, work)

    return check


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_request_is_not_forwarded(forged: Callable[..., None], name: str) -> None:
    """AUT-04."""
    forged(*FORGED[name])


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"X-Odc-Server-Id": "https://other.example:443"}, "server_id"),
        ({"X-Odc-Server-Id": SERVER + " "}, "server_id"),
        ({"X-Odc-Server-Id": SERVER.upper()}, "server_id"),
        ({}, "header"),
        ({"host": "x"}, "header"),
        ({**HEADERS, "host": "evil.example"}, "header"),
        ({**HEADERS, "x-odc-server-id": SERVER}, "header"),
        ({**HEADERS, "authorization": "x"}, "header"),
        ({**HEADERS, "x-forwarded-host": "x"}, "header"),
    ],
)
def test_headers_must_be_exactly_the_signed_ones(
    forged: Callable[..., None], headers: dict[str, str], reason: str
) -> None:
    """AUT-04: a proof shown to another server is invalid here."""
    forged(lambda sts, ann: presign(ann, sts.url, SERVER), reason, headers or {"accept": "x"})


def test_a_signature_for_another_server_fails_at_aws(database_url: str, sts: Sts) -> None:
    """The client sends one name and signed another: the server sends its own name, and AWS reports
    the difference."""
    ann = sts.add("ann")

    async def work(house: House) -> None:
        answer = await house.send(presign(ann, sts.url, "https://other.example:443"))
        assert (answer.status_code, answer.json()["reason"]) == (403, "sts")
        assert "SignatureDoesNotMatch" in answer.json()["detail"]
        assert len(sts.requests) == 1

    live(database_url, sts, work)


def test_other_methods_are_refused(forged: Callable[..., None]) -> None:
    forged(_signed(), "method", method="POST")


def test_a_signature_can_be_used_only_once(database_url: str, sts: Sts) -> None:
    """AUT-04: also spelt otherwise, and also when AWS had no answer the first time."""
    ann, bob = sts.add("ann"), sts.add("bob")

    async def work(house: House) -> None:
        url = presign(ann, sts.url, SERVER)
        assert (await house.send(url)).status_code == 201
        head, _, query = url.partition("?")
        turned = f"{head}?{'&'.join(reversed(query.split('&')))}"
        for again in (url, turned, url.replace("host%3B", "host%3b")):
            refused = await house.send(again)
            assert (refused.status_code, refused.json()["reason"]) == (403, "replayed")
        assert len(sts.requests) == 1
        sts.people[bob.access_key] = ("wrong", "")
        lost = presign(bob, sts.url, SERVER)
        assert [(await house.send(lost)).json()["reason"] for _ in range(2)] == ["sts", "replayed"]

    live(database_url, sts, work)


@pytest.mark.parametrize(("ahead_s", "ok"), [(-600, False), (-40, True), (200, True), (400, False)])
def test_an_old_signature_is_refused(database_url: str, sts: Sts, ahead_s: int, ok: bool) -> None:
    """AUT-04. ahead_s: of the client's clock before the server's."""

    class Clock(SystemClock):
        def now(self) -> Any:
            return super().now() - timedelta(seconds=ahead_s)

    ann = sts.add("ann")

    async def work(house: House) -> None:
        answer = await house.log_in(ann)
        assert answer.status_code == (201 if ok else 403), answer.text
        if not ok:
            assert answer.json()["reason"] == "date"
            assert sts.requests == []

    live(database_url, sts, work, clock=Clock())
