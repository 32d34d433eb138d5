from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import BadDependency, BadRequest, DatabaseDown, OdcError, TooLarge
from odcd.jobs.submission import Prepared, prepare
from odcd.jobs.submit_batches import BATCH_JOBS, SMALL_JOBS, SubmitBatcher
from odcd.records.job import Identity, JobSpec, Submitted
from odcd.records.node import NodeReport
from odcd.stores.store import Store
from tests.support.harness.database import Sql

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALICE = Identity(user="alice", uid=1001, gid=1001, operator=False)
BOB = Identity(user="bob", uid=1002, gid=1002, operator=False)
SCRIPT = "#!/bin/sh\ntrue\n"


def a_spec(**fields: Any) -> JobSpec:
    return JobSpec(**({"script": SCRIPT, "work_dir": "/home/alice", "name": "a"} | fields))


def a_request(
    *specs: JobSpec, key: str | None = None, dry_run: bool = False, who: Identity = ALICE
) -> Prepared:
    return prepare(who, specs or [a_spec()], key=key, dry_run=dry_run)


def a_large_request(key: str, who: Identity = ALICE) -> Prepared:
    return a_request(*[a_spec()] * (SMALL_JOBS + 1), key=key, who=who)


def the_job(**fields: Any) -> dict[str, Any]:
    return a_request(a_spec(**fields)).request["jobs"][0]


# -- prepare --------------------------------------------------------------------------------------


def test_a_request_carries_the_speaker_and_texts_by_their_digests() -> None:
    prepared = a_request(a_spec(environment={"B": "2", "A": "ä"}), key="k", dry_run=True)
    environment = '{"A":"ä","B":"2"}'
    request = prepared.request
    head = {name: value for name, value in request.items() if name not in ("digest", "jobs")}
    assert head.pop("own_bytes") > 200
    assert head == {
        "uid": 1001, "gid": 1001, "user": "alice", "operator": False, "key": "k", "dry_run": True,
    }  # fmt: skip
    assert prepared.texts == {
        hashlib.sha256(text.encode()).hexdigest(): text for text in (SCRIPT, environment)
    }
    job = request["jobs"][0]
    assert prepared.texts[job["script_digest"]] == SCRIPT
    assert prepared.texts[job["environment_digest"]] == environment


def test_a_job_has_exactly_the_fields_that_the_database_reads() -> None:
    assert " ".join(the_job()) == (
        "name kind script_digest environment_digest args work_dir umask stdin stdout stderr "
        "open_mode partitions account qos nice comment hold begin_at deadline_at time_limit_s "
        "node_count node_count_max switches switches_wait_s "
        "ntasks ntasks_per_node cpus_per_task cpus_per_gpu gpus gpus_per_node gpus_per_task "
        "gpu_type "
        "mem_per_node_mib mem_per_cpu_mib mem_per_gpu_mib tmp_mib exclusive constraint node_list "
        "exclude_nodes booking licences components requeue signal_number signal_before_s "
        "signal_batch submit_host array dependency options mail reservation"
    )


def test_arrays_dependencies_and_types_are_spelt_out() -> None:
    job = the_job(
        array="0-9,12%4", dependency="after:7+2,afterok:8_3", gpu_type="H100", begin_at=NOW
    )
    assert job["array"] == {
        "tasks": "{[0,10),[12,13)}", "min": 0, "max": 12, "count": 11, "step": 1, "throttle": 4,
    }  # fmt: skip
    assert job["dependency"] == {
        "text": "after:7+2,afterok:8_3",
        "any": False,
        "terms": [
            {"kind": "after", "target_id": 7, "target_task": None, "delay_s": 120},
            {"kind": "afterok", "target_id": 8, "target_task": 3, "delay_s": 0},
        ],
    }
    assert (job["gpu_type"], job["begin_at"]) == ("h100", "2026-05-04T12:00:00+00:00")


def test_options_contain_only_the_given_ones() -> None:
    assert the_job()["options"] == {}
    job = the_job(
        ntasks=4, gpus_per_node=2, gpu_type="H100", submit_line="x", pty=True, spool_output=True
    )
    assert job["options"] == {
        "ntasks": 4,
        "gpus_spec": {"gpus_per_node": "h100:2"},
        "submit_line": "x",
        "pty": True,
        "spool_output": True,
        "launch": "first",
    }


