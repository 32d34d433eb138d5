"""/v1/cron: tables of recurring jobs, and the jobs that the leader submits for them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odcd.api.answers.cron import CronSet, CronTable
from odcd.api.cron import cron_rules
from odcd.errors import DiskAlmostFull
from odcd.loops.cron import Cron
from odcd.slurm.crontab import MAX_CHARS
from tests.odcd.api.service import ALICE, BOB, OPERATOR, Service, serve
from tests.odcd.api.test_submit_filter import a_filter

PATH = "/v1/cron"
TABLE = "#SCRON -t 5\n0 3 * * * ./nightly\n"


async def ask(
    service: Service, method: str, body: Any = None, *, peer: Any = ALICE, **params: str
) -> Any:
    async with service.client(peer) as client:
        return await client.request(method, PATH, json=body, params=params)


async def put(service: Service, text: str, **more: Any) -> CronSet:
    answer = await ask(service, "PUT", {"text": text, "zone": "Europe/Berlin", **more})
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=CronSet)


async def show(service: Service, *, peer: Any = ALICE, **params: str) -> CronTable:
    answer = await ask(service, "GET", peer=peer, **params)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=CronTable)


def a_loop(service: Service, **rules: Any) -> Cron:
    woken = service.woken
    return Cron(
        0, service.store.cron, replace(cron_rules(service.api), **rules), service.api.clock,
        leads=lambda: True, on_submit=lambda: woken.append(1),
    )  # fmt: skip


async def make_due(service: Service) -> None:
    await service.database.execute(
        "update odc.cron_entry set next_at = $1", service.api.clock.now() - timedelta(seconds=1)
    )


def test_a_table_is_set_shown_and_removed(database_url: str) -> None:
    async def work(service: Service) -> None:
        assert (await show(service)).text is None
        made = await put(service, f"MAILTO=x\n{TABLE}", work_dir="/home/a")
        assert made.warnings[0].startswith("line 1: MAILTO has no effect")
        shown = await show(service)
        assert (shown.text, shown.zone) == (f"MAILTO=x\n{TABLE}", "Europe/Berlin")
        [entry] = shown.entries
        assert (entry.first_line, entry.line, entry.schedule) == (2, 3, "0 3 * * *")
        assert entry.command == "./nightly"
        answer = await ask(service, "DELETE")
        assert msgspec.json.decode(answer.content, type=CronTable) == shown
        assert (await show(service)).entries == []

    serve(database_url, work)


def test_every_fault_is_reported_with_its_line_and_nothing_changes(database_url: str) -> None:
    async def work(service: Service) -> None:
        await put(service, TABLE)
        answer = await ask(
            service, "PUT", {"text": "61 * * * * a\n@daily b\n#SCRON -t x\n@daily c\n"}
        )
        assert answer.status_code == 400
        problem = answer.json()
        assert problem["code"] == "OD010"
        assert [(one["line"], one["message"]) for one in problem["faults"]] == [
            (1, 'line 1, minute (column 1): "61" is not from 0 to 59'),
            (3, 'line 3, --time: "x" is not a time limit'),
        ]
        # What the scheduler would refuse is found at once, too.
        answer = await ask(
            service, "PUT",
            {"text": "#SCRON -p no\n@daily a\n@daily b\n#SCRON -A no\n@daily c\n"},
        )  # fmt: skip
        assert [one["message"] for one in answer.json()["faults"]] == [
            'line 2: partition "no" does not exist', 'line 5: account "no" does not exist',
        ]  # fmt: skip
        answer = await ask(service, "PUT", {"text": TABLE, "zone": "Europe/Nowhere"})
        assert answer.status_code == 400
        answer = await ask(service, "PUT", {"text": "#" * (MAX_CHARS + 1)})
        assert answer.status_code == 413
        assert (await show(service)).text == TABLE

    serve(database_url, work)


@pytest.mark.parametrize(
    "fields",
    [
        {"work_dir": "/a\0b"},
        {"work_dir": "relative"},
        {"submit_host": "a\0b"},
        {"zone": "a\0b"},
        {"zone": ""},
        {"umask": 0o1000},
        {"text": "A=b\0c\n@daily x\n"},
        {"text": "@daily \ud800"},
        {"text": "#SCRON --nodes=99999999999999999999\n@daily x\n"},
        {"text": "#SCRON --begin=99999999999999999999\n@daily x\n"},
        {"text": "99999999999999999999999 * * * * x\n"},
    ],
)
def test_values_that_no_table_may_have_are_refused(
    database_url: str, fields: dict[str, Any]
) -> None:
    async def work(service: Service) -> None:
        body = json.dumps({"text": TABLE, **fields})
        async with service.client() as client:
            answer = await client.put(PATH, content=body)
        assert 400 <= answer.status_code < 500, answer.text
        assert (await show(service)).text is None

    serve(database_url, work)


def test_only_operators_see_and_remove_the_tables_of_others(database_url: str) -> None:
    async def work(service: Service) -> None:
        await put(service, TABLE)
        user = str(ALICE.uid)
        for method in ("GET", "DELETE"):
            answer = await ask(service, method, peer=BOB, user=user)
            assert answer.status_code == 403
            assert answer.json()["code"] == "OD013"
        assert (await show(service, peer=OPERATOR, user=user)).text == TABLE
        await ask(service, "DELETE", peer=OPERATOR, user=user)
        assert (await show(service)).text is None

    serve(database_url, work)


def test_the_leader_submits_what_is_due_and_wakes_the_planner(database_url: str) -> None:
    async def work(service: Service) -> None:
        await put(service, f"A=b\n{TABLE}@daily other\n", umask=0o77)
        loop = a_loop(service)
        assert await loop.run_once() is None
        assert await service.database.fetchval("select count(*) from odc.job") == 0
        await make_due(service)
        await loop.run_once()
        rows = await service.database.fetch("select * from odc.job order by id")
        assert [row["name"] for row in rows] == ["nightly", "other"]
        assert {row["umask"] for row in rows} == {0o77}
        assert {row["uid"] for row in rows} == {ALICE.uid}
        assert len(service.woken) == 2
        first = (await show(service)).entries[0]
        assert (first.last_result, first.last_job_id) == ("submitted", rows[0]["id"])
        await loop.run_once()
        await make_due(service)
        await loop.run_once()
        assert await service.database.fetchval("select count(*) from odc.job") == 2
        assert [one.skipped for one in (await show(service)).entries] == [1, 1]

    serve(database_url, work)


def test_an_occurrence_that_is_refused_has_its_reason(database_url: str) -> None:
    async def work(service: Service) -> None:
        await put(service, TABLE + "@daily second\n")
        await make_due(service)
        await a_loop(service, limits={"pending_limit": 1}).run_once()
        results = {one.last_result for one in (await show(service)).entries}
        assert results == {"submitted", "refused"}
        [refused] = [one for one in (await show(service)).entries if one.last_why]
        assert refused.last_why is not None
        assert "pending" in refused.last_why
        assert refused.next_at is not None

    serve(database_url, work)


def test_the_submit_filter_sees_the_table_and_each_occurrence(
    database_url: str, tmp_path: Path
) -> None:
    async def work(service: Service) -> None:
        table = "@daily bad\n@daily good\n"
        found = service.api.submit_filter
        answer = await ask(service, "PUT", {"text": table})
        assert answer.status_code == 400
        [fault] = answer.json()["faults"]
        assert (fault["line"], fault["message"]) == (
            1, "line 1: rejected by the site's submit filter: no bad jobs",
        )  # fmt: skip
        # It was stored before the site had a filter.
        await put(service, "@daily good\n")
        await service.database.execute(
            "insert into odc.cron_entry (uid, first_line, line, schedule, minutes, hours, days, "
            "months, weekdays, any_day, every_hour, zone, request) select uid, 2, 2, schedule, "
            "minutes, hours, days, months, weekdays, any_day, every_hour, zone, "
            'request || \'{"command": "bad"}\' from odc.cron_entry'
        )
        await make_due(service)
        await a_loop(service, submit_filter=found).run_once()
        good, bad = (await show(service)).entries
        assert (good.last_result, bad.last_result) == ("submitted", "refused")
        assert bad.last_why is not None
        assert "no bad jobs" in bad.last_why
        [comment] = [
            row["comment"] for row in await service.database.fetch("select comment from odc.job")
        ]
        assert comment.startswith("batch False ")

    with a_filter(tmp_path / "filter.py") as found:
        serve(database_url, work, submit_filter=found)


def test_an_occurrence_waits_while_the_disk_is_almost_full(database_url: str) -> None:
    def full() -> None:
        raise DiskAlmostFull("the disk is almost full", "Free some space.")

    async def work(service: Service) -> None:
        await put(service, TABLE)
        await make_due(service)
        await a_loop(service, check_disk=full).run_once()
        [entry] = (await show(service)).entries
        assert entry.last_result is None
        await a_loop(service).run_once()
        [entry] = (await show(service)).entries
        assert entry.last_result == "submitted"

    serve(database_url, work)


def test_an_entry_that_cannot_be_processed_stops_no_other(database_url: str) -> None:
    """Its stored request is damaged, say."""

    async def work(service: Service) -> None:
        await put(service, "@daily a\n@daily b\n")
        await service.database.execute(
            "update odc.cron_entry set request = '{}' where request ->> 'command' = 'a'"
        )
        await make_due(service)
        loop = a_loop(service)
        for _ in range(2):
            await loop.run_once()
        names = await service.database.fetch("select name from odc.job")
        assert [row["name"] for row in names] == ["b"]

    serve(database_url, work)
