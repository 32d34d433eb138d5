"""Events are read in an order that cannot miss one."""

from __future__ import annotations

import time

import msgspec

from odcd.api.answers.cluster import Event
from tests.sql.read.query.cluster import Cluster
from tests.support.harness.database import Sql
from tests.support.harness.events import read_events

READ = "select id, body from odc.events_after($1, $2, $3)"


def test_events_name_actor_action_and_object(database_url: str) -> None:
    with Sql(database_url) as sql:
        cluster = Cluster(sql)
        job_id = cluster.submit(gpus=8)
        cluster.plan()
        cluster.end(job_id)
        sql.execute(
            "select odc.set_node_state($1::jsonb, '{n1}', 'DRAIN', 'why', $2)",
            '{"user": "root", "uid": 0, "operator": true}', cluster.now,
        )  # fmt: skip
        events = [msgspec.convert(event, Event) for event in read_events(sql)]
        assert [event.kind for event in events] == ["submitted", "started", "ended", "node_drain"]
        assert events[3].node == "n1"
        assert (events[0].actor, events[0].job_id, events[0].at) == (
            "alice",
            job_id,
            "2026-01-01T00:00:00.000Z",
        )
        of_job = [event["kind"] for event in read_events(sql, job_id=job_id)]
        assert of_job == ["submitted", "started", "ended"]


def test_events_of_an_array_include_those_of_its_elements(database_url: str) -> None:
    with Sql(database_url) as sql:
        cluster = Cluster(sql)
        array = cluster.submit(array="0-1", gpus=8)
        cluster.submit()
        [element] = cluster.plan()
        submitted, started = read_events(sql, job_id=array)
        assert (submitted["job_id"], submitted["kind"]) == (array, "submitted")
        assert (started["job_id"], started["kind"]) == (element, "started")
        assert (started["array_job_id"], started["array_task_id"]) == (array, 0)


def test_an_event_that_is_committed_late_is_not_missed(database_url: str) -> None:
    with Sql(database_url) as first, Sql(database_url) as second, Sql(database_url) as reader:
        insert = "insert into odc.event (at, kind, actor) values (now(), $1, 'x') returning id"
        begin = "select pg_current_xact_id()"
        second.begin()
        second.value(begin)
        first.begin()
        first.value(begin)
        early = first.value(insert, "early")
        late = second.value(insert, "late")
        assert early < late
        second._run("commit")
        # The later id is committed but withheld: the earlier one could still commit before it.
        seen = [row["id"] for row in reader.rows(READ, 0, 100, None)]
        after = seen[-1] if seen else 0
        assert early not in seen
        first._run("commit")
        seen += [event["id"] for event in read_events(reader, after)]
        assert seen == [late, early]
        assert [event["id"] for event in read_events(reader)] == seen
        deadline = time.monotonic() + 30
        while reader.value("select odc.last_event()") != early:
            assert time.monotonic() < deadline


def test_pages_of_events_join_and_a_deleted_cursor_is_still_valid(
    database_url: str,
) -> None:
    with Sql(database_url) as sql:
        for number in range(10):
            sql.execute(
                "insert into odc.event (at, kind, actor) values (now(), $1, 'x')", f"k{number}"
            )
        ids = [event["id"] for event in read_events(sql, limit=4)]
        ids += [event["id"] for event in read_events(sql, ids[-1])]
        assert len(ids) == 10
        sql.execute("delete from odc.event where id = $1", ids[3])
        assert [event["id"] for event in read_events(sql, ids[3])] == ids[4:]
        assert read_events(sql, ids[-1]) == []
        assert read_events(sql, ids[-1] + 1000) == []


def test_a_transaction_of_another_database_holds_nothing_back(
    database_url: str, empty_database_url: str
) -> None:
    with Sql(database_url) as sql, Sql(empty_database_url) as other:
        other.begin()
        other.value("select pg_current_xact_id()")
        sql.execute("insert into odc.event (at, kind, actor) values (now(), 'k', 'x')")
        assert len(read_events(sql)) == 1
        other.rollback()


def test_no_events_is_zero(database_url: str) -> None:
    with Sql(database_url) as sql:
        assert sql.value("select odc.last_event()") == 0
