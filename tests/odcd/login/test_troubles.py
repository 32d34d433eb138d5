"""AWS and GitHub slow, down, wrong or lying: no caller gets in by that, and no user waits for
long."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.odcd.login.house import House, live
from tests.support.fakes import sts as faults
from tests.support.fakes.sts import ANSWER, Sts, saying

IDENTITY = ANSWER.format(
    arn="arn:aws:sts::111122223333:assumed-role/GpuUsers/ann", account="111122223333", session="ann"
)
TROUBLES: dict[str, tuple[Callable[[Any], None], str]] = {
    "silent": (faults.silent, "did not answer within"),
    "dripping": (faults.dripping, "did not answer within"),
    "redirect": (faults.redirecting, "answered with status 302"),
    "error of its own": (saying(500), "answered with status 500"),
    "throttled": (saying(429), "answered with status 429"),
    "too much": (faults.endless, "answered with more than"),
    "nothing": (saying(200), "is not an identity"),
    "no XML": (saying(200, "<html>"), "is not an identity"),
    "other XML": (saying(200, "<a/>"), "is not an identity"),
    "other namespace": (
        saying(200, IDENTITY.replace("doc/2011-06-15", "doc/1")), "is not an identity"
    ),
    "entities": (
        saying(200, '<!DOCTYPE a [<!ENTITY b "c">]>' + IDENTITY), "is not an identity"
    ),
    "two ARNs": (
        saying(200, IDENTITY.replace("<Arn>", "<Arn>x</Arn><Arn>")),
        "is not an identity",
    ),
    "two results": (
        saying(200, IDENTITY.replace("</GetCallerIdentityResult>",
                                     "</GetCallerIdentityResult><GetCallerIdentityResult/>")),
        "is not an identity",
    ),
    "another account": (
        saying(200, IDENTITY.replace("<Account>1", "<Account>2")), "contradicts itself"
    ),
    "no HTTP": (lambda handler: handler.wfile.write(b"220 mail\r\n\r\n"), "is not HTTP"),
    "upgrade": (
        lambda handler: handler.reply(101, "", connection="upgrade", upgrade="x"), "is not HTTP"
    ),
    "hanging up": (lambda handler: handler.connection.close(), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLES)
def test_without_a_clear_answer_of_aws_a_login_is_refused(
    database_url: str, sts: Sts, name: str
) -> None:
    sts.trouble, message = TROUBLES[name]
    ann = sts.add("ann")
    never = message == "did not answer within"

    async def work(house: House) -> None:
        begun = time.monotonic()
        answer = await house.log_in(ann)
        assert time.monotonic() - begun < faults.NEVER_S / 2
        assert (answer.status_code, answer.json()["code"]) == (503, "OD035"), answer.text
        assert message in answer.json()["detail"]
        # Where the time is short, it may be over before the request is there.
        assert len(sts.requests) in ((0, 1) if never else (1,))
        [refused] = await house.audit_events("login_refused")
        assert refused["reason"] == "IdentityDown"

    live(database_url, sts, work, timeout_s=0.8 if never else 30.0)


def test_an_untrusted_aws_server_is_not_asked(database_url: str, sts: Sts) -> None:
    """SEC-11."""
    ann = sts.add("ann")
    sts.trust = ssl.create_default_context  # type: ignore[method-assign]

    async def work(house: House) -> None:
        answer = await house.log_in(ann)
        assert answer.status_code == 503
        assert "cannot be trusted" in answer.json()["detail"]
        assert sts.requests == []

    live(database_url, sts, work)


def test_an_unreachable_aws_is_reported(database_url: str, sts: Sts) -> None:
    ann = sts.add("ann")

    async def work(house: House) -> None:
        url = faults.presign(ann, "https://127.0.0.1:9", "https://odc.example:8443")
        answer = await house.send(url)
        assert (answer.status_code, answer.json()["code"]) == (503, "OD035")
        assert "cannot be reached" in answer.json()["detail"]

    live(database_url, sts, work, environment={"ODC_STS_ENDPOINT": "https://127.0.0.1:9"})


class GitHub:
    """GitHub's answers by path, beside STS on the same server."""

    def __init__(self, sts: Sts, folder: Path) -> None:
        self.answers: dict[str, tuple[int, str]] = {}
        self.paths: list[str] = []
        self.token = folder / "token"
        self.token.write_text("ghp_secret\n")
        self.sts = sts
        sts.trouble = self.serve

    def serve(self, handler: Any) -> None:
        if handler.path.startswith("/?"):
            handler.reply(*self.sts.answer(handler.path, handler.headers))
            return
        assert handler.headers["Authorization"] == "Bearer ghp_secret"
        self.paths.append(handler.path)
        handler.reply(*self.answers.get(handler.path, (404, "{}")))

    def settings(self, group: str) -> dict[str, str]:
        return {
            "ODC_GITHUB_ORG": group, "ODC_GITHUB_TOKEN_FILE": str(self.token),
            "ODC_GITHUB_API": self.sts.url,
        }  # fmt: skip


