"""A server that is not the one it seems gets nothing of a user's that the user did not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.odcctl.conftest import Odcctl, environment, home, odcctl, peer
from tests.odcctl.peer import Peer
from tests.odcctl.test_submit import ARGV, needs_script

__all__ = ["environment", "home", "odcctl", "peer"]

SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize("words", [["job.sh"], ["--wrap", "true"], ["--output", "id", "job.sh"]])
def test_a_server_chooses_no_file_to_be_sent(
    peer: Peer, odcctl: Odcctl, home: Path, words: list[str]
) -> None:
    """Before: it asked for any file as the script, ~/.ssh/id_ed25519 for example, and got it."""
    (home / "job.sh").write_text("#!/bin/sh\n")
    secret = home / "id_ed25519"
    secret.write_text(SECRET)
    peer.on("POST", ARGV, needs_script(str(secret)))
    done = odcctl("submit", *words)
    assert done.code == 1
    assert f'asks for the file "{secret}", which the command line does not name' in done.err
    (asked,) = peer.asked(ARGV)
    assert asked.body["script"] is None
