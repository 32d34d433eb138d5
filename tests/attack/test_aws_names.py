"""A caller who assumes a role chooses the session name, but cannot become any user that way."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.errors import BadRequest, LoginRefused
from odcd.login.identities import Caller, find_rule, name_of, parse_caller, read_identities
from odcd.login.settings import read_login
from tests.odcd.login.conftest import _api_database, database_url, folder, sts
from tests.odcd.login.house import SERVER, House, live
from tests.support.fakes.sts import ACCOUNT, ROLE, Sts

__all__ = ["_api_database", "database_url", "folder", "sts"]

IAM = f"arn:aws:iam::{ACCOUNT}"
MAP = f"""
[[identity]]
arn = "{IAM}:role/ml/Research"
user = "{{session}}"
allow = ["ann", "ml-*"]

[[identity]]
arn = "{IAM}:role/CI"
user = "ci-bot"

[[identity]]
arn = "{IAM}:role/Admins"
user = "{{session}}"
operators = true

[[identity]]
arn = "{IAM}:role/Services"
user = "{{session}}"
system = true

[[identity]]
arn = "{IAM}:user/team/*"
user = "{{name}}"

[[identity]]
arn = "arn:aws-us-gov:iam::{ACCOUNT}:role/Gov*"
user = "gov-{{session}}"