def test_only_members_of_the_organisation_can_log_in(
    database_url: str, sts: Sts, tmp_path: Path
) -> None:
    """AUT-10, AUT-11: requested once, then cached for a while; each GitHub name belongs to one
    user."""
    github = GitHub(sts, tmp_path)
    github.answers["/orgs/lab/members/annlee"] = (204, "")
    ann, bob = sts.add("ann"), sts.add("bob")

    async def work(house: House) -> None:
        async def tries(who: Any, **more: Any) -> tuple[int, str | None]:
            answer = await house.log_in(who, **more)
            return answer.status_code, answer.json().get("reason")

        assert await tries(ann) == (403, "github")
        for bad in ("../../user", "a--b", "-a", "a" * 40, "a b", ""):
            assert await tries(ann, github_user=bad) == (403, "github")
        assert github.paths == []
        assert await tries(ann, github_user="AnnLee") == (201, None)
        assert await tries(ann, github_user="annlee") == (201, None)
        assert await tries(bob, github_user="bob") == (403, "github")
        assert await tries(bob, github_user="bob") == (403, "github")
        assert github.paths == ["/orgs/lab/members/annlee", "/orgs/lab/members/bob"]
        assert await tries(bob, github_user="annlee") == (403, "user")

    live(database_url, sts, work, environment=github.settings("lab"))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((200, '{"state": "active"}'), 201),
        ((200, '{"state": "pending"}'), 403),
        ((404, "{}"), 403),
        ((200, "[]"), 503),
        ((204, ""), 503),
        ((401, "{}"), 503),
        ((403, "{}"), 503),
        ((302, ""), 503),
        ((500, ""), 503),
    ],
)
def test_only_confirmed_team_members_can_log_in(
    database_url: str, sts: Sts, tmp_path: Path, answer: tuple[int, str], status: int
) -> None:
    """AUT-11."""
    github = GitHub(sts, tmp_path)
    github.answers["/orgs/lab/teams/gpu/memberships/ann"] = answer
    ann = sts.add("ann")

    async def work(house: House) -> None:
        response = await house.log_in(ann, github_user="ann")
        assert response.status_code == status, response.text
        assert "ghp_secret" not in response.text

    live(database_url, sts, work, environment=github.settings("lab/gpu"))


def test_without_a_github_token_logins_are_refused(
    database_url: str, sts: Sts, tmp_path: Path
) -> None:
    github = GitHub(sts, tmp_path)
    github.token.unlink()
    ann = sts.add("ann")

    async def work(house: House) -> None:
        response = await house.log_in(ann, github_user="ann")
        assert (response.status_code, response.json()["code"]) == (503, "OD035")
        assert "has no token" in response.json()["detail"]

    live(database_url, sts, work, environment=github.settings("lab"))
