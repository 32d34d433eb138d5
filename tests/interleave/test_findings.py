"""Defects that needed two sessions, each as the statements that exposed it, in every order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from odcd.records.job import Identity
from tests.interleave.programs import (
    book,
    calls,
    edit_account,
    edit_partition,
    edit_qos,
    inventory,
    later,
    leader,
    node_state,
    nodes,
    passes,
    plan,
    program,
    set_licence,
    settle,
    submit,
    sweep,
    take_term,
    turn,
    update,
)
from tests.interleave.stage import Session, Step
from tests.interleave.theatre import Theatre
from tests.support.builders.jobs import Queue

WHOLE = {"gpus": 8, "gpu_type": "h100"}
TEN_DAYS_S = 10 * 86_400


def slow(node: str) -> Step:
    """Make the session that writes this node's books wait in the middle of its work."""

    async def locks(session: Session) -> None:
        await session.fetch(
            "select from odc.node_free as f join odc.node as n on n.id = f.node_id "
            "where n.name = $1 for update of f", node,
        )  # fmt: skip

    locks.__name__ = f"slow({node})"
    return locks


def test_an_inventory_in_the_middle_of_a_pass_keeps_the_books(theatre: Theatre) -> None:
    """It read the free GPUs of h100-2, a job started there, and it wrote the values it had read."""
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", node_list=["h100-2"], **WHOLE))
    theatre.play_all(
        program("brake", [slow("h100-1")]),
        leader("inventory", [inventory(h100_1=2, h100_2=1)]),
        passes(),
    )
    theatre.no_rollback()


def test_an_inventory_in_the_middle_of_ends_keeps_the_books(theatre: Theatre) -> None:
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", gpus=4, node_list=["h100-2"]))
        queue.start()
    theatre.play_all(
        program("brake", [slow("h100-1")]),
        leader("inventory", [inventory(h100_1=2, h100_2=1)]),
        leader("settler", [settle()]),
    )
    theatre.no_rollback()


def test_no_pass_is_rolled_back_by_the_ends_of_an_array(theatre: Theatre) -> None:
    """Every end counts in the array's row, which every pass that starts a task counts in, too."""
    with theatre.scene() as queue:
        array = queue.submit(name="array", array="0-9%3", **WHOLE)
        theatre.world.add("array", array, 10)
        [first, _] = queue.start()
        theatre.world.jobs["first"] = first
    theatre.play_all(passes(2), leader("settler", [settle("exited", "first")], [settle()]))
    theatre.no_rollback()


def test_a_job_that_waits_for_a_start_and_an_end_at_once_does_not_wait_forever(
    theatre: Theatre,
) -> None:
    """b ends after the pass that starts a has read, and before it has written."""
    with theatre.scene() as queue:
        theatre.world.add("b", queue.submit(name="b", **WHOLE))
        queue.start()
        theatre.world.add("a", queue.submit(name="a", **WHOLE))
        both = theatre.world.text("after:{a},afterok:{b}")
        theatre.world.add("waits", queue.submit(name="waits", dependency=both, **WHOLE))
    theatre.play_all(passes(), leader("settler", [settle("exited", "b")]))
    theatre.no_rollback()


def test_a_dependency_added_while_its_target_starts_is_not_forgotten(theatre: Theatre) -> None:
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", **WHOLE))
        theatre.world.add("late", queue.submit(name="late", hold=True))
    theatre.play_all(
        passes(),
        program("user", [submit("new", dependency="after:{a}")]),
        program("other", [update("late", dependency="after:{a}")]),
    )
    theatre.no_rollback()


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(book("works", "h100-1"), id="booking"),
        pytest.param(edit_qos(limits={"group": {"jobs": 0}}), id="qos limit"),
        pytest.param(edit_account(limits={"user": {"jobs": 0}}), id="account limit"),
        pytest.param(edit_partition(limits={"group": {"gpus": 7}}), id="partition limit"),
        pytest.param(edit_partition(state="DOWN"), id="partition state"),
        pytest.param(edit_partition(node_list=["l4-1"]), id="partition nodes"),
        pytest.param(set_licence("solver", 0), id="licence"),
        pytest.param(node_state("DRAIN", "h100-1", "h100-2"), id="drain"),
    ],
)
def test_a_pass_starts_nothing_against_an_edit_that_came_first(
    theatre: Theatre, edit: Step
) -> None:
    """A job of ten days that the pass decided to start, and that the edit forbids."""
    with theatre.scene() as queue:
        theatre.sql.execute("insert into odc.licence values ('solver', 1)")
        job = queue.submit(
            name="long", time_limit_s=TEN_DAYS_S, licences={"solver": 1}, node_list=["h100-1"],
            **WHOLE,
        )  # fmt: skip
        theatre.world.add("long", job)
    theatre.play_all(program("operator", [turn, edit]), passes())
    theatre.no_rollback()