def test_an_identical_request_has_an_identical_digest_and_a_different_one_has_not() -> None:
    digest = a_request(a_spec(environment={"A": "1", "B": "2"})).request["digest"]
    assert a_request(a_spec(environment={"B": "2", "A": "1"})).request["digest"] == digest
    others = [
        a_spec(environment={"A": "1"}),
        a_spec(script=SCRIPT + "#"),
        a_spec(name="b"),
        a_spec(begin_at=NOW),
    ]
    assert len({digest} | {a_request(spec).request["digest"] for spec in others}) == 5


def test_a_retried_command_line_is_the_same_request_though_now_has_moved_on() -> None:
    digests = {
        a_request(a_spec(submit_line=line, begin_at=NOW + later)).request["digest"]
        for line in ("--begin=now+1hour x.sh",)
        for later in (timedelta(hours=1), timedelta(hours=2))
    }
    assert len(digests) == 1


def test_texts_that_repeat_in_a_batch_are_kept_once() -> None:
    assert len(a_request(*[a_spec() for _ in range(100)]).texts) == 2


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"script": "echo"}, BadRequest, "is not a batch script"),
        ({"script": "#!/bin/sh\n\0"}, BadRequest, "NUL"),
        ({"script": "#!/bin/sh\n\ud800"}, BadRequest, "UTF-8"),
        ({"work_dir": "home"}, BadRequest, "not absolute"),
        ({"work_dir": "/a\0b"}, BadRequest, "cannot be shown"),
        ({"comment": "\ud800"}, BadRequest, "UTF-8"),
        ({"name": "a\nb"}, BadRequest, "cannot be shown"),
        ({"args": ["a\0"]}, BadRequest, "NUL"),
        ({"args": ["x" * 131_072]}, TooLarge, "131072 bytes"),
        ({"args": ["x" * 100_000] * 11}, TooLarge, "1100000 bytes"),
        ({"environment": {"A=B": ""}}, BadRequest, "with ="),
        ({"environment": {"": ""}}, BadRequest, "empty name"),
        ({"environment": {"A": "\0"}}, BadRequest, "NUL"),
        ({"environment": {"A\0": ""}}, BadRequest, "NUL"),
        ({"environment": {"A": "\udc80"}}, BadRequest, "UTF-8"),
        ({"environment": {"A": "x" * 131_072}}, TooLarge, '"A"'),
        ({"environment": {f"A{n}": "x" * 100_000 for n in range(11)}}, TooLarge, "environment"),
        ({"begin_at": datetime(2026, 5, 4)}, BadRequest, "no time zone"),  # noqa: DTZ001
        ({"array": "x"}, BadRequest, "array"),
        ({"array": "0-99999999"}, TooLarge, "100000000 tasks"),
        ({"dependency": "x"}, BadDependency, "dependency"),
    ],
)
def test_errors_the_database_cannot_detect_are_refused_earlier(
    fields: dict[str, Any], error: type[OdcError], message: str
) -> None:
    with pytest.raises(error, match=message):
        the_job(**fields)


def test_text_that_only_looks_like_a_nul_passes() -> None:
    job = the_job(comment="\\u0000", environment={"A": "\\u0000", "BASH_FUNC_x%%": "() { :; }"})
    assert job["comment"] == "\\u0000"


def test_a_job_refused_in_a_batch_is_named_by_its_index() -> None:
    with pytest.raises(BadRequest, match="job 1 of the batch: array"):
        a_request(a_spec(), a_spec(array="x"))


def test_empty_and_oversized_batches_and_keys_are_refused() -> None:
    with pytest.raises(BadRequest, match="no jobs"):
        prepare(ALICE, [], key=None, dry_run=False)
    with pytest.raises(TooLarge, match="more than 20000 jobs"):
        a_request(*[a_spec()] * 20_001)
    for key in ("", "x" * 201):
        with pytest.raises(BadRequest, match="idempotency key"):
            a_request(key=key)


