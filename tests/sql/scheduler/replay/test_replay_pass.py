"""A repeated decision of a pass is the same; with other rules, the differences are reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from odcd.errors import OdcError, UnknownPass, UnknownPolicy
from tests.support.builders.jobs import ROOT, Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def lived(database_url: str) -> Iterator[Queue]:
    """Two 8-GPU nodes; every change is committed, because a replay uses snapshots."""
    with Sql(database_url) as sql:
        a_cluster(sql, h100=2)
        sql.execute("update odc.partition set policy = 'fifo'")
        yield Queue(sql)


def replay(
    queue: Queue, pass_id: int, policy: str | None = None, depth: int | None = None
) -> dict[str, Any]:
    return json.loads(queue.sql.value("select odc.replay_pass($1, $2, $3)", pass_id, policy, depth))


def passes(queue: Queue) -> list[int]:
    return queue.sql.values("select id from odc.pass order by id")


def a_day(queue: Queue) -> list[int]:
    """Starts, planned starts, refusals; much of the input of the passes has changed since."""
    first = [queue.submit(gpus=8, time_limit_s=limit_s) for limit_s in (600, 1200)]
    queue.start()
    queue.move(60)
    big = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=7200)
    small = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=1800)
    queue.start()
    queue.move(60)
    queue.end(first[0])
    tasks = queue.submit(gpus=4, time_limit_s=300, array="0-4")
    queue.start()
    queue.move(60)
    queue.update(big, changes={"time_limit_s": 3600}, who=ROOT)
    queue.end(first[1])
    queue.start()
    queue.move(3600)
    queue.cancel(tasks)
    return [*first, big, small]


def test_every_pass_decides_the_same(lived: Queue) -> None:
    a_day(lived)
    replays = [replay(lived, pass_id) for pass_id in passes(lived)]
    assert len(replays) >= 4
    for one in replays:
        assert one["differences"] == []
        assert (one["equal"], one["chain"]) == (True, True)
        assert one["policy"]["then"] == one["policy"]["now"]
    assert sum(one["starts"] for one in replays) >= 4
    assert any(one["planned"] for one in replays)


def test_a_replay_shows_the_decisions_of_another_policy(lived: Queue) -> None:
    *_, big, small = a_day(lived)
    second = passes(lived)[1]
    replayed = replay(lived, second, "sjf")
    assert replayed["policy"]["then"] != replayed["policy"]["now"]
    assert not replayed["equal"]
    changes = {(d["kind"], d["name"]): (d["then"], d["now"]) for d in replayed["differences"]}
    then, now = changes["planned", str(big)]
    assert (then, now) == ("2026-01-01T00:20:00Z on h100-1,h100-2", None)
    then, now = changes["planned", str(small)]
    assert (then, now) == (None, "2026-01-01T00:20:00Z on h100-1,h100-2")
    # The jobs that wait with a refused request are named, because the number of a shape means
    # nothing to people.
    refused = [(d["job_id"], d["jobs"]) for d in replayed["differences"] if d["kind"] == "refusal"]
    assert refused == [(big, 2)]
    # A replay leaves nothing behind.
    assert lived.sql.values("select distinct policy from odc.partition") == ["fifo"]
    assert replay(lived, second)["equal"]


def test_digests_do_not_depend_on_the_query_plan(lived: Queue) -> None:
    a_day(lived)
    for hours in (3, 1, 5, 2, 4):
        for gpus in (4, 1, 2):
            lived.submit(gpus=gpus, time_limit_s=hours * 3600)
    lived.sql.execute("update odc.policy set ordering = 'multifactor' where name = 'fifo'")
    joins = ["hashjoin", "mergejoin", "nestloop"]
    seen: set[bytes] = set()
    for used in joins:
        for join in joins:
            lived.sql.execute(f"set enable_{join} = {'on' if join == used else 'off'}")
        lived.sql.execute("discard plans")
        seen.add(
            lived.sql.value("select read_digest from odc.decide($1, p_digest => true)", lived.now)
        )
    assert len(seen) == 1


def test_another_plan_depth_plans_more(lived: Queue) -> None:
    *_, small = a_day(lived)
    replayed = replay(lived, passes(lived)[1], depth=2)
    assert ("planned", str(small)) in {(d["kind"], d["name"]) for d in replayed["differences"]}
    assert replayed["input"]["equal"] or replayed["planned"] == 2


def test_changed_rules_are_not_reported_as_a_fault(lived: Queue) -> None:
    a_day(lived)
    lived.sql.execute("update odc.planner set digest = 'older'")
    replayed = replay(lived, passes(lived)[0])
    assert replayed["policy"]["then"] != replayed["policy"]["now"]
    assert replayed["equal"], "what it read and decided is the same still"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("update odc.pass set plan_digest = sha256('x') where id = $1", "output"),
        (
            "update odc.pass set read_digest = substr(read_digest, 1, 8) || int8send(7) "
            "|| substr(read_digest, 17) where id = $1",
            "input",
        ),
        ("update odc.pass set at = at + interval '1 s' where id = $1", "chain"),
        ("delete from odc.pending_past where $1 > 0", "past"),
    ],
    ids=["decision", "input", "time", "past"],
)
def test_a_forged_past_is_found(lived: Queue, change: str, found: str) -> None:
    a_day(lived)
    second = passes(lived)[1]
    lived.sql.execute(change, second)
    replayed = replay(lived, second)
    if found == "chain":
        assert not replayed["chain"]
    elif found == "past":
        assert not replayed["input"]["equal"]
        assert replayed["chain"], "what was noted of the pass was not touched"
    else:
        assert not replayed["equal"]
        assert not replayed[found]["equal"]
        assert not replayed["chain"]
        assert replayed["input"]["differs"] == (["nodes"] if found == "input" else None)


def test_an_unknown_pass_is_refused_with_the_known_ones(lived: Queue) -> None:
    def refused(pass_id: int, policy: str | None = None) -> OdcError:
        with pytest.raises(OdcError) as caught:
            replay(lived, pass_id, policy)
        return caught.value

    error = refused(1)
    assert isinstance(error, UnknownPass)
    assert (str(error), error.hint) == ("pass 1 does not exist", "No pass is kept yet.")
    a_day(lived)
    first, last = passes(lived)[0], passes(lived)[-1]
    error = refused(last + 1)
    assert str(error) == f"pass {last + 1} does not exist"
    assert error.hint is not None
    assert error.hint.startswith(f"Kept passes: {first} (2026-01-01T00:00:00Z) to {last}")
    lived.sql.execute("delete from odc.pass where id = $1", first)
    assert str(refused(first)) == f"pass {first} is no longer kept"
    assert replay(lived, first + 1)["chain"] is None
    lived.sql.execute("update odc.pass set snapshot = null where id = $1", last)
    assert "before the database was restored" in str(refused(last))
    assert isinstance(refused(first + 1, "nope"), UnknownPolicy)
