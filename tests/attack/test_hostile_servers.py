"""A hostile server gets no user data except what the user named explicitly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.odcctl.conftest import Odcctl, environment, home, odcctl, peer
from tests.odcctl.objects import a_reservation
from tests.odcctl.peer import Peer, Reply
from tests.odcctl.test_login import AWS, Server, server
from tests.odcctl.test_submit import ARGV, needs_script
from tests.odcctl.test_terminal import Terminal

__all__ = ["environment", "home", "odcctl", "peer", "server"]

SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "arguments", [["job.sh"], ["--wrap", "true"], ["--output", "id", "job.sh"]]
)
def test_a_server_chooses_no_file_to_be_sent(
    peer: Peer, odcctl: Odcctl, home: Path, arguments: list[str]
) -> None:
    """Before: it asked for any file as the script, ~/.ssh/id_ed25519 for example, and got it."""
    (home / "job.sh").write_text("#!/bin/sh\n")
    secret = home / "id_ed25519"
    secret.write_text(SECRET)
    peer.on("POST", ARGV, needs_script(str(secret)))
    done = odcctl("submit", *arguments)
    assert done.code == 1
    assert f'asked for the file "{secret}", which the command line does not name' in done.err
    (request,) = peer.requests_to(ARGV)
    assert request.body["script"] is None


OURS = "https://odc.example:8443"
KEY = {"ODC_TOKEN": "odc_secret", "ODC_HOME": ""}


def configure(home: Path, text: str) -> None:
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(text)


@pytest.mark.parametrize("where", ["variable", "file"])
def test_the_key_of_the_environment_is_not_sent_to_another_server(
    odcctl: Odcctl, home: Path, server: Server, where: str
) -> None:
    """Before: a server named once on the command line got the key of the usual server."""
    variable = {"ODC_SERVER": OURS} if where == "variable" else {}
    if where == "file":
        configure(home, f'server = "{OURS}"\n')
    done = odcctl("queue", "--server", server.url, **KEY, **variable)
    assert done.code == 2
    assert f"ODC_TOKEN is for {OURS}" in done.err
    assert f"If ODC_TOKEN is for {server.url}, set ODC_SERVER to that address." in done.err
    assert server.requests == []


def test_the_key_of_the_environment_is_sent_to_its_server(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    """As CI systems set both; with --server too; and alone, where no server is configured."""

    def sends(*argv: str, **variables: str) -> bool:
        odcctl("queue", *argv, **KEY, **variables)
        return server.requests.pop().headers.get("authorization") == "Bearer odc_secret"

    assert sends(ODC_SERVER=server.url)
    assert sends("--server", server.url, ODC_SERVER=server.url)
    assert sends("--server", server.url)
    # Keys are not sent to a socket, so the key is not for a socket either.
    assert sends("--server", server.url, ODC_SERVER=str(home / "odcd.sock"))
    configure(home, f'server = "{server.url}"\n')
    assert sends()
    assert sends("--server", server.url.upper().replace("HTTP", "http"))


def test_a_key_in_the_config_file_without_a_server_is_for_that_of_the_environment(
    odcctl: Odcctl, home: Path, server: Server
) -> None:
    configure(home, 'token = "odc_secret"\n')
    odcctl("queue", "--server", server.url, ODC_HOME="", ODC_SERVER=OURS)
    assert "authorization" not in server.requests[0].headers
    odcctl("queue", ODC_HOME="", ODC_SERVER=server.url)
    assert server.requests[-1].headers["authorization"] == "Bearer odc_secret"


def test_a_login_is_signed_for_no_other_server(odcctl: Odcctl, server: Server) -> None:
    """Before: the server that was named got a login that is valid at the server of ODC_SERVER_ID,
    and could send it there."""
    named = {**AWS, "ODC_SERVER_ID": "lab"}
    done = odcctl("login", "--server", server.url, **named, ODC_SERVER=OURS)
    assert done.code == 2
    assert f"ODC_SERVER_ID is for {OURS}" in done.err
    assert "log in with --server-id" in done.err
    # The same when a command logs in automatically.
    done = odcctl("queue", "--server", server.url, **named, ODC_SERVER=OURS)
    assert done.code == 1
    assert f"ODC_SERVER_ID is for {OURS}" in done.err
    assert server.logins == []
    for variables in ({"ODC_SERVER": server.url}, {}):
        assert odcctl("login", "--server", server.url, **named, **variables).code == 0
    server_ids = [request.body["headers"]["X-Odc-Server-Id"] for request in server.logins]
    assert server_ids == ["lab", "lab"]
    assert (
        odcctl("login", "--server", server.url, "--server-id", "x", **AWS, ODC_SERVER=OURS).code
        == 0
    )


NAMES = ("x;$(touch pwned)", "x`id`", "x y", "x>f", "x~", "-x", "=x", "good.name-1")


@pytest.mark.parametrize(
    ("arguments", "path", "answer"),
    [
        (("connect", ""), "/v1/reservations", [a_reservation(12, name=name) for name in NAMES]),
        (("queue", "-p", ""), "/v1/partitions", [{"name": name} for name in NAMES]),
    ],
)
def test_a_name_that_a_shell_would_run_is_not_completed(
    peer: Peer, odcctl: Odcctl, arguments: tuple[str, ...], path: str, answer: list[object]
) -> None:
    """Before: bash completed a name of $(COMMAND) as it was, and ran the command with the line."""
    peer.on("GET", path, {path.rpartition("/")[2]: answer})
    done = odcctl(
        _ODCCTL_COMPLETE="bash_complete", COMP_WORDS=" ".join(("odcctl", *arguments)),
        COMP_CWORD=str(len(arguments)),
    )  # fmt: skip
    values = [line.partition(",")[2] for line in done.out.splitlines() if line]
    assert [value for value in values if value != "12"] == ["good.name-1"]


def test_a_script_is_printed_to_a_terminal_without_its_escapes(
    peer: Peer, environment: dict[str, str]
) -> None:
    """Before: an operator who looked at a user's script let it control the terminal."""
    script = b"#!/bin/sh\n# \x1b]0;owned\x07\n"
    peer.on("GET", "/v1/jobs/7/script", Reply(pieces=[script], media_type="text/plain"))
    screen = Terminal(environment, "show", "7", "--script")
    try:
        assert b"\x1b" not in screen.until(b"# \\u001b]0;owned\\u0007")
        assert screen.end() == 0
    finally:
        screen.close()
    # A file gets it unchanged, so that it can be run.
    command = [sys.executable, "-m", "odcctl", "show", "7", "--script"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=True)
    assert done.stdout == script
