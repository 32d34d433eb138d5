"""The worker: whenever it dies, no build is lost, and none is done twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from odcd.builds.steps import clean, error_of, step_of
from odcd.builds.worker import BuildWorker
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import LeadershipLost, OdcError, RunnerDown, WrongState
from odcd.records.build import Build, BuildLook
from odcd.stores.builds import BuildStore
from tests.sql.devserver.builds.test_builds import IMAGE, Builds
from tests.support.builders.jobs import BOB, Queue, a_cluster
from tests.support.harness.database import Sql

Key = tuple[int, int]


class Killed(BaseException):
    """The daemon dies here."""


class Cluster:
    """A builder whose Jobs have the states that a test sets, and which dies or fails on request."""

    def __init__(self) -> None:
        self.jobs: dict[Key, BuildLook] = {}
        self.begun: list[Key] = []
        self.removed: list[Key] = []
        self.contexts: dict[Key, bytes] = {}
        self.dies_at: int | None = None
        """After so many of its steps."""
        self.failures: list[OdcError] = []
        self._steps = itertools.count()

    def _step(self) -> None:
        if next(self._steps) == self.dies_at:
            raise Killed
        if self.failures:
            raise self.failures.pop(0)

    async def survey(self, builds: Sequence[Build]) -> dict[int, BuildLook]:
        self._step()
        named = {(build.id, build.attempt) for build in builds}
        for key in [key for key in self.jobs if key not in named]:
            if self.jobs[key].state == "going":
                del self.jobs[key]
                self.removed.append(key)
        return {key[0]: look for key, look in self.jobs.items() if key in named}

    async def begin(self, build: Build, context: bytes) -> None:
        key = build.id, build.attempt
        self._step()
        if key not in self.jobs:
            self.jobs[key] = BuildLook(state="going")
            self.begun.append(key)
        self._step()
        self.contexts[key] = context
        self._step()

    def say(self, **fields: str) -> None:
        """Of all that are there."""
        self.jobs = {key: BuildLook(**fields) for key in self.jobs}  # pyright: ignore[reportArgumentType]

    async def close(self) -> None: ...


class Workshop:
    """Users of a real database, and a worker that a test runs step by step."""

    def __init__(self, url: str, sql: Sql) -> None:
        self.url = url
        self.queue = Queue(sql)
        self.queue.now = SystemClock().now()
        self.builds = Builds(self.queue)
        self.cluster = Cluster()
        self.changes = 0

    def work(self, times: int = 1) -> int:
        """The rounds of a daemon; returns the number of builds in the last round."""

        async def run() -> int:
            async with Database(self.url, size=1) as database:
                worker = BuildWorker(
                    0, BuildStore(database), self.cluster, SystemClock(),
                    every=timedelta(seconds=30), at_once=4, on_change=self._change,
                )  # fmt: skip
                for _ in range(times - 1):
                    await worker.work_once()
                return await worker.work_once()

        return asyncio.run(run())

    def _change(self) -> None:
        self.changes += 1


@pytest.fixture
def shop(database_url: str) -> Iterator[Workshop]:
    with Sql(database_url) as sql:
        a_cluster(sql, h100=2, now=SystemClock().now())
        yield Workshop(database_url, sql)


def test_an_image_is_built_from_the_uploaded_context(shop: Workshop) -> None:
    """IMG-07, BUG-06: the database waits, not the worker."""
    job_id = shop.builds.reserve()
    assert shop.work() == 1
    [key] = shop.cluster.begun
    assert shop.cluster.contexts[key] == b"a"
    shop.cluster.say(state="going", step="step 2/3: RUN x", log="#1 x\n")
    shop.work()
    assert "step 2/3: RUN x" in shop.builds.reservations.show(job_id)["message"]
    shop.cluster.say(state="done", image=IMAGE, log="all")
    shop.work()
    assert shop.changes == 1
    assert shop.builds.show()["image"] == IMAGE
    assert shop.work() == 0
    assert shop.queue.start() == [job_id]


@pytest.mark.parametrize("dies_at", range(8))
def test_a_daemon_killed_anywhere_neither_loses_nor_doubles_a_build(
    shop: Workshop, dies_at: int
) -> None:
    """BUG-23, IMG-08"""
    job_id = shop.builds.reserve()
    shop.cluster.dies_at = dies_at
    for _ in range(6):
        try:
            shop.work()
        except Killed:
            continue
        if shop.cluster.contexts:
            shop.cluster.say(state="done", image=IMAGE)
    assert len(shop.cluster.begun) == 1
    assert shop.builds.show()["image"] == IMAGE
    assert shop.queue.start() == [job_id]


def test_a_job_without_its_context_is_completed(shop: Workshop) -> None:
    """It was created, and the daemon died before the rest was."""
    shop.builds.reserve()
    shop.cluster.dies_at = 2
    with pytest.raises(Killed):
        shop.work()
    assert (len(shop.cluster.jobs), shop.cluster.contexts) == (1, {})
    shop.work()
    assert len(shop.cluster.begun) == len(shop.cluster.contexts) == 1


def test_a_job_whose_state_cannot_be_read_is_not_lost(shop: Workshop) -> None:
    shop.builds.reserve()
    shop.work()
    shop.cluster.failures = [RunnerDown("away")] * 3
    shop.work(3)
    assert shop.builds.show()["attempts"] == 1
    shop.cluster.say(state="done", image=IMAGE)
    shop.work()
    assert shop.builds.show()["state"] == "completed"


def test_a_job_that_disappeared_is_created_again(shop: Workshop) -> None:
    job_id = shop.builds.reserve()
    shop.work()
    shop.cluster.jobs.clear()
    shop.work(2)
    assert [attempt for _, attempt in shop.cluster.begun] == [1, 2]
    shop.cluster.jobs.clear()
    shop.work(2)
    shop.cluster.jobs.clear()
    shop.work()
    assert (
        "disappeared before it was done" in shop.builds.reservations.show(job_id)["failure_reason"]
    )


def test_a_failed_build_fails_its_reservation_with_the_error(shop: Workshop) -> None:
    """IMG-07, LIF-18"""
    job_id = shop.builds.reserve()
    shop.work()
    shop.cluster.say(state="failed", error="RUN make: exit code 2", log="#1\n#2")
    shop.work()
    assert "exit code 2" in shop.builds.reservations.show(job_id)["failure_reason"]


def test_a_build_that_kubernetes_refuses_fails_with_its_message(shop: Workshop) -> None:
    job_id = shop.builds.reserve()
    shop.work()
    shop.cluster.jobs.clear()
    other = shop.builds.reserve("b", BOB)
    shop.cluster.failures = []
    refused = shop.cluster.begin

    async def refuse(build: Build, context: bytes) -> None:
        raise WrongState("Kubernetes refuses to build it: no quota")

    shop.cluster.begin = refuse  # type: ignore[method-assign]
    shop.work(2)
    shop.cluster.begin = refused  # type: ignore[method-assign]
    assert "no quota" in shop.builds.reservations.show(other, BOB)["failure_reason"]
    assert "no quota" in shop.builds.reservations.show(job_id)["failure_reason"]


def test_the_job_is_removed_when_the_last_reservation_is_cancelled(shop: Workshop) -> None:
    """IMG-08"""
    job_id = shop.builds.reserve()
    shop.work()
    shop.queue.cancel(job_id)
    shop.work()
    assert shop.cluster.removed == shop.cluster.begun
    shop.builds.reserve()
    shop.work()
    assert [attempt for _, attempt in shop.cluster.begun] == [1, 2]


def test_a_former_leader_builds_nothing(shop: Workshop) -> None:
    shop.builds.reserve()
    shop.queue.sql.execute("update odc.term set term = term + 1")
    with pytest.raises(LeadershipLost):
        shop.work()
    assert shop.cluster.begun == []


LOG = """\
#1 [internal] load build definition from Dockerfile
#1 DONE 0.0s
#5 [base 1/2] FROM docker.io/library/busybox:1.37@sha256:00
#6 [base 2/2] RUN echo one
#7 [2/3] COPY . /x
#7 CACHED
#8 [3/3] RUN \x1b[31mmake\x1b[0m
#8 0.412 make: *** No targets.  Stop.
#8 ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 2
"""


def test_the_step_and_the_error_are_read_from_a_log() -> None:
    """IMG-07"""
    plain = clean(LOG + "\0\n")
    assert step_of(plain) == "step 3/3: RUN make"
    assert step_of("\n".join(plain.splitlines()[:4])) == "step 2/2 of base: RUN echo one"
    assert step_of(plain + "#9 exporting to image\n#9 pushing layers") == (
        "pushing it to its registry"
    )
    assert step_of("#1 [internal] load build definition") is None
    assert error_of(plain).splitlines()[-1].endswith("exit code: 2")
    assert "\0" not in plain
    assert "\x1b" not in plain
    assert len(step_of("#1 [1/1] RUN " + "x" * 500) or "") == 120