def test_a_job_does_not_start_on_a_node_that_became_of_another_type(theatre: Theatre) -> None:
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", node_list=["h100-1"], **WHOLE))
    other = nodes().replace('"h100-1", "gpu_type": "h100"', '"h100-1", "gpu_type": "a100"')
    theatre.play_all(
        program("inventory", [
            calls("retype", "select odc.register_nodes(0, $1::jsonb, true, $2)", other)
        ]),
        passes(),
    )  # fmt: skip
    theatre.no_rollback()


def test_two_submits_at_once_stay_below_the_limit_on_submitted_jobs(theatre: Theatre) -> None:
    with theatre.scene():
        theatre.sql.execute(
            "insert into odc.resource_limit values ('qos', 1, 'group', 'submitted', 1)"
        )
    theatre.play_all(
        program("submitter", [submit("one", gpus=1)]),
        program("submitter 2", [submit("two", gpus=1)]),
    )
    theatre.no_rollback()


def test_an_old_leader_writes_nothing_after_the_term_was_raised(theatre: Theatre) -> None:
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", **WHOLE))
        queue.start()
        theatre.world.add("b", queue.submit(name="b", **WHOLE))
    theatre.play_all(
        leader("old", [plan], [settle("exited", "a")], [inventory(h100_1=1)], [sweep]),
        leader("new", [take_term], [plan]),
    )
    theatre.no_rollback()


@pytest.mark.long
def test_a_booking_begins_and_ends_during_passes(theatre: Theatre) -> None:
    with theatre.scene() as queue:
        theatre.world.add("a", queue.submit(name="a", time_limit_s=TEN_DAYS_S, **WHOLE))
        theatre.world.add("b", queue.submit(name="b", time_limit_s=600, **WHOLE))

    theatre.play_all(
        program("operator", [book("works", "h100-1", begins_s=300, lasts_s=600)]),
        passes(),
        leader("clock", [later(700)]),
    )
    theatre.no_rollback()


def someone(user: str, uid: int) -> Identity:
    return Identity(user=user, uid=uid, gid=100, operator=False)


PEOPLE = [someone("alice", 1001), someone("bob", 1002), someone("carol", 1003)]


def counting(who: Identity) -> Step:
    """Make the session that counts this user's notifications wait in the middle of its work."""

    async def locks(session: Session) -> None:
        await session.fetch("select from odc.notify_use where uid = $1 for update", who.uid)

    locks.__name__ = f"counting({who.user})"
    return locks


@contextmanager
def mailing(theatre: Theatre, per_hour: int, *types: str) -> Iterator[Queue]:
    """Alice, Bob and Carol each have a running job that mails them; Alice has one that waits for
    Carol's, and Carol one that waits for Alice's."""
    with theatre.scene() as queue:
        queue.sql.execute(
            "select odc.configure_notifications(0, true, $1, $2)", per_hour, queue.now
        )
        mail: dict[str, Any] = {"gpus": 1, "mail_types": list(types), "mail_user": "a@example.org"}
        for who in PEOPLE:
            job = queue.submit(who=who, name=who.user, time_limit_s=1000, **mail)
            theatre.world.add(who.user, job)
            queue.sql.execute(
                "insert into odc.notify_use (uid, hour, taken, dropped) values ($1, $2, 1, 0)",
                who.uid, queue.now,
            )  # fmt: skip
        for who, other in ((PEOPLE[0], "carol"), (PEOPLE[2], "alice")):
            after = f"afterok:{theatre.world.jobs[other]}"
            waits = queue.submit(who=who, name="after", dependency=after, **mail)
            theatre.world.add(f"after {other}", waits)
        assert len(queue.start()) == len(PEOPLE)
        yield queue


def test_a_test_of_a_webhook_beside_ends_of_jobs_does_not_deadlock(theatre: Theatre) -> None:
    """Beyond the limit per hour both count in one row, and the ends of jobs did so in between."""
    who = json.dumps({"user": "carol", "uid": 1003, "operator": False})
    with mailing(theatre, 1, "END") as queue:
        queue.sql.execute(
            "select odc.set_webhook($1::jsonb, 'https://chat.example.org/x', '{begin}', $2)",
            who, queue.now,
        )  # fmt: skip
    theatre.play_all(
        program("brake", [counting(PEOPLE[1])]),
        leader("settler", [settle()]),
        program("carol", calls("tests", "select odc.test_webhook($1::jsonb, $2)", who)),
    )
    theatre.no_rollback()


@pytest.mark.parametrize("fails", ["alice", "carol"])
def test_reports_of_time_limits_beside_a_job_that_fails_do_not_deadlock(
    theatre: Theatre, fails: str
) -> None:
    """A job that fails, and the one that can then never start, send mail one after another."""
    with mailing(theatre, 100, "ALL", "TIME_LIMIT_50"):
        theatre.world.now += timedelta(seconds=501)
    theatre.play_all(
        program("brake", [counting(PEOPLE[1])]),
        leader("reporter", calls("reports", "select odc.note_time_limits(0, $1)")),
        leader("settler", [settle("exited", fails, exit_code=1)]),
    )
    theatre.no_rollback()