[[identity]]
arn = "{IAM}:role/Site"
user = "{{session}}"
domain = "example.org"
"""


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    path = tmp_path / "identities.toml"
    path.write_text(MAP)
    path.chmod(0o644)
    return path


def session(role: str, name: str, partition: str = "aws") -> str:
    return f"arn:{partition}:sts::{ACCOUNT}:assumed-role/{role}/{name}"


def named(path: Path, arn: str) -> str:
    """The name that the map yields. Raises LoginRefused."""
    found = parse_caller(arn)
    assert found is not None, arn
    return name_of(find_rule(read_identities(path), found[1]), found[1], None)


@pytest.mark.parametrize(
    ("arn", "user"),
    [
        (session("Research", "ann"), "ann"),
        (session("research", "ann"), "ann"),
        (session("Research", "ml-7"), "ml-7"),
        (session("CI", "root"), "ci-bot"),
        (session("Admins", "ann"), "ann"),
        (session("Site", "ann@Example.org"), "ann"),
        (f"{IAM}:user/team/Zoe", "Zoe"),
        (session("GovGpu", "ann", "aws-us-gov"), "gov-ann"),
    ],
)
def test_the_map_names_users(map_file: Path, arn: str, user: str) -> None:
    """Without the path of a role, which STS leaves out, and in any case, as AWS compares names."""
    assert named(map_file, arn) == user


@pytest.mark.parametrize(
    "arn",
    [
        session("Research", "bob"),
        session("Research", "Ann"),
        session("Research", "annx"),
        session("ResearchX", "ann"),
        session("XResearch", "ann"),
        session("Other", "ann"),
        session("Research", "ann", "aws-cn"),
        session("Gov", "ann"),
        session("Site", "ann"),
        session("Site", "ann@evil.org"),
        session("Site", "example.org@ann@evil.org"),
        f"arn:aws:sts::{'9' * 12}:assumed-role/Research/ann",
        f"{IAM}:user/ann",
        f"{IAM}:user/team/sub/ann",
        f"{IAM}:user/other/team/ann",
    ],
)
def test_the_map_rejects_unlisted_identities(map_file: Path, arn: str) -> None:
    with pytest.raises(LoginRefused):
        named(map_file, arn)


@pytest.mark.parametrize(
    "arn",
    [
        f"{IAM}:root",
        f"{IAM}:role/Research",
        f"arn:aws:sts::{ACCOUNT}:federated-user/ann",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml/Research/ann",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/Research",
        f"arn:aws-other:sts::{ACCOUNT}:assumed-role/Research/ann",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/Research/ann\n",
        "",
    ],
)
def test_an_arn_that_is_neither_session_nor_user_is_not_a_caller(arn: str) -> None:
    assert parse_caller(arn) is None


@pytest.mark.parametrize(
    ("role", "name", "user"),
    [
        ("GpuUsers", "ann", None),
        ("GpuUsers", "zoe", "zoe"),
        ("GpuUsers", "postgres", None),
        ("GpuUsers", "daemon", None),
        ("GpuUsers", "root", None),
        ("Admins", "ann", "ann"),
        ("Admins", "postgres", None),
        ("Services", "postgres", "postgres"),
        ("Services", "ann", None),
        ("Services", "root", None),
        ("Services", "ROOT", None),
        ("CI", "ann", "ci-bot"),
    ],
)
def test_a_session_becomes_an_operator_or_system_account_only_if_its_rule_allows_it(
    database_url: str, sts: Sts, map_file: Path, role: str, name: str, user: str | None
) -> None:
    """ann is an operator. GpuUsers is let in by ODC_AWS_ROLES."""
    credentials = sts.add(name, role=role)

    async def work(house: House) -> None:
        answer = await house.log_in(credentials)
        if user is None:
            assert (answer.status_code, answer.json()["reason"]) == (403, "user"), answer.text
            assert len(await house.audit_events("login_refused")) == 1
            assert await house.audit_events("login") == []
            return
        assert (answer.status_code, answer.json()["user"]) == (201, user), answer.text
        async with house.client(answer.json()["key"]) as client:
            me = (await client.get("/v1/users/me")).json()
        assert me["operator"] is (user == "ann")

    live(
        database_url, sts, work, operators=frozenset({"ann"}),
        environment={"ODC_AWS_IDENTITIES": str(map_file), "ODC_AWS_ROLES": ROLE},
    )  # fmt: skip


def test_iam_users_can_log_in_only_through_the_map(
    database_url: str, sts: Sts, map_file: Path
) -> None:
    zoe = sts.add("zoe", arn=f"{IAM}:user/team/zoe")
    other = sts.add("zoe", arn=f"{IAM}:user/zoe")

    async def work(house: House) -> None:
        answer = await house.log_in(zoe)
        assert (answer.status_code, answer.json()["role"]) == (201, "user/team/zoe"), answer.text
        refused = await house.log_in(other)
        assert (refused.status_code, refused.json()["reason"]) == (403, "role")

    live(database_url, sts, work, environment={"ODC_AWS_IDENTITIES": str(map_file)})


ENTRY = f'[[identity]]\narn = "{IAM}:role/X"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("identity = 1", "Expected `array`"),
        ("[[identity]]\n", "missing required field"),
        (f"{ENTRY}user = 'ann'\nuid = 0\n", "unknown field"),
        (f"{ENTRY}user = '{{session}}{{session}}'\n", "is neither a name nor a template"),
        (f"{ENTRY}user = '{{name}}'\n", "is for IAM users"),
        (f"{ENTRY}user = '7up'\n", "is not a valid user name"),
        (f"{ENTRY}user = ''\n", "is neither a name nor a template"),
        (f"{ENTRY}user = 'ann'\noperators = true\n", "are for names with"),
        (f"{ENTRY}user = '{{session}}'\nallow = ['a b']\n", "is not a pattern for names"),
        (f"{ENTRY}user = '{{session}}'\ndomain = 'a b'\n", "is not a domain"),
        (f"{ENTRY}user = 'a'\n{ENTRY}user = 'b'\n".replace("X", "x", 1), "is listed twice"),
        ("[[identity]]\narn = 'arn:aws:iam::*:role/X'\nuser = 'a'\n", "is not a role or a user"),
        ("[[identity]]\narn = '*'\nuser = 'a'\n", "is not a role or a user"),
        ("\x00", "ODC_AWS_IDENTITIES"),
    ],
)
def test_a_wrong_map_is_refused_at_the_start(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)
    with pytest.raises(BadRequest, match=message):
        read_login({"ODC_URL": SERVER, "ODC_AWS_IDENTITIES": str(path)})


def test_a_world_writable_map_is_refused(map_file: Path, tmp_path: Path) -> None:
    map_file.chmod(0o666)
    with pytest.raises(BadRequest, match="everyone may write"):
        read_identities(map_file)
    with pytest.raises(BadRequest, match="cannot be read"):
        read_identities(tmp_path / "none")


def test_an_assumed_role_is_known_without_its_path() -> None:
    found = parse_caller(session("Research", "ann"))
    assert found is not None
    assert found[1] == Caller(partition="aws", account=ACCOUNT, name="Research", session="ann")