# -- batches --------------------------------------------------------------------------------------


class HeldStore:
    """Answers a batch when the test allows it; ids count from 1."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.sent = asyncio.Semaphore(0)
        self.gate = asyncio.Semaphore(0)
        self.large_gate = asyncio.Event()
        self.large_gate.set()
        self.spoilt: Callable[[list[dict[str, Any]]], Exception | None] = lambda _: None
        self._id = 0

    async def submit(
        self, requests: str, digests: Sequence[str], texts: Sequence[str], now: datetime
    ) -> list[list[Submitted]]:
        assert len(digests) == len(set(digests)) == len(texts)
        batch = json.loads(requests)
        self.batches.append(batch)
        self.sent.release()
        await self.gate.acquire()
        if any(len(request["jobs"]) > SMALL_JOBS for request in batch):
            await self.large_gate.wait()
        if error := self.spoilt(batch):
            raise error
        return [[self._answer() for _ in request["jobs"]] for request in batch]

    def _answer(self) -> Submitted:
        self._id += 1
        return Submitted(job_id=self._id)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    @property
    def keys(self) -> list[list[str]]:
        return [[request["key"] for request in batch] for batch in self.batches]


def with_batcher(test: Callable[[HeldStore, SubmitBatcher], Awaitable[None]]) -> None:
    async def run() -> None:
        store = HeldStore()
        async with asyncio.timeout(30):
            await test(store, SubmitBatcher(store, SystemClock()))

    asyncio.run(run())


def submit_all(
    batcher: SubmitBatcher, requests: Sequence[Prepared]
) -> list[asyncio.Task[list[Submitted]]]:
    return [asyncio.create_task(batcher.submit(request)) for request in requests]


def open_gate(store: HeldStore, batches: int = 100) -> None:
    for _ in range(batches):
        store.gate.release()


async def next_tick() -> None:
    """Run everything that is ready now."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_submits_of_one_tick_are_one_transaction_and_each_gets_its_own_answer() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        requests = [a_request(*[a_spec()] * size) for size in (1, 3, 2)]
        answers = await asyncio.gather(*submit_all(batcher, requests))
        assert store.sizes == [3]
        assert [[one.job_id for one in answer] for answer in answers] == [[1], [2, 3, 4], [5, 6]]

    with_batcher(test)


def test_while_a_batch_is_in_the_database_the_next_one_gathers() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        first = submit_all(batcher, [a_request()])
        await store.sent.acquire()
        later = submit_all(batcher, [a_request()] * 2)
        await next_tick()
        later += submit_all(batcher, [a_request()] * 3)
        await next_tick()
        assert store.sizes == [1]
        open_gate(store)
        await asyncio.gather(*first, *later)
        assert store.sizes == [1, 5]

    with_batcher(test)


