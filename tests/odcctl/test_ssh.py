"""The configuration that odcctl writes so that ssh, VS Code and Cursor find a reservation, and its
removal."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_job, a_reservation, outcome
from tests.odcctl.peer import Peer, Reply, problem
from tests.odcctl.test_reservations import PATH, listed
from tests.odcctl.test_terminal import Terminal, terminal

__all__ = ["terminal"]

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBAPaPFcbYjoonV+zqzpaxMvo1Bt9nSKZiZGGRuIvMI"
INCLUDE = "Include ~/.odc/ssh/*.conf"


def an_ssh_reservation(number: int = 12, **fields: Any) -> dict[str, Any]:
    return a_reservation(
        number, **{"connect": "ssh", "ssh_command": f"ssh -A odc-{number}", **fields}
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_ssh_reads(conf: Path, host: str) -> dict[str, str]:
    """The configuration as OpenSSH itself reads it."""
    done = subprocess.run(
        ["ssh", "-G", "-F", conf, host], capture_output=True, text=True, check=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_a_reservation_has_a_file_that_ssh_understands(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    """CLI-44, CLI-48, ACC-10: private, by number whatever its name is, a host for each node."""
    listed(peer, an_ssh_reservation(name="a/../b $(id)", node_count=2, node_names=["n1", "n2"]))
    done = odcctl("config", "ssh", "12")
    conf = home / ".odc/ssh/12.conf"
    assert (done.code, done.out) == (0, f"{conf}\n"), done.err
    assert (mode(conf), mode(conf.parent)) == (0o600, 0o700)
    for host, rank in (("odc-12", 0), ("odc-12-0", 0), ("odc-12-1", 1)):
        options = as_ssh_reads(conf, host)
        assert options["user"] == "dev"
        assert options["forwardagent"] == "yes"
        assert options["stricthostkeychecking"] == "accept-new"
        assert options["userknownhostsfile"] == f"{home}/.odc/ssh/known_hosts"
        assert options["hostkeyalias"] == f"odc-12-{rank}"
        command = options["proxycommand"]
        assert command.endswith(f" --server {home}/odcd.sock ssh-proxy 12 {rank}")
        assert command.startswith("/")


def test_host_keys_that_the_daemon_tells_are_pinned(peer: Peer, odcctl: Odcctl, home: Path) -> None:
    """ACC-24, ACC-10: and those of an earlier reservation of that number are not believed."""
    known = home / ".odc/ssh/known_hosts"
    known.parent.mkdir(parents=True)
    known.write_text("odc-12-0 ssh-rsa AAAAold\nodc-123-0 ssh-rsa AAAAother\n")
    listed(peer, {**an_ssh_reservation(node_count=2), "host_keys": [HOST_KEY, "no\nkey"]})
    assert odcctl("config", "ssh", "12").code == 0
    assert known.read_text() == f"odc-123-0 ssh-rsa AAAAother\nodc-12-0,odc-12-1 {HOST_KEY}\n"
    options = as_ssh_reads(home / ".odc/ssh/12.conf", "odc-12")
    assert options["stricthostkeychecking"] in ("true", "yes")


def test_show_and_connect_keep_the_file_up_and_list_and_cancel_take_it_away(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    """ACC-17: with the links that open editors."""
    conf = home / ".odc/ssh/12.conf"
    listed(peer, an_ssh_reservation())
    peer.on("GET", "/v1/jobs/12", {"jobs": [a_job(12, "RUNNING", kind="reservation")]})
    shown = odcctl("show", "12").out
    assert "vscode://vscode-remote/ssh-remote+odc-12/home/dev\n" in shown
    assert "cursor://vscode-remote/ssh-remote+odc-12/home/dev\n" in shown
    assert conf.exists()
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(12, "signalled")]})
    assert odcctl("cancel", "12", "--signal", "USR1").code == 0
    assert conf.exists()
    peer.on("POST", "/v1/jobs/cancel", {"jobs": [outcome(12, "cancelled")]})
    assert odcctl("cancel", "12").code == 0
    assert not conf.exists()
    for over in ("expired", "failed"):
        listed(peer, an_ssh_reservation())
        assert odcctl("config", "ssh", "12").code == 0
        one = a_reservation(12, over)
        peer.on("GET", PATH, Reply({"reservations": [one]}))
        assert odcctl("list").code == 0
        assert not conf.exists()


def test_the_include_line_is_first_once_and_private(peer: Peer, odcctl: Odcctl, home: Path) -> None:
    """CLI-43: in both files, whatever is in them; and the choice is remembered."""
    ssh, cursor = home / ".ssh/config", home / ".cursor/ssh_config"
    ssh.parent.mkdir()
    (home / "dotfiles").write_text("Host a\n  User \xe9\n")
    ssh.symlink_to(home / "dotfiles")
    assert odcctl("config", "ssh-include", "enable").code == 0
    again = odcctl("config", "ssh-include", "enable")
    assert (again.code, "already" in again.err) == (0, True)
    assert ssh.read_text() == f"{INCLUDE}\nHost a\n  User \xe9\n"
    assert ssh.is_symlink()
    assert cursor.read_text() == f"{INCLUDE}\n"
    assert [mode(path) for path in (ssh, cursor)] == [0o600, 0o600]
    settings = json.loads(odcctl("config", "show", "--json").out)
    assert settings["ssh_include"] is True
    assert odcctl("config", "ssh-include", "disable").code == 0
    assert ssh.read_text() == "Host a\n  User \xe9\n"
    assert cursor.read_text() == ""
    assert json.loads(odcctl("config", "--json").out)["ssh_include"] is False


def test_what_is_set_is_shown_with_who_one_is(peer: Peer, odcctl: Odcctl, home: Path) -> None:
    """CLI-42: the name that the server has for who asks, be it of AWS; all the rest without it."""
    path = home / ".config/odcctl/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('github_user = "octocat"\n')
    peer.on("GET", "/v1/users/me", {"user": "alice", "uid": 1001})
    settings = json.loads(odcctl("config", "show", "--json").out)
    assert (settings["github_user"], settings["user"], settings["file"]) == (
        "octocat",
        "alice",
        str(path),
    )
    shown = odcctl("config").out
    assert "you are:     alice" in shown
    assert f"server:      {home}/odcd.sock" in shown
    peer.on("GET", "/v1/users/me", problem(401, "NotAuthenticated", "OD015", "no key"))
    assert "unknown: the server did not answer" in odcctl("config").out


def test_values_are_set_and_the_rest_of_the_file_stays(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    """AUT-10: the GitHub name is the daemon's to keep."""
    path = home / ".config/odcctl/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('# mine\nserver = "http://old:1"\ntoken = "secret"\n[table]\nserver = 1\n')
    assert odcctl("config", "set", "server", "https://odc.example:8443").code == 0
    answer = {"user": "alice", "uid": 1001, "github_user": "octocat"}
    peer.on("PUT", "/v1/users/me", answer)
    assert odcctl("config", "set", "github_user", "octocat").code == 0
    assert peer.requests_to("/v1/users/me")[0].body == {"github_user": "octocat"}
    assert path.read_text() == (
        '# mine\nserver = "https://odc.example:8443"\ntoken = "secret"\n'
        'github_user = "octocat"\n[table]\nserver = 1\n'
    )
    assert mode(path) == 0o600
    shown = odcctl("config")
    assert (shown.code, "octocat" in shown.out, "secret" in shown.out) == (0, True, False)
    for wrong in (["set", "token", "x"], ["set", "server", "http://x:"], ["ssh-include"], ["frob"]):
        assert odcctl("config", *wrong).code == 2


