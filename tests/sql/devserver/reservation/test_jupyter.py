"""Jupyter Lab as requested: due starts and stops, their results, and the users who may reach it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from odcd.errors import BadRequest, NotOwner, WrongState
from odcd.records.job import Identity
from tests.support.builders.dev_servers import Reservations, actor
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue

SSH: dict[str, object] = {"ssh_keys": []}
WITH: dict[str, object] = {**SSH, "jupyter": True}
TOKEN = "0a" * 32


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def ask(reservations: Reservations, dev_server: int, on: bool, who: Identity = ALICE) -> None:
    reservations.sql.value(
        "select odc.set_jupyter($1::jsonb, $2, $3, $4) is null",
        actor(who), dev_server, on, reservations.queue.now,
    )  # fmt: skip


def due(reservations: Reservations) -> list[tuple[int, bool]]:
    rows = reservations.sql.rows("select * from odc.due_jupyters(0)")
    return [(row["job_id"], row["wanted"]) for row in rows]


def note(
    reservations: Reservations, dev_server: int, running: bool, error: str | None = None
) -> None:
    reservations.queue.now += timedelta(seconds=1)
    attempt = reservations.queue.running(dev_server)["attempt"]
    reservations.sql.value(
        "select odc.note_jupyter(0, $1, $2, $3, $4, $5) is null",
        dev_server, attempt, running, error, reservations.queue.now,
    )  # fmt: skip


def enter(reservations: Reservations, dev_server: int, rank: int = 0, who: Identity = ALICE) -> int:
    return reservations.sql.value(
        "select odc.enter_reservation($1::jsonb, $2, $3, 'jupyter')", actor(who), dev_server, rank
    )


def keyed(reservations: Reservations, dev_server: int) -> None:
    reservations.sql.rows(
        "select * from odc.keep_box_key(0, $1, 'h', 'hp', 'g', 'gp', $2, $3)",
        dev_server, TOKEN, reservations.queue.now,
    )  # fmt: skip


def jupyter(reservations: Reservations, dev_server: int, who: Identity = ALICE) -> tuple[Any, ...]:
    one = reservations.show(dev_server, who)
    return one["jupyter"], one["jupyter_error"], one["jupyter_url"]


URL = f"http://127.0.0.1:8888/lab?token={TOKEN}"


def test_jupyter_starts_with_a_dev_server_that_requested_it(
    reservations: Reservations, queue: Queue
) -> None:
    """CLI-07, ACC-13, ACC-14"""
    dev_server = reservations.reserve(details=WITH)
    assert (due(reservations), jupyter(reservations, dev_server)) == ([], (None, None, None))
    queue.start()
    keyed(reservations, dev_server)
    assert due(reservations) == [], "it is not ready"
    reservations.facts(dev_server, "started", 0)
    assert due(reservations) == [(dev_server, True)]
    assert jupyter(reservations, dev_server) == ("starting", None, None)
    note(reservations, dev_server, True)
    assert (due(reservations), jupyter(reservations, dev_server)) == ([], ("running", None, URL))
    assert jupyter(reservations, dev_server, ROOT)[2] == URL
    assert jupyter(reservations, dev_server, BOB) == ("running", None, None)


def test_jupyter_is_enabled_and_disabled_idempotently(
    reservations: Reservations,
) -> None:
    """ACC-13, ACC-15, ACC-16"""
    dev_server = reservations.active(details=SSH)
    keyed(reservations, dev_server)
    assert (due(reservations), jupyter(reservations, dev_server)[0]) == ([], None)
    with pytest.raises(WrongState, match="has no Jupyter Lab"):
        enter(reservations, dev_server)
    ask(reservations, dev_server, True)
    ask(reservations, dev_server, True)
    assert due(reservations) == [(dev_server, True)]
    note(reservations, dev_server, True)
    ask(reservations, dev_server, True)
    assert (due(reservations), enter(reservations, dev_server)) == ([], 1)
    ask(reservations, dev_server, False)
    assert (due(reservations), jupyter(reservations, dev_server)) == (
        [(dev_server, False)],
        ("ending", None, None),
    )
    with pytest.raises(WrongState, match="has no Jupyter Lab"):
        enter(reservations, dev_server)
    note(reservations, dev_server, False)
    ask(reservations, dev_server, False)
    assert (due(reservations), jupyter(reservations, dev_server)) == ([], (None, None, None))
    ask(reservations, dev_server, True)
    assert (due(reservations), jupyter(reservations, dev_server)[0]) == (
        [(dev_server, True)],
        "starting",
    )
    history = [one["text"] for one in reservations.show(dev_server)["history"]]
    assert history.count("alice asked to start Jupyter Lab") == 2
    assert TOKEN not in str(history)


def test_an_error_of_jupyter_is_kept_and_a_new_request_retries(reservations: Reservations) -> None:
    """ACC-15"""
    dev_server = reservations.active(details=WITH)
    note(reservations, dev_server, True, "there is no jupyter")
    assert (due(reservations), jupyter(reservations, dev_server)[:2]) == (
        [],
        ("failed", "there is no jupyter"),
    )
    assert jupyter(reservations, dev_server, BOB)[1] is None
    ask(reservations, dev_server, True)
    assert (due(reservations), jupyter(reservations, dev_server)[:2]) == (
        [(dev_server, True)],
        ("starting", None),
    )
    ask(reservations, dev_server, False)
    assert (due(reservations), jupyter(reservations, dev_server)[:2]) == ([], (None, None))
    ask(reservations, dev_server, True)
    note(reservations, dev_server, True)
    ask(reservations, dev_server, False)
    note(reservations, dev_server, False, "it does not end")
    assert (due(reservations), jupyter(reservations, dev_server)[:2]) == (
        [],
        ("failed", "it does not end"),
    )
    ask(reservations, dev_server, False)
    assert due(reservations) == [(dev_server, False)]


def test_jupyter_starts_again_after_a_container_restart(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-26"""
    dev_server = reservations.active(details=WITH)
    note(reservations, dev_server, True)
    queue.now += timedelta(minutes=1)
    reservations.sql.rows(
        "select odc.record_progress(0, array[$1::bigint], '{1}', '{0}', '{restart}', "
        "array[$2::timestamptz], '{x}', $2)",
        dev_server, queue.now,
    )  # fmt: skip
    assert due(reservations) == [(dev_server, True)]
    note(reservations, dev_server, True)
    assert due(reservations) == []


def test_only_the_owner_enables_jupyter_and_it_runs_on_the_first_member(
    reservations: Reservations, queue: Queue
) -> None:
    """ACC-16, AUT-08: after its end, no one."""
    dev_server = reservations.active(details=WITH, nodes=2, gpus=8)
    with pytest.raises(NotOwner):
        ask(reservations, dev_server, False, BOB)
    with pytest.raises(NotOwner):
        enter(reservations, dev_server, who=BOB)
    with pytest.raises(BadRequest, match="member 1"):
        enter(reservations, dev_server, 1)
    note(reservations, dev_server, True)
    for rank in (0, 1):
        reservations.facts(dev_server, "lost", rank)
    reservations.sweep()
    assert reservations.sql.value("select count(*) from odc.box_jupyter") == 0
    with pytest.raises(WrongState, match="has ended"):
        ask(reservations, dev_server, True)
    other = reservations.active()
    with pytest.raises(WrongState, match="does not run odc's start program"):
        ask(reservations, other, True)
