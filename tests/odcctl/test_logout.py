"""An operator ends all keys of a user."""

from __future__ import annotations

import json

import msgspec
import pytest

from odcd.api.answers.keys import EndedKeys
from tests.odcctl.conftest import Odcctl
from tests.odcctl.peer import Peer

BOTH = "ended 2 keys and 1 page session of ann\n"
NONE = "ann has no keys and no page sessions\n"


@pytest.mark.parametrize(("keys", "sessions", "output"), [(2, 1, BOTH), (0, 0, NONE)])
def test_all_of_a_user_is_ended(
    peer: Peer, odcctl: Odcctl, keys: int, sessions: int, output: str
) -> None:
    answer = {"user": "ann", "keys": keys, "page_sessions": sessions}
    msgspec.convert(answer, EndedKeys)
    peer.on("DELETE", "/v1/users/ann/keys", answer)
    assert odcctl("logout", "--user", "ann").out == output
    assert json.loads(odcctl("logout", "--user", "ann", "--json").out) == answer


def test_a_user_has_a_name(peer: Peer, odcctl: Odcctl) -> None:
    assert odcctl("logout", "--user", "").code == 2
    assert peer.requests == []
