"""Logging in by AWS credentials: what is sent, what is kept, and when it is renewed."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.odcctl.conftest import Odcctl
from tests.odcctl.peer import Reply, Request, TcpPeer, problem, serving

AWS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE000000001", "AWS_SECRET_ACCESS_KEY": "very-secret",
    "AWS_SESSION_TOKEN": "a+token/=", "AWS_EC2_METADATA_DISABLED": "true", "ODC_HOME": "",
}  # fmt: skip
EMPTY = {"jobs": [], "next": None}


class Server(TcpPeer):
    """Gives keys out, and takes those that hold."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.url = f"http://{host}:{self.server_address[1]}"
        self.holds: set[str] = set()
        self.life = timedelta(hours=2)
        self.on("POST", "/v1/auth/login", self._login)
        self.on("GET", "/v1/jobs", self._jobs)
        self.on("DELETE", "/v1/keys/current", self._logout)
        self.on("GET", "/v1/users/me", {"user": "ann-of-aws"})

    @property
    def logins(self) -> list[Request]:
        return self.requests_to("/v1/auth/login")

    def _login(self, _: Request) -> Reply:
        key = f"odc_key{len(self.logins)}"
        self.holds.add(key)
        expires_at = (datetime.now(UTC) + self.life).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Reply(
            {"key": key, "prefix": key[4:], "user": "ann-of-aws", "uid": 7, "account": "1",
             "role": "GpuUsers", "expires_at": expires_at},
            status=201,
        )  # fmt: skip

    def _admits(self, request: Request) -> bool:
        return request.headers.get("authorization", "").removeprefix("Bearer ") in self.holds

    def _jobs(self, request: Request) -> Reply:
        if self._admits(request):
            return Reply(EMPTY)
        return problem(401, "NotAuthenticated", "OD015", "the API key is unknown", "Log in.")

    def _logout(self, request: Request) -> Reply:
        if not self._admits(request):
            return problem(401, "NotAuthenticated", "OD015", "the API key is unknown")
        self.holds.clear()
        return Reply(None, status=204)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as made:
        yield made


def _kept(home: Path) -> dict[str, Any]:
    return json.loads((home / ".config" / "odcctl" / "keys.json").read_text())


def _signed(request: Request) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(urlsplit(request.body["url"]).query).items()}


