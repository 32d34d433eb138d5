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
ASKED: dict[str, object] = {"github_user": "alice-gh", "ssh_keys": [MINE]}


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


def share(
    boxes: Reservations, box: int, name: str, *keys: str, who: Identity = ALICE
) -> dict[str, Any]:
    told = boxes.sql.value(
        "select odc.share_reservation($1::jsonb, $2, $3, $4, $5)",
        actor(who), box, name, list(keys), boxes.queue.now,
    )  # fmt: skip
    return json.loads(told)


def enter(boxes: Reservations, box: int, who: Identity = ALICE, rank: int = 0) -> int:
    return boxes.sql.value("select odc.enter_reservation($1::jsonb, $2, $3)", actor(who), box, rank)


def call_oneself(boxes: Reservations, who: Identity, name: str | None) -> dict[str, Any]:
    told = boxes.sql.value(
        "select odc.set_github_user($1::jsonb, $2, $3)", actor(who), name, boxes.queue.now
    )
    return json.loads(told)


def test_a_users_keys_are_added_once_and_kept(boxes: Reservations) -> None:
    """ACC-18, BUG-33: in the database, where every start of the dev server finds them."""
    box = boxes.active(asked=ASKED)
    assert share(boxes, box, "Octocat", OTHERS, MINE) == {"attempt": 1, "keys": [MINE, OTHERS]}
    assert share(boxes, box, "octocat", OTHERS) == {"attempt": 1, "keys": [MINE, OTHERS]}
    assert boxes.show(box)["secondary_users"] == ["Octocat"]
    assert json.loads(boxes.row(box)["ask"])["ssh_keys"] == [MINE, OTHERS]
    assert "added the SSH keys of GitHub user Octocat" in str(boxes.show(box)["history"])


def test_only_its_owner_shares_a_box_that_is_not_over(boxes: Reservations, queue: Queue) -> None:
    """ACC-18: owner only; a queued one is shared, too."""
    box = boxes.reserve(asked=ASKED)
    assert share(boxes, box, "octocat", OTHERS)["attempt"] is None
    with pytest.raises(NotOwner):
        share(boxes, box, "bob-gh", OTHERS, who=BOB)
    queue.cancel(box)
    with pytest.raises(WrongState, match="is over"):
        share(boxes, box, "octocat", OTHERS)
    with pytest.raises(WrongState, match="cannot be reached by SSH"):
        share(boxes, boxes.reserve(), "octocat", OTHERS)


def test_the_way_in_is_for_owner_operators_and_added_users(boxes: Reservations) -> None:
    """ACC-18, ACC-19, AUT-08: an added user is known by the GitHub name that they gave."""
    box = boxes.active(asked=ASKED)
    assert [enter(boxes, box), enter(boxes, box, ROOT)] == [1, 1]
    with pytest.raises(NotOwner, match="belongs to alice"):
        enter(boxes, box, BOB)
    share(boxes, box, "Bob-GH", OTHERS)
    assert boxes.show(box, BOB)["connect"] is None
    assert call_oneself(boxes, BOB, "bob-gh")["github_user"] == "bob-gh"
    assert enter(boxes, box, BOB) == 1
    assert boxes.show(box, BOB)["connect"] == "ssh"
    assert boxes.show(box, BOB)["ssh_command"] == f"ssh odc-{box}"
    call_oneself(boxes, BOB, None)
    with pytest.raises(NotOwner):
        enter(boxes, box, BOB)


def test_only_what_is_active_is_entered(boxes: Reservations, queue: Queue) -> None:
    """CLI-27: the actual state is reported."""
    box = boxes.reserve(asked=ASKED)
    with pytest.raises(WrongState, match="is queued"):
        enter(boxes, box)
    queue.start()
    with pytest.raises(WrongState, match="is preparing"):
        enter(boxes, box)
    assert boxes.show(box)["ssh_command"] is None
    boxes.facts(box, "started", 0)
    with pytest.raises(BadRequest, match="no member 1"):
        enter(boxes, box, rank=1)
    queue.cancel(box)
    with pytest.raises(WrongState, match="is cancelled"):
        enter(boxes, box)
    with pytest.raises(UnknownJob):
        enter(boxes, 10**9)
    with pytest.raises(WrongState, match="cannot be reached by SSH"):
        enter(boxes, boxes.active())
