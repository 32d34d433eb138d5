"""Two or three sessions of a few statements, in every order of their statements and commits."""

from __future__ import annotations

import os

import pytest

from tests.interleave.programs import (
    book,
    cancel,
    edit_partition,
    edit_qos,
    hold,
    inventory,
    later,
    leader,
    node_state,
    passes,
    program,
    reader,
    release,
    requeue,
    set_licence,
    settle,
    submit,
    take_term,
    turn,
    unbook,
    update,
)
from tests.interleave.scenes import a_busy_morning
from tests.interleave.stage import Program
from tests.interleave.theatre import Theatre
from tests.support.builders.jobs import ALICE, BOB

WHOLE = {"gpus": 8, "gpu_type": "h100"}
SMALL = {
    "a job ends and another is cancelled": [
        passes(), leader("settler", [settle("exited", "b")]), program("user", [cancel("small")]),
    ],
    "tasks end while the throttle falls": [
        passes(), leader("settler", [settle("exited", "array")]),
        program("user", [update("array", array_throttle=1)]),
    ],
    "a job is held and released": [
        passes(), program("user", [hold("small")]), program("other", [release("small")]),
    ],
    "a node is drained, and the inventory says that it is up": [
        passes(), program("operator", [node_state("DRAIN", "h100-1")]),
        leader("inventory", [inventory(l4_1=2)]),
    ],
    "two submits want the last licence": [
        passes(),
        program("one", [submit("one", licences={"solver": 1}, gpus=1)]),
        program("two", [submit("two", BOB, licences={"solver": 1}, gpus=1)]),
    ],
    "a licence is taken away": [
        passes(), leader("settler", [settle("lost", "b")]),
        program("operator", [turn, set_licence("solver", 0)]),
    ],
    "a singleton comes while its predecessor ends": [
        passes(), leader("settler", [settle("exited", "b")]),
        program("user", [submit("next", name="b", dependency="singleton", gpus=1)]),
    ],
    "a job starts that another begins to wait for": [
        passes(), program("user", [submit("next", dependency="after:{small}", gpus=1)]),
        program("other", [update("held", dependency="after:{small}"), release("held")]),
    ],
    "a job fails that another waits for": [
        passes(), leader("settler", [settle("exited", "b", 1)]),
        program("user", [update("waits", dependency="afterany:{b}")]),
    ],
    "a job is requeued while it ends": [
        passes(), leader("settler", [settle("exited", "b")]), program("user", [requeue("b")]),
    ],
    "a time limit grows into a booking": [
        passes(), program("user", [update("small", who=ALICE, time_limit_s=864_000)]),
        program("operator", [book("works", "h100-1", "h100-2", "l4-1", begins_s=7200)]),
    ],
    "the term is raised under an open reader": [
        passes(), leader("new", [take_term], [later(30)]), reader(),
    ],
}  # fmt: skip
LARGE = {
    "a booking is made and deleted beside two passes": [
        passes(2), program("operator", [book("works", "h100-1", begins_s=60)], [unbook("works")]),
        leader("settler", [settle("exited", "b")]),
    ],
    "the partition closes and opens beside ends of tasks": [
        passes(2),
        program("operator", [edit_partition(state="DOWN")], [edit_partition(state="UP")]),
        leader("settler", [settle("exited", "array")]),
    ],
    "GPUs come and go with others beside ends": [
        passes(2), leader("inventory", [inventory(h100_1=3)], [inventory(h100_1=0, h100_2=3)]),
        leader("settler", [settle()]),
    ],
    "a limit falls while users submit and cancel": [
        passes(2), program("operator", [edit_qos(limits={"user": {"jobs": 1}})]),
        program("user", [submit("new", BOB, gpus=1)], [cancel("array")]),
    ],
    "a leader is replaced in the middle of everything": [
        passes(2), leader("settler", [settle("started")], [settle("exited", "b")]),
        leader("new", [take_term], [later(60)]),
    ],
    "time passes beside a pass and an end": [
        passes(2), leader("clock", [later(4000)]), leader("settler", [settle("exited", "array")]),
    ],
    "a gang waits while nodes drain and resume": [
        passes(2), leader("settler", [settle()]),
        program("operator", [node_state("DRAIN", "h100-2")], [node_state("UP", "h100-2")]),
    ],
}  # fmt: skip


QUICK = ("a job is held and released",)


@pytest.mark.parametrize(
    "case",
    [case if case in QUICK else pytest.param(case, marks=pytest.mark.long) for case in SMALL],
)
def test_every_order_keeps_every_promise(theatre: Theatre, case: str) -> None:
    play(theatre, SMALL[case])


@pytest.mark.long
@pytest.mark.parametrize("case", LARGE)
def test_many_orders_of_more_keep_every_promise(theatre: Theatre, case: str) -> None:
    """Every order with ODC_SOAK_SCHEDULES large enough."""
    play(theatre, LARGE[case], int(os.environ.get("ODC_SOAK_SCHEDULES", "150")))


def play(theatre: Theatre, programs: list[Program], limit: int | None = None) -> None:
    with theatre.scene() as queue:
        a_busy_morning(theatre.world, queue)
    theatre.play_all(*programs, limit=limit)
    theatre.no_rollback()