SSH = '#!/bin/sh\nprintf "%s\\n" "$@" > "$0.args"\necho "$STDERR" >&2\nexit "$CODE"\n'


@pytest.fixture
def ssh(home: Path) -> Path:
    path = home / "bin/ssh"
    path.parent.mkdir()
    path.write_text(SSH)
    path.chmod(0o755)
    return path


def test_connect_runs_ssh_with_what_odcctl_knows(
    peer: Peer, odcctl: Odcctl, home: Path, ssh: Path
) -> None:
    """CLI-25, CLI-26: with the agent; the name alone where ssh knows it; nothing that the daemon
    says is run."""
    listed(
        peer,
        an_ssh_reservation(ssh_command="sh -c 'echo bad'", node_count=2, node_names=["n1", "n2"]),
    )
    env = {"PATH": f"{ssh.parent}:/usr/bin:/bin", "CODE": "7", "STDERR": ""}
    assert odcctl("connect", **env).code == 7
    arguments = ssh.with_name("ssh.args").read_text().splitlines()
    assert (arguments[:2], arguments[-1]) == (["-A", "-o"], "odc-12")
    assert any(argument.startswith("ProxyCommand=") for argument in arguments)
    assert (home / ".odc/ssh/12.conf").exists()
    assert odcctl("config", "ssh-include", "enable").code == 0
    assert odcctl("connect", "12", "--rank", "1", **env).code == 7
    assert ssh.with_name("ssh.args").read_text().splitlines() == ["-A", "odc-12-1"]
    assert odcctl("connect", "12", "--rank", "2", **env).code == 2


