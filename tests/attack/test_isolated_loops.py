"""One item that a loop of the leader cannot process is set aside there, and the others go on.

test_isolation.py does it with a database for the loops of jobs and nodes. Here the store, or the
executor, refuses one item of each of the other loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odcd import isolation
from odcd.builds.worker import BuildWorker
from odcd.clock import SystemClock
from odcd.disks.worker import DiskWorker
from odcd.history.retention import Retention
from odcd.history.settings import HistorySettings
from odcd.loops.expiry_notices import ExpiryNotices
from odcd.loops.idle_monitor import IdleMonitor
from odcd.loops.jupyter import JupyterControl
from odcd.loops.quarantine import Quarantine
from odcd.loops.reconciler import Reconciler
from odcd.records.build import Build, BuildLook
from odcd.records.dev_server import Activity, DueCheck, ExpiryNotice, JupyterRequest
from odcd.records.dispatch import Stop
from odcd.records.node import CanaryEnd
from odcd.stores.disk_work import DiskWork

BAD, GOOD, LAST = 1, 2, 3
ALL = (BAD, GOOD, LAST)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(seconds=30)
CLOCK = SystemClock()


class Pill:
    """Refuses one item, until it is allowed. Implements RoundMetrics."""

    def __init__(self) -> None:
        self.swallowed = False
        self.done: list[int] = []
        self.isolations: list[str] = []
        self.aside = 0

    def take(self, item: int) -> None:
        if item == BAD and not self.swallowed:
            raise OverflowError("the pill")
        self.done.append(item)

    def isolated(self, loop: str) -> None:
        self.isolations.append(loop)

    def count_aside(self, loop: str, more: int) -> None:
        self.aside += more

    def round_took(self, loop: str, seconds: float) -> None: ...
    def round_failed(self, loop: str) -> None: ...


@pytest.fixture
def pill(monkeypatch: pytest.MonkeyPatch) -> Pill:
    # What was set aside is due again at once: the next round tries it.
    monkeypatch.setattr(isolation, "RETRY_S", (0.0, 0.0))
    return Pill()


def fake(**methods: Callable[..., object]) -> Any:
    """An object with these methods, all of them coroutines."""

    def later(method: Callable[..., object]) -> Callable[..., Awaitable[object]]:
        async def call(*args: Any, **more: Any) -> object:
            return method(*args, **more)

        return call

    return SimpleNamespace(**{name: later(method) for name, method in methods.items()})


def check(pill: Pill, loop: str, once: Callable[[], Awaitable[object]]) -> None:
    """The first round sets the item aside, and the next one processes it."""

    async def rounds() -> None:
        await once()
        assert sorted(pill.done) == [GOOD, LAST]
        assert (pill.isolations, pill.aside) == ([loop], 1)
        pill.swallowed = True
        pill.done.clear()
        await once()
        assert BAD in pill.done
        assert pill.aside == 0

    asyncio.run(rounds())


def test_a_dev_server_whose_idleness_cannot_be_stored_stops_no_other_check(pill: Pill) -> None:
    store = fake(
        list_due_looks=lambda term: [DueCheck(job_id=n, attempt=1) for n in ALL],
        record_look=lambda term, due, *rest: pill.take(due.job_id),
    )
    servers = fake(look=lambda *_: Activity(sessions=0, gpu_percent=None, cpu_s=1.0))
    monitor = IdleMonitor(0, store, servers, CLOCK, EVERY, pill)
    check(pill, "idle", monitor.run_once)


def test_a_notice_that_cannot_be_recorded_delays_no_other_notice(pill: Pill) -> None:
    due = [
        ExpiryNotice(job_id=n, attempt=1, name="x", minutes=5, expires_at=NOW, extensible=True)
        for n in ALL
    ]
    store = fake(
        list_expiry_notices=lambda *_: due,
        record_expiry_notice=lambda term, notice, *rest: pill.take(notice.job_id),
        get_next_notice_time=lambda *_: None,
    )
    notices = ExpiryNotices(0, store, fake(notify=lambda *_: None), CLOCK, EVERY, pill)
    check(pill, "expiry", notices.run_once)


def test_a_jupyter_lab_that_cannot_be_recorded_delays_no_other(pill: Pill) -> None:
    store = fake(
        list_due_jupyters=lambda *_: [JupyterRequest(job_id=n, attempt=1, on=True) for n in ALL],
        record_jupyter=lambda term, request, *rest: pill.take(request.job_id),
    )
    control = JupyterControl(0, store, fake(set_jupyter=lambda *_, **__: None), CLOCK, EVERY, pill)

    async def once() -> None:
        async with asyncio.TaskGroup() as control._tasks:  # pyright: ignore
            await control.run_once()

    check(pill, "jupyter", once)


def test_a_canary_that_cannot_be_recorded_returns_the_other_nodes(pill: Pill) -> None:
    returned: list[None] = []
    store = fake(take=lambda *_: list(ALL), end=lambda term, end, now: pill.take(end.number))
    ends = [CanaryEnd(number=n, passed=True, output="") for n in ALL]
    quarantine = Quarantine(
        0, store, fake(try_nodes=lambda _: ends), CLOCK, every=EVERY,
        on_change=lambda: returned.append(None), metrics=pill,
    )  # fmt: skip
    check(pill, "quarantine", quarantine.try_once)
    assert len(returned) == 2


def builds_of(pill: Pill, end: Callable[..., object]) -> BuildWorker:
    """Three builds whose Jobs are done."""
    builds = [
        Build(id=n, attempt=1, digest="", target="", dockerfile="", uid=1, made=True,
              started_at=NOW)
        for n in ALL
    ]  # fmt: skip
    looks = {n: BuildLook(state="done", image="i", log="its log") for n in ALL}
    return BuildWorker(
        0, fake(take=lambda *_: builds, end=end), fake(survey=lambda _: looks), CLOCK, every=EVERY,
        at_once=3, on_change=lambda: None, watch=pill,
    )  # fmt: skip


def test_a_build_that_cannot_be_recorded_at_all_delays_no_other_build(pill: Pill) -> None:
    worker = builds_of(pill, lambda term, build, *_, **__: pill.take(build.id))
    check(pill, "builds", worker.work_once)


def test_a_build_whose_log_cannot_be_stored_fails_without_it(pill: Pill) -> None:
    ended: dict[int, tuple[str | None, str | None]] = {}

    def end(term: int, build: Build, now: datetime, **how: Any) -> None:
        if how["log"] is not None:
            pill.take(build.id)
        ended[build.id] = how["error"], how["log"]

    asyncio.run(builds_of(pill, end).work_once())
    assert ended == {
        BAD: ("odc failed: OverflowError: the pill", None),
        GOOD: (None, "its log"), LAST: (None, "its log"),
    }  # fmt: skip
    assert (pill.isolations, pill.aside) == (["builds"], 0)


def test_work_for_a_disk_that_cannot_be_recorded_delays_no_other_disk(pill: Pill) -> None:
    due = [
        DiskWork(
            kind="volume", id=n, verb="detach", operation="", cloud_id=f"vol-{n}",
            volume_cloud_id=None, snapshot_cloud_id=None, zone=None, size_gib=1, uid=1, tags={},
        )
        for n in ALL
    ]  # fmt: skip
    store = fake(take=lambda *_: due, record=lambda term, work, *rest: pill.take(work.id))
    cloud = fake(detach_volume=lambda *_, **__: None)
    worker = DiskWorker(0, store, cloud, fake(), CLOCK, EVERY, watch=pill)
    check(pill, "disks", worker.work_once)


def reconciler(pill: Pill, store: Any, executor: Any) -> Reconciler:
    executor.keeps_time = executor.reconciles = True
    return Reconciler(
        cast(Any, SimpleNamespace(term=0)), cast(Any, SimpleNamespace(attempts=store, leader=None)),
        executor, CLOCK, grace=EVERY, node_grace=None, every=EVERY, on_change=lambda: None,
        watch=pill,
    )  # fmt: skip


def test_a_job_that_cannot_be_stopped_delays_no_other_stop(pill: Pill) -> None:
    store = fake(
        take_stops=lambda *_, **__: [Stop(job_id=n, attempt=1, intent="cancel") for n in ALL],
        list_moved_ends=lambda *_: [],
    )
    executor = fake(stop=lambda job_id, *_, **__: pill.take(job_id))
    check(pill, "stops", reconciler(pill, store, executor).carry_out_once)


def test_a_time_limit_that_cannot_be_moved_delays_no_other(pill: Pill) -> None:
    recorded: list[int] = []

    def record(term: int, ends: Sequence[tuple[int, int, datetime]]) -> None:
        recorded.extend(end[0] for end in ends)

    store = fake(
        take_stops=lambda *_, **__: [],
        list_moved_ends=lambda *_: [(n, 1, NOW) for n in ALL],
        record_ends=record,
    )
    executor = fake(set_end=lambda job_id, *_: pill.take(job_id))
    check(pill, "stops", reconciler(pill, store, executor).carry_out_once)
    assert recorded[:2] == [GOOD, LAST]
    assert BAD in recorded


def test_an_ended_job_that_cannot_be_deleted_is_kept_and_the_others_are_deleted(
    pill: Pill,
) -> None:
    def forget(query: str, term: int, job_ids: Sequence[int], *_: object) -> int:
        if BAD in job_ids:
            pill.take(BAD)
        pill.done += [job_id for job_id in job_ids if job_id != BAD]
        return len(job_ids)

    rows: list[Mapping[str, Any]] = [{"ids": list(ALL), "last": None}]
    session = fake(fetchrow=lambda *_: rows[0], fetchval=forget)
    retention = Retention(0, cast(Any, None), CLOCK, HistorySettings(), pill)
    deleted = cast(Any, SimpleNamespace(jobs=0))
    check(
        pill, "history",
        lambda: retention._delete_jobs(session, None, NOW, deleted),  # pyright: ignore
    )  # fmt: skip
