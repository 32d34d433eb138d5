"""Three to five sessions of users, operators and the leader, in a random order."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.interleave.programs import (
    book,
    cancel,
    edit_account,
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
    sweep,
    take_term,
    turn,
    unbook,
    update,
)
from tests.interleave.scenes import LABELS, a_busy_morning
from tests.interleave.stage import Program
from tests.interleave.theatre import Theatre, chosen
from tests.support.builders.jobs import ALICE, BOB

labels = st.sampled_from(LABELS)
nodes = st.sampled_from(["h100-1", "h100-2", "l4-1"])
few = st.integers(0, 3)
shapes = st.sampled_from([
    {"gpus": 1}, {"gpus": 4, "gpu_type": "h100"}, {"gpus": 8, "gpu_type": "h100"},
    {"node_count": 2, "gpus_per_node": 8, "gpu_type": "h100"},
    {"gpus": 2, "gpu_type": "h100", "array": "0-4%2"}, {"gpus": 1, "licences": {"solver": 1}},
])  # fmt: skip
dependencies = st.one_of(
    st.just({}),
    st.builds(
        lambda kinds, targets, join: {
            "dependency": join.join(
                f"{kind}:{{{target}}}" for kind, target in zip(kinds, targets, strict=True)
            )
        },
        st.lists(st.sampled_from(["after", "afterok", "afterany", "afternotok"]), min_size=2,
                 max_size=2),
        st.lists(labels, min_size=2, max_size=2), st.sampled_from([",", "?"]),
    ),
    st.just({"dependency": "singleton", "name": "b"}),
)  # fmt: skip
submits = st.builds(
    lambda label, who, shape, limit, dependency: submit(
        label, who, time_limit_s=limit, **shape, **dependency
    ),
    st.sampled_from(["new", "newer"]), st.sampled_from([ALICE, BOB]), shapes,
    st.sampled_from([600, 86_400, 864_000]), dependencies,
)  # fmt: skip
user_edits = st.one_of(
    st.builds(cancel, labels), st.builds(hold, labels), st.builds(release, labels),
    st.builds(requeue, labels, held=st.booleans()),
    st.builds(lambda label, limit: update(label, who=ALICE, time_limit_s=limit),
              labels, st.sampled_from([300, 864_000])),
    st.builds(lambda throttle: update("array", array_throttle=throttle), st.integers(0, 4)),
    st.builds(lambda label, other: update(label, dependency=f"afterany:{{{other}}}"),
              st.sampled_from(LABELS[4:]), st.sampled_from(LABELS[:4])),
    st.builds(lambda label, other: update(label, dependency=f"after:{{{other}}}"),
              st.sampled_from(LABELS[4:]), st.sampled_from(LABELS[:4])),
)  # fmt: skip
operator_edits = st.one_of(
    st.builds(lambda node, begins, lasts: book("works", node, begins_s=begins, lasts_s=lasts),
              nodes, st.sampled_from([60, 3600]), st.sampled_from([600, 86_400])),
    st.just(unbook("works")),
    st.builds(node_state, st.sampled_from(["DRAIN", "DOWN", "UP"]), nodes),
    st.builds(lambda state: edit_partition(state=state), st.sampled_from(["DOWN", "DRAIN", "UP"])),
    st.builds(lambda names: edit_partition(node_list=names),
              st.lists(nodes, min_size=1, unique=True)),
    st.builds(lambda per, what, value: edit_qos(limits={per: {what: value}}),
              st.sampled_from(["group", "user"]), st.sampled_from(["jobs", "gpus"]),
              st.sampled_from([0, 2, 8])),
    st.builds(lambda value: edit_account(limits={"group": {"jobs": value}}), few),
    st.builds(lambda total: set_licence("solver", total), few),
)  # fmt: skip
facts = st.one_of(
    st.builds(settle, st.just("exited"), st.one_of(st.none(), labels), st.sampled_from([0, 0, 1])),
    st.builds(settle, st.sampled_from(["started", "lost"]), st.one_of(st.none(), labels)),
)
inventories = st.builds(
    lambda first, second, third: inventory(h100_1=first, h100_2=second, l4_1=third), few, few, few
)


def some(name: str, steps: st.SearchStrategy, max_size: int = 2) -> st.SearchStrategy[Program]:
    return st.lists(steps, min_size=1, max_size=max_size).map(
        lambda made: program(name, *([step] for step in made))
    )


def led(name: str, steps: st.SearchStrategy, max_size: int = 2) -> st.SearchStrategy[Program]:
    return st.lists(steps, min_size=1, max_size=max_size).map(
        lambda made: leader(name, *([step] for step in made))
    )


others = st.one_of(
    some("user", st.one_of(submits, user_edits), 3), some("user", user_edits),
    some("operator", operator_edits), led("settler", facts), led("inventory", inventories),
    st.builds(lambda edit: program("slow operator", [turn, edit]), operator_edits),
    st.just(leader("clock", [later(61)], [sweep])), st.just(reader()),
    st.just(leader("new leader", [take_term], [settle()])),
)  # fmt: skip


def hold_to_it(theatre: Theatre, examples: int) -> None:
    with theatre.scene() as queue:
        a_busy_morning(theatre.world, queue)

    @settings(
        max_examples=examples, database=None, suppress_health_check=list(HealthCheck),
        # The failing schedule is printed; shrinking it takes minutes.
        report_multiple_bugs=False, phases=[Phase.explicit, Phase.generate],
    )  # fmt: skip
    @given(
        count=st.integers(1, 3), more=st.lists(others, min_size=2, max_size=4),
        numbers=st.lists(st.integers(0, 11), min_size=8, max_size=30),
    )  # fmt: skip
    def keeps_its_promises(count: int, more: list[Program], numbers: list[int]) -> None:
        theatre.play([passes(count), *more], chosen(numbers))

    keeps_its_promises()
    theatre.no_rollback()


def test_drawn_orders_keep_every_promise(theatre: Theatre) -> None:
    hold_to_it(theatre, 8)


@pytest.mark.long
def test_many_drawn_orders_keep_every_promise(theatre: Theatre) -> None:
    hold_to_it(theatre, int(os.environ.get("ODC_SOAK_SCHEDULES", "150")))