@pytest.mark.parametrize(
    ("stderr", "after", "code", "word"),
    [
        ("dev@odc-12: Permission denied (publickey).", {}, 1, "--add-user"),
        ("Connection closed", {}, 3, "was lost; it is active until"),
        ("Connection closed", {"status": "expired"}, 1, "expired 2026-07-01"),
        ("Connection closed", {"status": "cancelled", "message": "root cancelled it"}, 1,
         "has ended: root cancelled it"),
    ],
)  # fmt: skip
def test_connect_tells_why_ssh_failed(
    peer: Peer, odcctl: Odcctl, ssh: Path, stderr: str, after: dict[str, Any], code: int, word: str
) -> None:
    """CLI-27: expired, cancelled, dropped and refused keys apart; the last alone names add-user."""
    now = an_ssh_reservation(github_user="octocat")
    later = now if not after else a_reservation(12, **after)
    listed(peer, now)
    peer.on("GET", f"{PATH}/12", now, now, later)
    done = odcctl("connect", "12", PATH=f"{ssh.parent}:/usr/bin:/bin", CODE="255", STDERR=stderr)
    assert (done.code, word in done.err, stderr in done.err) == (code, True, True), done.err
    assert ("add-user" in done.err) == ("Permission" in stderr)


def test_connect_asks_which_node(
    peer: Peer, terminal: Callable[..., Terminal], ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLI-26: rank 0 unless one says otherwise."""
    listed(peer, an_ssh_reservation(node_count=2, node_names=["n1", "n2"]))
    screen = terminal("connect", "12")
    shown = screen.until(b"Which node [1]: ")
    assert b"1. rank 0  n1  active" in shown
    assert b"2. rank 1  n2  active" in shown
    screen.type(b"\x03")
    assert screen.end() == 130


def test_reserve_makes_it_known_and_asks_once(peer: Peer, odcctl: Odcctl, home: Path) -> None:
    """CLI-43, ACC-17: elsewhere than on a terminal nothing is asked or included."""
    peer.on("POST", PATH, Reply(an_ssh_reservation(status="pending", connect=None), 201))
    peer.on("GET", f"{PATH}/12", an_ssh_reservation())
    peer.on("GET", "/v1/jobs/12/events", Reply(pieces=[], media_type="text/event-stream"))
    peer.on("GET", "/v1/availability", {"at": "2026-07-01T12:00:00Z", "types": []})
    done = odcctl("reserve", "--github-user", "octocat")
    assert done.code == 0, done.err
    assert "ssh -A odc-12" in done.out
    assert "vscode://vscode-remote/ssh-remote+odc-12/home/dev" in done.out
    assert peer.requests_to(PATH)[0].body["github_user"] == "octocat"
    assert (home / ".odc/ssh/12.conf").exists()
    assert not (home / ".ssh/config").exists()


@pytest.mark.parametrize("arguments", [[], ["x"], ["1", "-1"], ["1", "2", "3"], ["1", "x"]])
def test_ssh_proxy_takes_numbers(odcctl: Odcctl, arguments: list[str]) -> None:
    assert odcctl("ssh-proxy", *arguments).code == 2
