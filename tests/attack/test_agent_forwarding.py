"""A user's SSH agent is not forwarded into a dev server that others may enter as root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.odcctl.conftest import Odcctl, environment, home, odcctl, peer
from tests.odcctl.peer import Peer
from tests.odcctl.test_reservations import listed
from tests.odcctl.test_ssh import an_ssh_reservation, as_ssh_reads, ssh

__all__ = ["environment", "home", "odcctl", "peer", "ssh"]

OTHERS = ["mallory"]
QUIET = {"CODE": "0", "TOLD": ""}


def forwarded(home: Path) -> str:
    """As OpenSSH reads the file, after the user's own, which has the lower precedence."""
    own = home / "own"
    own.write_text(f"Include {home}/.odc/ssh/12.conf\nHost *\n  ForwardAgent yes\n")
    return as_ssh_reads(own, "odc-12")["forwardagent"]


def ssh_arguments(odcctl: Odcctl, ssh: Path, *more: str) -> list[str]:
    done = odcctl("connect", *more, PATH=f"{ssh.parent}:/usr/bin:/bin", **QUIET)
    assert done.code == 0, done.err
    return ssh.with_name("ssh.args").read_text().splitlines()


@pytest.mark.parametrize(("others", "forwards"), [([], "yes"), (OTHERS, "no")])
def test_the_ssh_config_forwards_no_agent_to_shared_dev_servers(
    peer: Peer, odcctl: Odcctl, home: Path, others: list[str], forwards: str
) -> None:
    """The user's own file may contain options for all hosts."""
    listed(peer, an_ssh_reservation(secondary_users=others))
    assert odcctl("config", "ssh", "12").code == 0
    assert forwarded(home) == forwards


def test_the_ssh_config_changes_when_users_are_added(
    peer: Peer, odcctl: Odcctl, home: Path
) -> None:
    reservations: list[dict[str, Any]] = [
        an_ssh_reservation(),
        an_ssh_reservation(secondary_users=OTHERS),
        an_ssh_reservation(),
    ]
    for reservation, forwards in zip(reservations, ("yes", "no", "yes"), strict=True):
        listed(peer, reservation)
        assert odcctl("list").code == 0
        assert odcctl("config", "ssh", "12").code == 0
        assert forwarded(home) == forwards


def test_connect_forwards_no_agent_to_shared_dev_servers(
    peer: Peer, odcctl: Odcctl, ssh: Path
) -> None:
    listed(peer, an_ssh_reservation(secondary_users=OTHERS))
    assert ssh_arguments(odcctl, ssh)[0] == "-a"
    assert "ForwardAgent=no" in ssh_arguments(odcctl, ssh)
    stderr = odcctl("connect", PATH=f"{ssh.parent}:/usr/bin:/bin", **QUIET).err
    assert (
        "other users may connect to this dev server, so your SSH agent is not forwarded" in stderr
    )
    assert ssh_arguments(odcctl, ssh, "--forward-agent")[0] == "-A"
    listed(peer, an_ssh_reservation())
    assert ssh_arguments(odcctl, ssh)[0] == "-A"
    assert ssh_arguments(odcctl, ssh, "--no-forward-agent")[0] == "-a"
    assert odcctl("connect", "--no-forward-agent", "--forward-agent").code == 2


def test_a_user_can_turn_agent_forwarding_off(
    peer: Peer, odcctl: Odcctl, home: Path, ssh: Path
) -> None:
    """Then ssh's own files decide for the user's own dev servers; those of several stay off."""
    listed(peer, an_ssh_reservation())
    assert odcctl("config", "set", "forward_agent", "off").code == 0
    assert not {"-A", "-a", "ForwardAgent=yes"} & set(ssh_arguments(odcctl, ssh))
    assert as_ssh_reads(home / ".odc/ssh/12.conf", "odc-12")["forwardagent"] == "no"
    assert odcctl("config", "set", "forward_agent", "on").code == 0
    listed(peer, an_ssh_reservation(secondary_users=OTHERS))
    assert ssh_arguments(odcctl, ssh)[0] == "-a"
    assert odcctl("config", "set", "forward_agent", "maybe").code == 2
