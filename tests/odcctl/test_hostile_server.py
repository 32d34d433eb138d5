"""Answers of a server cannot control the terminal: it may be another user's, or be forged."""

from __future__ import annotations

import pytest

from odcctl.text.render import CONTROLS
from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import a_node
from tests.odcctl.peer import Peer, Reply, problem

EVIL = "\x1b]0;owned\x07\x1b[31mred\u202ereversed\x9b2J"


def test_a_refusal_cannot_control_the_terminal(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/jobs/cancel", problem(403, EVIL, EVIL, EVIL, EVIL))
    done = odcctl("cancel", "7")
    assert (done.code, CONTROLS.search(done.out + done.err)) == (1, None), done
    assert "red" in done.err


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_table_cannot_control_the_terminal(peer: Peer, odcctl: Odcctl, form: list[str]) -> None:
    peer.on("GET", "/v1/nodes", Reply({"nodes": [a_node(name=EVIL, reason=EVIL)]}))
    done = odcctl(*form, "nodes")
    assert (done.code, CONTROLS.search(done.out + done.err)) == (0, None)
    assert "red" in done.out


def test_a_script_is_printed_as_it_was_submitted(peer: Peer, odcctl: Odcctl) -> None:
    script = "#!/bin/sh\r\nprintf '\\x1b[31m\x1b'\n"
    peer.on("GET", "/v1/jobs/7/script", Reply(pieces=[script.encode()], media_type="text/plain"))
    assert odcctl("show", "7", "--script").out == script