def test_a_login_sends_a_signature_and_keeps_the_key(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    """AUT-03, CLI-47, SEC-10: no secret leaks, and only the user can read the file."""
    done = odcctl("login", "--server", server.url, **AWS)
    assert done.code == 0, done.err
    assert done.out.startswith(f"logged in to {server.url} as ann-of-aws (role GpuUsers) until ")
    [request] = server.logins
    assert "authorization" not in request.headers
    assert request.body["headers"] == {"X-Odc-Server-Id": server.url}
    signed = _signed(request)
    assert signed["Action"] == "GetCallerIdentity"
    assert signed["X-Amz-SignedHeaders"] == "host;x-odc-server-id"
    assert 60 <= int(signed["X-Amz-Expires"]) <= 300
    assert "very-secret" not in json.dumps(request.body)
    path = home / ".config" / "odcctl" / "keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert _kept(home)[server.url]["key"] == "odc_key1"
    assert "odc_key1" not in done.out + done.err
    assert odcctl("queue", "--me", "--server", server.url, ODC_HOME="").code == 0
    assert server.requests_to("/v1/jobs")[-1].query["user"] == "ann-of-aws"
    assert len(server.logins) == 1


def test_the_answer_as_json_has_no_key(odcctl: Odcctl, server: Server) -> None:
    done = odcctl("login", "--json", "--server", server.url, **AWS)
    answer = json.loads(done.out)
    assert (answer["user"], answer["server"]) == ("ann-of-aws", server.url)
    assert "key" not in answer
    assert odcctl("login", "--output", "quiet", "--server", server.url, **AWS).out == "ann-of-aws\n"


def test_with_credentials_and_a_server_nothing_else_is_needed(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    """A first command logs in by itself, and is done once."""
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'server = "{server.url}"\ngithub_user = "octocat"\n')
    done = odcctl("queue", **AWS)
    assert (done.code, done.err) == (0, "")
    assert [r.path for r in server.requests] == ["/v1/jobs", "/v1/auth/login", "/v1/jobs"]
    assert server.logins[0].body["github_user"] == "octocat"
    assert odcctl("queue", **AWS).code == 0
    assert len(server.logins) == 1


def test_a_key_is_renewed_before_it_ends_and_nobody_notices(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    """AUT-02, CLI-47."""
    server.life = timedelta(minutes=4)
    assert odcctl("login", "--server", server.url, "--region", "us-west-1", **AWS).code == 0
    server.life = timedelta(hours=2)
    done = odcctl("queue", "--server", server.url, **AWS)
    assert (done.code, done.err) == (0, "")
    assert len(server.logins) == 2
    assert "us-west-1" in _signed(server.logins[1])["X-Amz-Credential"]
    used = [r.headers["authorization"] for r in server.requests_to("/v1/jobs")]
    assert used == ["Bearer odc_key2"]
    # And where that cannot be, the key that still holds is used.
    entry = _kept(home)
    entry[server.url]["expires_at"] = entry[server.url]["expires_at"].replace("20", "19", 1)
    (home / ".config" / "odcctl" / "keys.json").write_text(json.dumps(entry))
    done = odcctl("queue", "--server", server.url, ODC_HOME="", AWS_EC2_METADATA_DISABLED="true")
    assert (done.code, done.err) == (0, "")


def test_a_key_that_is_refused_is_renewed_once(odcctl: Odcctl, server: Server) -> None:
    """CLI-47."""
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    server.holds.clear()
    assert odcctl("queue", "--server", server.url, **AWS).code == 0
    assert len(server.logins) == 2
    assert len(server.requests_to("/v1/jobs")) == 2


def test_renewal_is_not_retried_forever(odcctl: Odcctl, server: Server) -> None:
    """CLI-47, and the earlier BUG-008: a server that accepts no key is reported."""
    server.on("GET", "/v1/jobs", problem(401, "NotAuthenticated", "OD015", "the key is unknown"))
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    done = odcctl("queue", "--server", server.url, **AWS)
    assert done.code == 1
    assert "the key is unknown (OD015)" in done.err
    assert len(server.logins) == 2
    assert len(server.requests_to("/v1/jobs")) == 2


def test_a_key_that_was_just_renewed_and_is_refused_is_not_renewed_again(
    odcctl: Odcctl, server: Server
) -> None:
    """CLI-47."""
    server.life = timedelta(minutes=4)
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    server.on("GET", "/v1/jobs", problem(401, "NotAuthenticated", "OD015", "the key is unknown"))
    assert odcctl("queue", "--server", server.url, **AWS).code == 1
    assert len(server.logins) == 2
    assert len(server.requests_to("/v1/jobs")) == 1


def test_other_credentials_do_not_make_one_another_user(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    path = home / ".config" / "odcctl" / "keys.json"
    path.write_text(path.read_text().replace("ann-of-aws", "bob"))
    server.holds.clear()
    done = odcctl("queue", "--server", server.url, **AWS)
    assert done.code == 1
    assert "are now those of ann-of-aws, and not of bob" in done.err
    assert _kept(home) == {server.url: {"user": "bob"}}
    assert odcctl("queue", "--server", server.url, **AWS).code == 1


def test_a_submit_whose_key_was_refused_makes_one_job(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    script = home / "job.sh"
    script.write_text("#!/bin/sh\n")
    requests: list[Request] = []

    def submit(request: Request) -> Reply:
        requests.append(request)
        if request.headers.get("authorization") is None:
            return problem(401, "NotAuthenticated", "OD015", "no key")
        return Reply({"id": 7, "state": "PENDING", "tasks": 1, "warnings": []}, status=201)

    server.on("POST", "/v1/submit-argv", submit)
    done = odcctl("submit", str(script), **AWS, ODC_SERVER=server.url)
    assert (done.code, done.out) == (0, "Submitted batch job 7\n"), done.err
    keys = {request.headers["idempotency-key"] for request in requests}
    assert (len(requests), len(keys)) == (2, 1)


def test_a_token_that_was_given_is_not_replaced(odcctl: Odcctl, server: Server) -> None:
    done = odcctl("queue", "--server", server.url, **AWS, ODC_TOKEN="mine")
    assert done.code == 1
    assert server.logins == []


def test_without_credentials_the_hint_says_what_to_do(odcctl: Odcctl, server: Server) -> None:
    away = {"ODC_HOME": "", "AWS_EC2_METADATA_DISABLED": "true"}
    done = odcctl("login", "--server", server.url, **away)
    assert done.code == 1
    assert done.err.startswith("odcctl: not logged in: no AWS credentials were found\n")
    done = odcctl("queue", "--server", server.url, **away)
    assert "Login with AWS credentials failed: no AWS credentials were found." in done.err
    assert "Log in." in done.err
    assert server.logins == []


@pytest.mark.long
def test_profiles_are_those_of_the_aws_tools(odcctl: Odcctl, home: Path, server: Server) -> None:
    """AUT-01."""
    folder = home / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[gpu]\naws_access_key_id = AKIAOFAPROFILE000001\naws_secret_access_key = x\n"
    )
    (folder / "config").write_text(
        "[profile sso]\nsso_session = lab\nsso_account_id = 111122223333\nsso_role_name = Gpu\n"
        "[sso-session lab]\nsso_start_url = https://lab.awsapps.com/start\nsso_region = us-east-2\n"
    )
    environment = {"ODC_HOME": "", "AWS_EC2_METADATA_DISABLED": "true"}
    login = ("login", "--server", server.url)
    assert odcctl(*login, "--profile", "gpu", **environment).code == 0
    assert odcctl(*login, **environment, AWS_PROFILE="gpu").code == 0
    for request in server.logins:
        assert _signed(request)["X-Amz-Credential"].startswith("AKIAOFAPROFILE000001/")
    assert _kept(home)[server.url]["profile"] == "gpu"
    done = odcctl(*login, "--profile", "none", **environment)
    assert "(none) could not be found" in done.err
    assert "aws configure list-profiles" in done.err
    done = odcctl(*login, "--profile", "sso", **environment)
    assert "AWS returned no credentials" in done.err
    assert "aws sso login --profile sso" in done.err


@pytest.mark.parametrize(
    ("environment", "options", "host"),
    [
        ({}, [], "sts.us-east-2.amazonaws.com"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, [], "sts.eu-west-1.amazonaws.com"),
        (
            {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "us-west-1"}, [],
            "sts.us-west-1.amazonaws.com",
        ),
        ({"AWS_REGION": "us-west-1"}, ["--region", "us-gov-west-1"],
         "sts.us-gov-west-1.amazonaws.com"),
        ({"AWS_REGION": "cn-north-1"}, [], "sts.cn-north-1.amazonaws.com.cn"),
    ],
)  # fmt: skip
def test_regions_have_an_order(
    odcctl: Odcctl, server: Server, environment: dict[str, str], options: list[str], host: str
) -> None:
    """CLI-45."""
    done = odcctl("login", "--server", server.url, *options, **AWS, **environment)
    assert done.code == 0, done.err
    assert urlsplit(server.logins[0].body["url"]).netloc == host


def test_a_server_that_has_a_name_is_signed_for_by_it(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'server = "{server.url}"\nserver_id = "lab"\n')
    assert odcctl("login", **AWS).code == 0
    assert odcctl("login", **AWS, ODC_SERVER_ID="other").code == 0
    assert odcctl("login", "--server-id", "third", **AWS, ODC_SERVER_ID="other").code == 0
    names = [request.body["headers"]["X-Odc-Server-Id"] for request in server.logins]
    assert names == ["lab", "other", "third"]


def test_a_logout_ends_the_key_there_and_here(odcctl: Odcctl, home: Path, server: Server) -> None:
    """AUT-07: and no command logs in again by itself."""
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    done = odcctl("logout", "--server", server.url, **AWS)
    assert (done.code, done.out) == (0, f"logged out of {server.url}\n")
    assert server.requests_to("/v1/keys/current")[0].headers["authorization"] == "Bearer odc_key1"
    assert _kept(home) == {server.url: {"out": True}}
    assert odcctl("queue", "--server", server.url, **AWS).code == 1
    assert len(server.logins) == 1
    again = odcctl("logout", "--server", server.url, **AWS)
    assert (again.code, again.out) == (0, f"not logged in to {server.url}\n")
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    assert odcctl("queue", "--server", server.url, **AWS).code == 0


def test_a_logout_forgets_the_key_also_when_nobody_answers(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    assert odcctl("login", "--server", server.url, **AWS).code == 0
    server.on("DELETE", "/v1/keys/current", Reply(lose=True))
    done = odcctl("logout", "--server", server.url, **AWS)
    assert done.code == 1
    assert "the key was removed here" in done.err
    assert _kept(home) == {server.url: {"out": True}}


def test_on_the_daemons_machine_there_is_nothing_to_log_in_to(odcctl: Odcctl, home: Path) -> None:
    for verb in ("login", "logout"):
        done = odcctl(verb, "--server", str(home / "odcd.sock"), **AWS)
        assert done.code == 2
        assert "its socket identifies you" in done.err


def test_a_server_in_the_clear_is_not_logged_in_to_unasked(odcctl: Odcctl) -> None:
    # Linux connects a socket to itself, and odcctl cannot know that no server listens on the way.
    with serving(Server("0.0.0.0")) as elsewhere:
        assert odcctl("queue", "--server", elsewhere.url, **AWS).code == 1
        assert elsewhere.logins == []
        done = odcctl("login", "--server", elsewhere.url, **AWS)
        assert done.code == 0
        assert done.err == (
            f"odcctl: {elsewhere.url} does not use TLS: others on the network can read the key\n"
        )


def test_without_botocore_it_says_what_to_install(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    (home / "botocore").mkdir()
    (home / "botocore" / "__init__.py").write_text("raise ImportError")
    done = odcctl("login", "--server", server.url, **AWS, PYTHONPATH=str(home))
    assert done.code == 1
    assert done.err == (
        "odcctl: not logged in: a login with AWS credentials requires botocore, which is not "
        "installed\n"
        "  Install it beside odcctl: pip install 'odc[aws]'\n"
    )


def test_keys_of_several_servers_stand_beside_each_other(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    with serving(Server()) as other:
        for one in (server, other):
            assert odcctl("login", "--server", one.url, **AWS).code == 0
        assert set(_kept(home)) == {server.url, other.url}
        assert odcctl("logout", "--server", other.url, **AWS).code == 0
    assert odcctl("queue", "--server", server.url, **AWS).code == 0


def test_a_broken_file_of_keys_is_written_anew(odcctl: Odcctl, home: Path, server: Server) -> None:
    path = home / ".config" / "odcctl" / "keys.json"
    path.parent.mkdir(parents=True)
    for text in ("{", "[]", f'{{"{server.url}": 7}}'):
        path.write_text(text)
        path.chmod(0o644)
        assert odcctl("queue", "--server", server.url, **AWS).code == 0
        assert _kept(home)[server.url]["key"].startswith("odc_key")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def profiles(home: Path) -> dict[str, str]:
    """Of three roles, and nothing else in the environment."""
    folder = home / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "".join(
            f"[{name}]\naws_access_key_id = AKIA{name.upper()}\naws_secret_access_key = x\n"
            for name in ("gpu", "admin", "third")
        )
    )
    return {"ODC_HOME": "", "AWS_EC2_METADATA_DISABLED": "true"}


def _signers(server: Server) -> list[str]:
    return [_signed(one)["X-Amz-Credential"].split("/")[0] for one in server.logins]


@pytest.mark.long
def test_another_profile_is_another_login(
    odcctl: Odcctl, home: Path, server: Server, profiles: dict[str, str]
) -> None:
    """AUT-12: the key of the one is not used for the other, nor is its user asked for."""
    queue = ("queue", "--server", server.url)
    login = ("login", "--server", server.url, "--region", "us-west-1")
    assert odcctl(*login, "--profile", "gpu", **profiles).code == 0
    path = home / ".config" / "odcctl" / "keys.json"
    path.write_text(path.read_text().replace("ann-of-aws", "bob"))
    for environment in ({}, {"AWS_PROFILE": "gpu"}):
        assert odcctl(*queue, **profiles, **environment).code == 0
    assert _signers(server) == ["AKIAGPU"]
    for _ in range(2):
        done = odcctl(*queue, **profiles, AWS_PROFILE="admin")
        assert (done.code, done.err) == (0, "")
    assert _signers(server) == ["AKIAGPU", "AKIAADMIN"]
    assert "us-west-1" in _signed(server.logins[1])["X-Amz-Credential"]
    assert [one.headers["authorization"] for one in server.requests_to("/v1/jobs")][-1] == (
        "Bearer odc_key2"
    )
    # It is renewed with the same kind, also if no profile is named.
    server.holds.clear()
    assert odcctl(*queue, **profiles).code == 0
    assert _signers(server)[-1] == "AKIAADMIN"


def test_what_was_chosen_at_the_login_goes_before_the_environment(
    odcctl: Odcctl, server: Server, profiles: dict[str, str]
) -> None:
    """AUT-12: of the environment as it was then."""
    queue = ("queue", "--server", server.url)
    login = ("login", "--server", server.url, "--profile", "gpu")
    assert odcctl(*login, **profiles, AWS_PROFILE="admin").code == 0
    assert odcctl(*queue, **profiles, AWS_PROFILE="admin").code == 0
    server.holds.clear()
    assert odcctl(*queue, **profiles).code == 0
    assert odcctl(*queue, **profiles, AWS_PROFILE="admin").code == 0
    assert _signers(server) == ["AKIAGPU", "AKIAGPU"]
    assert odcctl(*queue, **profiles, AWS_PROFILE="third").code == 0
    assert _signers(server)[-1] == "AKIATHIRD"


def test_a_failed_login_does_not_keep_the_old_key(
    odcctl: Odcctl, home: Path, server: Server, profiles: dict[str, str]
) -> None:
    """AUT-12: the key is forgotten; how it was made is not."""
    queue = ("queue", "--server", server.url)
    assert odcctl("login", "--server", server.url, "--profile", "gpu", **profiles).code == 0
    done = odcctl(*queue, **profiles, AWS_PROFILE="none")
    assert done.code == 1
    assert (
        "Login with AWS credentials failed: the config profile (none) could not be found"
        in done.err
    )
    assert server.requests_to("/v1/jobs")[-1].headers.get("authorization") is None
    assert _kept(home) == {server.url: {"user": "ann-of-aws", "profile": "gpu"}}
    assert odcctl(*queue, **profiles).code == 0
    assert _signers(server) == ["AKIAGPU", "AKIAGPU"]


def test_keys_in_the_environment_go_before_a_profile_of_it(
    odcctl: Odcctl, server: Server, profiles: dict[str, str]
) -> None:
    """AUT-12: as the AWS tools have it."""
    assert odcctl("login", "--server", server.url, **AWS, AWS_PROFILE="gpu").code == 0
    assert odcctl("queue", "--server", server.url, **AWS, AWS_PROFILE="admin").code == 0
    assert _signers(server) == ["AKIAEXAMPLE000000001"]
    assert odcctl("queue", "--server", server.url, **profiles, AWS_PROFILE="admin").code == 0
    assert _signers(server)[-1] == "AKIAADMIN"