def test_a_batch_is_capped_by_jobs_and_by_bytes() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        many = [a_request(*[a_spec()] * (BATCH_JOBS // 2)) for _ in range(3)]
        await asyncio.gather(*submit_all(batcher, many))
        assert store.sizes == [2, 1]
        big = [a_request(a_spec(script=SCRIPT + "#" * 3_000_000)) for _ in range(3)]
        await asyncio.gather(*submit_all(batcher, big))
        assert store.sizes == [2, 1, 2, 1]

    with_batcher(test)


def test_a_request_larger_than_the_cap_is_sent_alone() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        requests = [a_request(), a_request(*[a_spec()] * (BATCH_JOBS + 1)), a_request()]
        await asyncio.gather(*submit_all(batcher, requests))
        assert sorted(store.sizes) == [1, 2]

    with_batcher(test)


def test_small_requests_do_not_wait_for_a_large_one_of_another_user() -> None:
    """Before: one sender wrote all requests in order of arrival."""

    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        store.large_gate.clear()
        open_gate(store)
        large = submit_all(batcher, [a_large_request(f"large {n}") for n in range(20)])
        await store.sent.acquire()
        for _ in range(3):
            assert await batcher.submit(a_request(who=BOB))
        assert not any(task.done() for task in large)
        store.large_gate.set()
        await asyncio.gather(*large)

    with_batcher(test)


def test_a_batch_takes_requests_of_each_user_in_turn() -> None:
    """Before: another user's request waited for all earlier ones."""

    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        jobs = [a_spec()] * SMALL_JOBS
        requests = [a_request(*jobs, key=f"a{n}") for n in range(30)]
        requests += [a_request(key=f"b{n}", who=BOB) for n in range(2)]
        open_gate(store)
        await asyncio.gather(*submit_all(batcher, requests))
        assert store.keys[0][:4] == ["a0", "b0", "a1", "b1"]
        assert [key for batch in store.keys for key in batch if key[0] == "a"] == [
            f"a{n}" for n in range(30)
        ]

    with_batcher(test)


def test_large_requests_take_turns_too() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        jobs = [a_spec()] * BATCH_JOBS
        requests = [a_request(*jobs, key=f"a{n}") for n in range(3)]
        requests.append(a_large_request("b", BOB))
        open_gate(store)
        await asyncio.gather(*submit_all(batcher, requests))
        assert store.keys == [["a0"], ["b"], ["a1"], ["a2"]]

    with_batcher(test)


def test_small_requests_of_a_user_wait_for_her_large_one_and_then_go_before_the_next() -> None:
    """Otherwise the transaction would wait for the large one's, together with other users'
    requests."""

    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        store.large_gate.clear()
        open_gate(store)
        tasks = submit_all(batcher, [a_large_request("large 0")])
        await store.sent.acquire()
        tasks += submit_all(batcher, [a_request(key="gone"), a_request(key="small")])
        tasks += submit_all(batcher, [a_large_request("large 1"), a_request(key="bob", who=BOB)])
        await tasks.pop()
        tasks.pop(1).cancel()
        store.large_gate.set()
        await asyncio.gather(*tasks)
        assert store.keys == [["large 0"], ["bob"], ["small"], ["large 1"]]

    with_batcher(test)


def test_a_large_request_is_sent_when_the_small_one_before_it_is_cancelled() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        store.large_gate.clear()
        open_gate(store)
        tasks = submit_all(batcher, [a_large_request("large 0")])
        await store.sent.acquire()
        tasks += submit_all(batcher, [a_request(key="gone"), a_large_request("large 1")])
        await next_tick()
        tasks.pop(1).cancel()
        store.large_gate.set()
        await asyncio.gather(*tasks)
        assert store.keys == [["large 0"], ["large 1"]]

    with_batcher(test)


def test_a_database_that_is_down_reaches_every_waiting_caller_and_the_next_ones_try_again() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        store.spoilt = lambda _: DatabaseDown("PostgreSQL is gone", "Wait.")
        answers = await asyncio.gather(
            *submit_all(batcher, [a_request()] * 3), return_exceptions=True
        )
        assert [(type(answer), str(answer)) for answer in answers] == (
            [(DatabaseDown, "PostgreSQL is gone")] * 3
        )
        assert len({id(answer) for answer in answers}) == 3
        store.spoilt = lambda _: None
        assert (await batcher.submit(a_request()))[0].job_id == 1

    with_batcher(test)


def test_a_request_that_spoils_a_batch_fails_alone() -> None:
    def spoilt(batch: list[dict[str, Any]]) -> Exception | None:
        return ValueError("bad") if any(r["key"] == "bad" for r in batch) else None

    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        open_gate(store)
        store.spoilt = spoilt
        requests = [a_request(key=key) for key in ("a", "bad", "b")]
        answers = await asyncio.gather(*submit_all(batcher, requests), return_exceptions=True)
        assert [type(answer) for answer in answers] == [list, ValueError, list]

    with_batcher(test)


def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        sent = submit_all(batcher, [a_request(key=f"sent {n}") for n in range(2)])
        await store.sent.acquire()
        waiting = submit_all(batcher, [a_request(key=f"waiting {n}") for n in range(2)])
        await next_tick()
        sent[0].cancel()
        waiting[0].cancel()
        open_gate(store)
        answers = await asyncio.gather(*sent, *waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [
            asyncio.CancelledError, list, asyncio.CancelledError, list,
        ]  # fmt: skip
        assert [[r["key"] for r in batch] for batch in store.batches] == [
            ["sent 0", "sent 1"], ["waiting 1"],
        ]  # fmt: skip

    with_batcher(test)


def test_no_caller_waits_forever_when_the_daemon_ends() -> None:
    async def test(store: HeldStore, batcher: SubmitBatcher) -> None:
        callers = submit_all(batcher, [a_request()])
        await store.sent.acquire()
        callers += submit_all(batcher, [a_request()])
        await next_tick()
        (sender,) = (task for task in asyncio.all_tasks() if task.get_name() == "send-submits")
        callers += submit_all(batcher, [a_large_request("large")])
        sender.cancel()
        answers = await asyncio.gather(*callers, return_exceptions=True)
        assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3

    with_batcher(test)


# -- with PostgreSQL ------------------------------------------------------------------------------


async def with_nodes(store: Store) -> None:
    node = NodeReport(name="n1", gpu_type="h100", gpus=8, cpus=192, mem_mib=2_097_152)
    await store.nodes.register(0, [node], NOW, whole=True)


def test_submits_of_one_tick_become_jobs_by_one_commit(database_url: str) -> None:
    async def run() -> list[list[Submitted]]:
        async with Database(database_url) as database:
            store = Store(database)
            await with_nodes(store)
            batcher = SubmitBatcher(store.jobs, SystemClock())
            return await asyncio.gather(
                batcher.submit(a_request(a_spec(environment={"A": "ä"}))),
                batcher.submit(a_request(a_spec(array="0-999%5"), a_spec(dependency="singleton"))),
                batcher.submit(a_request(a_spec(partitions=["nowhere"]))),
            )

    one, two, refused = asyncio.run(run())
    ids = [answer.job_id for answer in one + two]
    assert None not in ids
    assert len(set(ids)) == 3
    assert (refused[0].job_id, refused[0].code) == (None, "OD001")
    with Sql(database_url) as sql:
        assert sql.value("select count(distinct xid) from odc.event where kind = 'submitted'") == 1
        assert sql.values("select id from odc.job order by id") == sorted(ids)
        text = sql.value(
            "select t.content from odc.job as j join odc.job_text as t "
            "on t.digest = j.environment_digest where j.id = $1",
            ids[0],
        )
        assert json.loads(text) == {"A": "ä"}


def test_every_field_of_a_job_reaches_the_database(database_url: str) -> None:
    spec = a_spec(
        name="all", args=["a", "b c"], umask=0o077, stdin="/in", stdout="%j.out", stderr="%j.err",
        open_mode="append", comment="it's", hold=True, begin_at=NOW + timedelta(days=4000),
        deadline_at=NOW + timedelta(days=5000), time_limit_s=77, node_count=1, ntasks=2,
        gpus_per_node=2, gpu_type="H100", mem_per_node_mib=1024, exclusive=False, requeue=False,
        signal_number=10, signal_before_s=30, signal_batch=True, submit_host="h", submit_line="l",
        nice=5, pty=True,
    )  # fmt: skip

    async def run() -> list[Submitted]:
        async with Database(database_url) as database:
            store = Store(database)
            await with_nodes(store)
            return await SubmitBatcher(store.jobs, SystemClock()).submit(a_request(spec))

    (answer,) = asyncio.run(run())
    assert answer.job_id is not None, answer
    with Sql(database_url) as sql:
        row = sql.row("select * from odc.job where id = $1", answer.job_id)
        shape = sql.row("select * from odc.shape where id = $1", row["shape_id"])
    same = (
        "name args work_dir umask stdin stdout stderr open_mode comment begin_at deadline_at "
        "time_limit_s requeue signal_number signal_before_s signal_batch submit_host nice"
    )
    for field in same.split():
        assert row[field] == getattr(spec, field), field
    assert json.loads(row["options"]) == {
        "ntasks": 2, "gpus_spec": {"gpus_per_node": "h100:2"}, "submit_line": "l", "pty": True,
    }  # fmt: skip
    assert (row["user_name"], row["uid"], shape["gpu_type"], shape["gpus_per_node"]) == (
        "alice", 1001, "h100", 2,
    )  # fmt: skip
