"""Random jobs, licences and limits for tests that compare plans over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from odcd.records.job import Identity
from tests.support.builders.jobs import ALICE, BOB

GPUS = "gpus of the nodes"


@dataclass(frozen=True)
class Ask:
    after_s: int
    who: Identity
    gpus: int
    nodes: int
    limit_s: int
    part_run: float
    """The part of its time limit after which it ends."""
    licences: Mapping[str, int]

    def uses(self) -> Counter[str]:
        """What it takes of each limit while it runs."""
        mine = self.who.user
        return Counter(
            {
                **self.licences,
                "jobs of the lab": 1,
                "gpus of the lab": self.gpus * self.nodes,
                f"jobs of {mine}": 1,
                f"gpus of {mine}": self.gpus * self.nodes,
            }
        )


@dataclass(frozen=True)
class Rules:
    """Totals of licences and values of limits; depth: protected jobs per set of nodes or limit."""

    depth: int
    licences: Mapping[str, int]
    limits: Mapping[tuple[str, str], int]
    """(per, what): limits of the account."""

    def totals(self) -> dict[str, int]:
        names = {("group", what): [f"{what} of the lab"] for what in ("jobs", "gpus")}
        names |= {("user", what): [f"{what} of {w.user}" for w in (ALICE, BOB)]
                  for what in ("jobs", "gpus")}  # fmt: skip
        found = dict(self.licences)
        for key, value in self.limits.items():
            found |= dict.fromkeys(names[key], value)
        return found


def whole(ask: Ask) -> Counter[str]:
    return Counter({**ask.uses(), GPUS: ask.gpus * ask.nodes})


@st.composite
def rules(draw: st.DrawFn, depths: list[int]) -> Rules:
    keys = [("group", "jobs"), ("group", "gpus"), ("user", "jobs"), ("user", "gpus")]
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    return Rules(
        depth=draw(st.sampled_from(depths)),
        licences={name: draw(st.integers(2, 4)) for name in names},
        limits={key: draw(st.integers(2, 4)) for key in keys if draw(st.booleans())},
    )


def asks(gangs: bool) -> st.SearchStrategy[list[Ask]]:
    return st.lists(
        st.builds(
            Ask,
            after_s=st.sampled_from([0, 0, 0, 10, 60]),
            who=st.sampled_from([ALICE, BOB]),
            gpus=st.integers(1, 2),
            nodes=st.integers(1, 2) if gangs else st.just(1),
            limit_s=st.sampled_from([30, 60, 100, 250, 1000]),
            part_run=st.sampled_from([1.0, 1.0, 0.5]),
            licences=st.dictionaries(st.sampled_from("abc"), st.integers(1, 2), max_size=2),
        ),
        min_size=1,
        max_size=8,
    )


def possible(asks: list[Ask], rules: Rules) -> list[Ask]:
    """Those that would be accepted: their licences exist, and no limit is below their need."""
    totals = rules.totals()
    return [
        ask
        for ask in asks
        if set(ask.licences) <= set(rules.licences)
        and all(ask.uses()[what] <= total for what, total in totals.items())
    ]
