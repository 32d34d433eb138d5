"""Users who may enter a dev server by SSH, and the keys they use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import BadRequest, NotOwner, UnknownJob, WrongState
from odcd.records.job import Identity
from tests.support.builders.dev_servers import Reservations, actor
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue

MINE, OTHERS = "ssh-ed25519 AAAAmine", "ssh-ed25519 AAAAothers"
DETAILS: dict[str, object] = {"github_user": "alice-gh", "ssh_keys": [MINE]}


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def share(
    reservations: Reservations, dev_server: int, name: str, *keys: str, who: Identity = ALICE
) -> dict[str, Any]:
    answer = reservations.sql.value(
        "select odc.share_reservation($1::jsonb, $2, $3, $4, $5)",
        actor(who), dev_server, name, list(keys), reservations.queue.now,
    )  # fmt: skip
    return json.loads(answer)


def enter(reservations: Reservations, dev_server: int, who: Identity = ALICE, rank: int = 0) -> int:
    return reservations.sql.value(
        "select odc.enter_reservation($1::jsonb, $2, $3)", actor(who), dev_server, rank
    )


def call_oneself(reservations: Reservations, who: Identity, name: str | None) -> dict[str, Any]:
    setting = reservations.sql.value(
        "select odc.set_github_user($1::jsonb, $2, $3)", actor(who), name, reservations.queue.now
    )
    return json.loads(setting)


def test_a_users_keys_are_added_once_and_kept(reservations: Reservations) -> None:
    """ACC-18, BUG-33: in the database, where every start of the dev server finds them."""
    dev_server = reservations.active(details=DETAILS)
    assert share(reservations, dev_server, "Octocat", OTHERS, MINE) == {
        "attempt": 1,
        "keys": [MINE, OTHERS],
    }
    assert share(reservations, dev_server, "octocat", OTHERS) == {
        "attempt": 1,
        "keys": [MINE, OTHERS],
    }
    assert reservations.show(dev_server)["secondary_users"] == ["Octocat"]
    assert json.loads(reservations.row(dev_server)["ask"])["ssh_keys"] == [MINE, OTHERS]
    assert "added the SSH keys of GitHub user Octocat" in str(
        reservations.show(dev_server)["history"]
    )


def test_only_the_owner_shares_a_reservation_and_only_before_its_end(
    reservations: Reservations, queue: Queue
) -> None:
    """ACC-18: only by the owner; a queued reservation can be shared too."""
    dev_server = reservations.reserve(details=DETAILS)
    assert share(reservations, dev_server, "octocat", OTHERS)["attempt"] is None
    with pytest.raises(NotOwner):
        share(reservations, dev_server, "bob-gh", OTHERS, who=BOB)
    queue.cancel(dev_server)
    with pytest.raises(WrongState, match="has ended"):
        share(reservations, dev_server, "octocat", OTHERS)
    with pytest.raises(WrongState, match="cannot be reached by SSH"):
        share(reservations, reservations.reserve(), "octocat", OTHERS)


def test_the_owner_operators_and_added_users_may_connect(reservations: Reservations) -> None:
    """ACC-18, ACC-19, AUT-08: an added user is known by the GitHub name that they gave."""
    dev_server = reservations.active(details=DETAILS)
    assert [enter(reservations, dev_server), enter(reservations, dev_server, ROOT)] == [1, 1]
    with pytest.raises(NotOwner, match="belongs to alice"):
        enter(reservations, dev_server, BOB)
    share(reservations, dev_server, "Bob-GH", OTHERS)
    assert reservations.show(dev_server, BOB)["connect"] is None
    assert call_oneself(reservations, BOB, "bob-gh")["github_user"] == "bob-gh"
    assert enter(reservations, dev_server, BOB) == 1
    assert reservations.show(dev_server, BOB)["connect"] == "ssh"
    assert reservations.show(dev_server, BOB)["ssh_command"] == f"ssh odc-{dev_server}"
    call_oneself(reservations, BOB, None)
    with pytest.raises(NotOwner):
        enter(reservations, dev_server, BOB)


def test_only_an_active_reservation_can_be_entered(
    reservations: Reservations, queue: Queue
) -> None:
    """CLI-27: the actual state is reported."""
    dev_server = reservations.reserve(details=DETAILS)
    with pytest.raises(WrongState, match="is queued"):
        enter(reservations, dev_server)
    queue.start()
    with pytest.raises(WrongState, match="is preparing"):
        enter(reservations, dev_server)
    assert reservations.show(dev_server)["ssh_command"] is None
    reservations.facts(dev_server, "started", 0)
    with pytest.raises(BadRequest, match="no member 1"):
        enter(reservations, dev_server, rank=1)
    queue.cancel(dev_server)
    with pytest.raises(WrongState, match="is cancelled"):
        enter(reservations, dev_server)
    with pytest.raises(UnknownJob):
        enter(reservations, 10**9)
    with pytest.raises(WrongState, match="cannot be reached by SSH"):
        enter(reservations, reservations.active())
