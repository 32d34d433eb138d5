"""Arrays of thousands of ranges, and jobs with thousands of dependencies, are cheap for others.

Everybody's lists have a row for each, and everybody waits for the turn while they are checked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from odcd.errors import TooLarge
from odcd.jobs.submission import prepare
from odcd.jobs.submit_batches import BATCH_TERMS, SubmitBatcher
from odcd.jobs.terms import MAX_TERMS
from odcd.slurm.dependencies import MAX_CORRESPONDING, parse_dependency
from odcd.slurm.dependencies import MAX_TERMS as MAX_TERMS_OF_JOB
from tests.odcd.jobs.test_submission import (
    HeldStore,
    a_request,
    a_spec,
    open_gate,
    submit_all,
    with_batcher,
)
from tests.support.builders.jobs import ALICE, BOB, Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql

pytestmark = pytest.mark.long

RANGES = 2_000
SPARSE = ",".join(str(10_000 + 2 * n) for n in range(RANGES))
SHORT = 2_000
"""Characters of one field of a row."""


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=1)
        yield Queue(sql)
        sql.rollback()


def tasks_of(queue: Queue, job: int) -> str:
    return row_of(queue, job)["array_tasks"]


def row_of(queue: Queue, job: int) -> dict[str, Any]:
    text = queue.sql.value(
        "select jobs from odc.list_jobs($1::jsonb, true, null, 10, null, $2)",
        json.dumps({"job_ids": [job]}), queue.now,
    )  # fmt: skip
    return json.loads(text)[0]


def test_lists_show_the_first_ranges_of_an_array(queue: Queue) -> None:
    """Before: 60 arrays of 10,000 ranges made everybody's page 6.5 MB. Twenty requests for it kept
    the daemon from answering anyone for 14 s, and a hundred that were not read took 700 MB."""
    array = queue.submit(array=f"{SPARSE}%5", hold=True)
    text = tasks_of(queue, array)
    assert text.startswith("10000,10002,10004,")
    assert text.endswith(",10198,...%5")
    queue.cancel(array)
    text = tasks_of(queue, array)
    assert text.startswith("10000,10002,")
    assert text.endswith(",...")
    assert len(text) < SHORT


@pytest.mark.parametrize("ranges", [1, 2, 99, 100])
def test_few_ranges_are_shown_completely(queue: Queue, ranges: int) -> None:
    text = ",".join(f"{4 * n}-{4 * n + 1}" for n in range(ranges))
    array = queue.submit(array=text, hold=True)
    assert tasks_of(queue, array) == text
    queue.cancel(array)
    assert tasks_of(queue, array) == text


@pytest.mark.parametrize("ended", [False, True])
def test_the_reason_of_a_job_names_ten_of_its_dependencies(queue: Queue, ended: bool) -> None:
    """Before: a row had 100 bytes for each dependency, or 65 KB if its array was cancelled. With 47
    jobs of 5,000 dependencies, `odcctl queue` took everybody 15 s and had 27 MB."""
    array = queue.submit(array=SPARSE, hold=True)
    other = queue.submit(hold=True)
    job = queue.submit(dependency="?".join([f"afterok:{array}"] * 30 + [f"afterok:{other}"]))
    if ended:
        queue.cancel(array)
    why = row_of(queue, job)["why"]
    assert len(why) == 11
    assert why[-1]["text"] == "has 21 more dependencies that are not met"
    assert max(len(one["text"]) for one in why) < SHORT / 10
    if ended:
        assert all("can no longer be met" in one["text"] for one in why[:-1])


def test_the_text_of_cancelled_tasks_is_read_once_for_each_array(queue: Queue) -> None:
    """Before: once for each task that was named. A job with 1,000 dependencies on tasks of an array
    of 10,000 cancelled ranges held the turn for 24 s, and no job of anyone started or ended."""
    array = queue.submit(array=SPARSE, hold=True)
    queue.cancel(array)
    queue.sql.execute("set local track_functions = 'all'")
    before = reads(queue)
    tasks = SPARSE.split(",")[:200]
    queue.submit(dependency=",".join(f"afterany:{array}_{task}" for task in tasks))
    assert reads(queue) - before <= 1
    before = reads(queue)
    found = queue.sql.rows(
        "select job_id, place from odc._find_jobs($1::jsonb, $2::jsonb)",
        json.dumps({"user": "alice", "uid": ALICE.uid}),
        json.dumps({"ids": [{"job_id": array, "tasks": f"{{[{task},{task}]}}"} for task in tasks]}),
    )
    assert found == [{"job_id": array, "place": "ended"}]
    assert reads(queue) - before <= 1


def reads(queue: Queue) -> int:
    """Calls of odc._tasks_of in this transaction."""
    return queue.sql.value(
        "select coalesce(sum(calls), 0)::integer from pg_stat_xact_user_functions "
        "where schemaname = 'odc' and funcname = '_tasks_of'"
    )


def test_dependencies_on_missing_tasks_are_refused(queue: Queue) -> None:
    array = queue.submit(array="0,2,4-9", hold=True)
    queue.cancel(array)
    for task, known in ((0, True), (1, False), (2, True), (3, False), (9, True), (10, False)):
        [answer] = submit(queue.sql, a_job(dependency=f"afterany:{array}_{task}"))
        assert answer.code == (None if known else "OD011"), answer


def test_a_job_and_a_request_have_a_limit_of_dependencies() -> None:
    """Before: 10,000 of one job, and any number of a request. Four such requests of one user went
    into one transaction, and the jobs of all others waited 50 s for their start."""
    most = "afterok:" + ":".join(map(str, range(1, MAX_TERMS_OF_JOB + 1)))
    assert len(parse_dependency(most).terms) == MAX_TERMS_OF_JOB
    with pytest.raises(TooLarge):
        parse_dependency(f"{most}:{MAX_TERMS_OF_JOB + 1}")
    corresponding = ",".join(["aftercorr:1"] * MAX_CORRESPONDING)
    parse_dependency(corresponding)
    with pytest.raises(TooLarge):
        parse_dependency(f"{corresponding},aftercorr:2")
    jobs = [a_job(dependency=most)] * (MAX_TERMS // MAX_TERMS_OF_JOB)
    assert prepare(ALICE, jobs, key=None, dry_run=False).terms == MAX_TERMS
    with pytest.raises(TooLarge):
        prepare(ALICE, [*jobs, a_job(dependency="afterok:1")], key=None, dry_run=False)


def test_a_search_for_a_circle_of_dependencies_ends(queue: Queue) -> None:
    """A user can make it long, and everybody waits for the turn meanwhile."""
    first, last = queue.submit(hold=True), queue.submit(hold=True)
    chain = [first]
    for _ in range(3):
        chain.append(queue.submit(dependency=f"afterok:{chain[-1]}"))
    [answer] = queue.updates(first, changes={"dependency": f"afterok:{chain[-1]}"})
    assert (answer["code"], "itself" in answer["message"]) == ("OD011", True)
    # A chain that is longer than the search.
    queue.sql.execute(
        "insert into odc.dependency (job_id, ord, kind, target_id, delay_s) "
        "select 1000000 + n, 1, 'afterok', 1000001 + n, 0 from generate_series(0, 10000) as n"
    )
    queue.sql.execute(
        "insert into odc.dependency (job_id, ord, kind, target_id, delay_s) "
        "values ($1, 2, 'afterok', 1000000, 0)", chain[-1],
    )  # fmt: skip
    [answer] = queue.updates(last, changes={"dependency": f"afterok:{chain[-1]}"})
    assert answer["code"] == "OD009"


def test_requests_with_many_dependencies_have_transactions_of_their_own() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        most = "afterok:" + ":".join(map(str, range(1, MAX_TERMS_OF_JOB + 1)))
        large = a_request(a_spec(dependency=most), who=ALICE)
        small = a_request(a_spec(), who=BOB)
        batches = 3
        per_batch = BATCH_TERMS // MAX_TERMS_OF_JOB
        await asyncio.gather(*submit_all(batcher, [*[large] * (batches * per_batch), small]))
        assert sorted(store.sizes) == [1, *[per_batch] * batches]

    with_batcher(test)


def test_an_answer_ends_before_its_texts_are_too_large(queue: Queue) -> None:
    """Before: 10,000 jobs with long texts were 400 MB, several times at once in the daemon."""
    path = "/tmp/" + "a/" * 2_000
    texts = {"comment": "x" * 4096, "work_dir": path, "stdout": path, "stderr": path}
    submit(queue.sql, *[a_job(hold=True, **texts)] * 1_500)
    sizes: list[int] = []
    after = None
    while True:
        row = queue.sql.row(
            "select jobs, next from odc.list_jobs($1::jsonb, false, $2, 10000, null, $3)",
            "{}", after, queue.now,
        )  # fmt: skip
        sizes.append(len(row["jobs"]))
        after = row["next"]
        if after is None:
            break
    assert len(sizes) == 2
    assert max(sizes) < 24 * 1024 * 1024
    narrow = queue.sql.row(
        "select jobs, next from odc.list_jobs('{}', false, null, 10000, '{id}', $1)", queue.now
    )
    assert narrow["next"] is None
