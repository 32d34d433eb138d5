"""The daemon's side of the local executor, with a real runner and real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.errors import LeadershipLost, RunnerDown, WrongState
from odcd.executor.base import Executor
from odcd.executor.local import LocalExecutor
from odcd.records.dispatch import Fact, Notice
from odcd.records.node import DeclaredNode, GpuTypeSize
from odcd.runner.connection import Connection
from odcd.runner.server import Server
from tests.support.builders.dispatches import a_dispatch_of, a_member, expecting
from tests.support.harness.runner import PATIENCE_S, RunnerHome, forked_runner

WAITS = "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\necho went\nexit 9\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RunnerHome]:
    """A place for a runner; none runs yet."""
    home = RunnerHome(tmp_path / "runner")
    yield home
    home.end()


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def an_executor(home: RunnerHome, **changes: Any) -> LocalExecutor:
    async def launch() -> None:
        await asyncio.to_thread(home.launch)

    async def sizes() -> Mapping[str, GpuTypeSize]:
        return {"h100": GpuTypeSize(gpus=8, cpus=192, mem_mib=2097152)}

    settings: dict[str, Any] = {"nodes": (), "self_node": True, "sizes": sizes} | changes
    launcher = settings.pop("launcher", launch)
    return LocalExecutor(home.run_dir, launcher, SystemClock(), **settings)


class Watched:
    """An executor whose facts are collected, as the reaper would."""

    def __init__(self, executor: LocalExecutor, *, acknowledges: bool = True) -> None:
        self.executor = executor
        self.facts: list[Fact] = []
        self._acknowledges = acknowledges
        self._came = asyncio.Condition()

    async def _collect(self) -> None:
        async for facts in self.executor.observe():
            async with self._came:
                self.facts += facts
                self._came.notify_all()
            if self._acknowledges:
                await self.executor.acknowledge(facts)

    async def end_of(self, job_id: int, rank: int = 0) -> Fact:
        return await self.fact(job_id, ("exited", "lost", "start_failed"), rank)

    async def fact(self, job_id: int, kinds: tuple[str, ...], rank: int = 0) -> Fact:
        def found() -> Fact | None:
            return next(
                (f for f in self.facts
                 if (f.job_id, f.rank) == (job_id, rank) and f.kind in kinds), None
            )  # fmt: skip

        async with asyncio.timeout(PATIENCE_S), self._came:
            await self._came.wait_for(lambda: found() is not None)
        fact = found()
        assert fact is not None
        return fact


def run(
    executor: LocalExecutor,
    body: Callable[[Watched], Awaitable[None]],
    *,
    term: int = 1,
    **how: bool,
) -> None:
    """Open it, watch it, and run body; then close it."""

    async def main() -> None:
        await executor.open(term)
        watched = Watched(executor, **how)
        watching = asyncio.create_task(watched._collect())
        try:
            await body(watched)
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            await executor.close()

    asyncio.run(main())


def test_the_local_executor_implements_the_protocol() -> None:
    _: type[Executor] = LocalExecutor


def test_a_job_runs_and_its_facts_are_reported(home: RunnerHome, work_dir: Path) -> None:
    script = '#!/bin/sh\necho "$SLURM_JOB_ID $GREETING $ODC_NODE"\nexit 7\n'
    dispatch, texts = a_dispatch_of(
        script, '{"GREETING": "hi", "PATH": "/usr/bin:/bin"}', job_id=12, work_dir=str(work_dir)
    )

    async def body(watched: Watched) -> None:
        before = datetime.now(UTC)
        await watched.executor.start([dispatch], texts)
        end = await watched.end_of(12)
        assert (end.kind, end.exit_code, end.signal) == ("exited", 7, None)
        assert before <= end.at <= datetime.now(UTC)
        assert [fact.kind for fact in watched.facts] == ["started", "exited"]

    run(an_executor(home), body)
    assert (work_dir / "slurm-12.out").read_text() == "12 hi gpu-01\n"


def test_a_gang_of_declared_nodes_runs_a_process_each(home: RunnerHome, work_dir: Path) -> None:
    script = '#!/bin/sh\necho "$ODC_RANK $ODC_NODE $MASTER_ADDR $CUDA_VISIBLE_DEVICES"\n'
    members = tuple(a_member(rank, gpu_indexes=(0, 1)) for rank in range(3))
    dispatch, texts = a_dispatch_of(script, work_dir=str(work_dir), members=members)

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        for rank in range(3):
            assert (await watched.end_of(1, rank)).exit_code == 0

    run(an_executor(home), body)
    assert sorted((work_dir / "slurm-1.out").read_text().splitlines()) == [
        "0 gpu-01 127.0.0.1 0,1", "1 gpu-02 127.0.0.1 0,1", "2 gpu-03 127.0.0.1 0,1",
    ]  # fmt: skip


def test_a_dead_runner_is_replaced_and_gets_the_unstarted_jobs(
    home: RunnerHome, work_dir: Path
) -> None:
    script = "#!/bin/sh\necho $SLURM_JOB_ID >> ran\nexit 3\n"
    pairs = [a_dispatch_of(script, job_id=job, work_dir=str(work_dir)) for job in range(1, 61)]

    async def body(watched: Watched) -> None:
        await watched.executor.start([d for d, _ in pairs], pairs[0][1])
        await asyncio.to_thread(home.kill)
        ends = [await watched.end_of(job) for job in range(1, 61)]
        for end in ends:
            # A member killed between its record and its fork is known never to have started.
            assert (end.kind, end.exit_code) in (("exited", 3), ("start_failed", None))

    run(an_executor(home), body)
    ran = (work_dir / "ran").read_text().split()
    assert len(ran) == len(set(ran)) >= 58


def test_a_new_daemon_adopts_running_jobs(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of(WAITS, work_dir=str(work_dir))

    async def first(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.fact(1, ("started",))

    async def second(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.executor.adopt(expecting((1, 1, 0), (2, 1, 0)))
        assert (await watched.end_of(2)).kind == "lost"
        await watched.executor.adopt(expecting((1, 1, 0), (3, 1, 0)))
        assert (await watched.end_of(3)).kind == "start_failed"
        (work_dir / "go").touch()
        assert (await watched.end_of(1)).exit_code == 9

    run(an_executor(home), first)
    run(an_executor(home), second, term=2)
    assert (work_dir / "slurm-1.out").read_text() == "went\n"


def test_an_older_term_is_refused(home: RunnerHome) -> None:
    old, new = an_executor(home), an_executor(home)

    async def main() -> None:
        await old.open(1)
        await new.open(2)
        with pytest.raises(LeadershipLost):
            await old.stop(1, 1, signal=15, grace_s=1)
        with pytest.raises(LeadershipLost):
            async for _ in old.observe():
                pass
        with pytest.raises(LeadershipLost):
            await an_executor(home).open(1)
        await old.close()
        await new.close()

    asyncio.run(main())


def test_without_a_runner_the_error_says_why(home: RunnerHome) -> None:
    async def cannot() -> None:
        raise RunnerDown("the keeper is gone")

    async def main() -> None:
        with pytest.raises(RunnerDown, match="the keeper is gone"):
            await an_executor(home, launcher=cannot).open(1)

    asyncio.run(main())


def test_stopping_an_unknown_job_reports_every_rank_as_lost(home: RunnerHome) -> None:
    async def body(watched: Watched) -> None:
        await watched.executor.stop(8, 1, signal=15, grace_s=1)
        assert (await watched.end_of(8)).kind == "lost"

    run(an_executor(home), body)


def test_a_limit_is_kept_and_can_be_moved(home: RunnerHome, work_dir: Path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1000)
    dispatch, texts = a_dispatch_of(WAITS, work_dir=str(work_dir), ends_at=soon)

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.fact(1, ("started",))
        await watched.executor.set_end(1, 1, datetime.now(UTC))
        end = await watched.end_of(1)
        assert (end.kind, end.signal, end.cause) == ("exited", 15, "timeout")

    run(an_executor(home), body)


def test_facts_come_again_until_they_are_acknowledged(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of("#!/bin/sh\n", work_dir=str(work_dir))

    async def first(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.end_of(1)

    async def second(watched: Watched) -> None:
        await watched.end_of(1)

    async def third(watched: Watched) -> None:
        await watched.executor.adopt(expecting())
        await watched.executor.stop(9, 1, signal=15, grace_s=1)
        await watched.end_of(9)
        assert {fact.job_id for fact in watched.facts} == {9}

    run(an_executor(home), first, acknowledges=False)
    run(an_executor(home), second)
    run(an_executor(home), third)


async def _all(pieces: AsyncGenerator[bytes]) -> bytes:
    async with aclosing(pieces):
        return b"".join([piece async for piece in pieces])


def test_logs_follow_until_the_end(home: RunnerHome, work_dir: Path) -> None:
    script = "#!/bin/sh\necho one\nwhile [ ! -e go ]; do sleep 0.02; done\necho two\n"
    dispatch, texts = a_dispatch_of(script, work_dir=str(work_dir))

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        pieces = watched.executor.logs(dispatch, 0, stderr=False, follow=True)
        async with asyncio.timeout(PATIENCE_S), aclosing(pieces):
            assert await anext(pieces) == b"one\n"
            assert await _all(
                watched.executor.logs(dispatch, 0, stderr=False, follow=False)
            ) == b"one\n"  # fmt: skip
            (work_dir / "go").touch()
            assert b"".join([piece async for piece in pieces]) == b"two\n"
        await watched.end_of(1)
        assert await _all(
            watched.executor.logs(dispatch, 0, stderr=True, follow=True)
        ) == b"one\ntwo\n"  # fmt: skip

    run(an_executor(home), body)


def test_logs_of_a_job_that_the_runner_does_not_have_yet_are_followed(
    home: RunnerHome, work_dir: Path
) -> None:
    """Before: they ended at once, without any output."""
    dispatch, texts = a_dispatch_of("#!/bin/sh\necho one\n", work_dir=str(work_dir))

    async def body(watched: Watched) -> None:
        pieces = _all(watched.executor.logs(dispatch, 0, stderr=False, follow=True))
        follower = asyncio.create_task(pieces)
        done, _ = await asyncio.wait([follower], timeout=0.3)
        assert not done
        await watched.executor.start([dispatch], texts)
        async with asyncio.timeout(PATIENCE_S):
            assert await follower == b"one\n"

    run(an_executor(home), body)


def test_logs_of_spooled_output_keep_stdout_and_stderr_apart(
    home: RunnerHome, work_dir: Path
) -> None:
    dispatch, texts = a_dispatch_of(
        "#!/bin/sh\necho out\necho err >&2\n",
        work_dir=str(work_dir),
        options={"spool_output": True},
    )

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        logs = watched.executor.logs
        assert await _all(logs(dispatch, 0, stderr=False, follow=True)) == b"out\n"
        assert await _all(logs(dispatch, 0, stderr=True, follow=True)) == b"err\n"

    run(an_executor(home), body)
    assert list(work_dir.iterdir()) == []


def test_huge_logs_are_whole(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of("#!/bin/sh\nseq 1000000\n", work_dir=str(work_dir))

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        data = await _all(watched.executor.logs(dispatch, 0, stderr=False, follow=True))
        assert data == b"".join(b"%d\n" % n for n in range(1, 1_000_001))

    run(an_executor(home), body)


def test_a_truncated_log_is_read_from_its_start(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of(WAITS, work_dir=str(work_dir), open_mode="append")
    log = work_dir / "slurm-1.out"
    log.write_text("of before\n")

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        pieces = watched.executor.logs(dispatch, 0, stderr=False, follow=True)
        async with asyncio.timeout(PATIENCE_S), aclosing(pieces):
            assert await anext(pieces) == b"of before\n"
            os.truncate(log, 0)
            (work_dir / "go").touch()
            assert b"".join([piece async for piece in pieces]) == b"went\n"

    run(an_executor(home), body)


def test_unreadable_output_is_reported_with_the_reason(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of("#!/bin/sh\n", work_dir=str(work_dir), stdout="/dev/null")

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.end_of(1)
        with pytest.raises(WrongState, match="/dev/null is not a regular file"):
            await _all(watched.executor.logs(dispatch, 0, stderr=False, follow=False))
        gone = replace(dispatch, stdout="gone")
        assert await _all(watched.executor.logs(gone, 0, stderr=False, follow=True)) == b""

    run(an_executor(home), body)


async def _read_until(terminal: Any, text: bytes) -> bytes:
    shown = b""
    async with asyncio.timeout(PATIENCE_S):
        while text not in shown:
            data = await terminal.read()
            assert data, f"ended without {text!r}: {shown!r}"
            shown += data
    return shown


def test_a_terminal_is_attached_to_and_replayed_after_its_end(
    home: RunnerHome, work_dir: Path
) -> None:
    script = "#!/bin/sh\nPS1='$ ' exec sh -i\n"
    dispatch, texts = a_dispatch_of(script, work_dir=str(work_dir), options={"pty": True})

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        terminal = await watched.executor.attach(dispatch, 0)
        await terminal.resize(33, 101)
        await terminal.write(b"echo a$((1+1))b; stty size\n")
        await _read_until(terminal, b"33 101")
        await terminal.write(b"exit 5\n")
        async with asyncio.timeout(PATIENCE_S):
            while await terminal.read():
                pass
        await terminal.close()
        assert (await watched.end_of(1)).exit_code == 5
        replayed = await watched.executor.attach(dispatch, 0)
        await _read_until(replayed, b"33 101")
        await replayed.close()
        shown = await _all(watched.executor.logs(dispatch, 0, stderr=False, follow=False))
        assert b"a2b" in shown

    run(an_executor(home), body)


NOTICE = Notice(name="WARN.txt", text="30 minutes", remove=["old.txt"], wall="time is short")


def test_a_notice_is_shown_on_the_terminal_and_written_to_the_home(
    home: RunnerHome, work_dir: Path
) -> None:
    dispatch, texts = a_dispatch_of(
        "#!/bin/sh\nexec sleep 1000\n",
        f'{{"HOME": "{work_dir}", "PATH": "/usr/bin:/bin"}}',
        work_dir=str(work_dir),
        options={"pty": True},
    )

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.fact(1, ("started",))
        (work_dir / "old.txt").touch()
        await watched.executor.dev_servers.notify(1, 1, NOTICE)
        await asyncio.to_thread(home.kill)
        await watched.executor.dev_servers.notify(1, 1, NOTICE)
        terminal = await watched.executor.attach(dispatch, 0)
        await _read_until(terminal, b"time is short")
        await terminal.close()

    run(an_executor(home), body)
    assert [path.name for path in work_dir.iterdir()] == ["WARN.txt"]
    assert (work_dir / "WARN.txt").read_text() == "30 minutes"


def test_an_undeliverable_notice_is_reported_with_the_reason(
    home: RunnerHome, work_dir: Path
) -> None:
    dispatch, texts = a_dispatch_of(
        WAITS, f'{{"HOME": "{work_dir}/gone"}}', work_dir=str(work_dir)
    )  # fmt: skip

    async def body(watched: Watched) -> None:
        with pytest.raises(WrongState, match="job 1 could not be notified: it is not running"):
            await watched.executor.dev_servers.notify(1, 1, NOTICE)
        await watched.executor.start([dispatch], texts)
        await watched.fact(1, ("started",))
        with pytest.raises(WrongState, match="no terminal to show it on; cannot open the home"):
            await watched.executor.dev_servers.notify(1, 1, NOTICE)
        with pytest.raises(ValueError, match="not a file name"):
            await watched.executor.dev_servers.notify(1, 1, Notice(name="../x"))
        with pytest.raises(ValueError, match="not a file name"):
            await watched.executor.dev_servers.notify(1, 1, Notice(remove=["a/b"]))

    run(an_executor(home), body)


def test_an_older_runner_refuses_notices_and_continues(home: RunnerHome, work_dir: Path) -> None:
    dispatch, texts = a_dispatch_of(WAITS, work_dir=str(work_dir))

    def older() -> None:
        del Server._do_tell

    async def body(watched: Watched) -> None:
        await watched.executor.start([dispatch], texts)
        await watched.fact(1, ("started",))
        with pytest.raises(
            WrongState, match=r"no such operation: tell \(its runner is odc"
        ) as raised:
            await watched.executor.dev_servers.notify(1, 1, NOTICE)
        assert raised.value.hint == "When no job runs, replace it with `odcd down` and `odcd up`."
        (work_dir / "go").touch()
        assert (await watched.end_of(1)).exit_code == 9

    forked_runner(home.run_dir, change=older)
    run(an_executor(home), body)


def test_the_inventory_has_declared_nodes_and_the_machine(home: RunnerHome) -> None:
    nodes = (DeclaredNode(name="n1", gpu_type="h100", gpus=4, cpus=None),)

    async def names(**how: object) -> list[tuple[str, bool]]:
        reports = await an_executor(home, **how).inventory()
        return [(report.name, report.declared) for report in reports]

    declared = asyncio.run(names(nodes=nodes, self_node=False))
    both = asyncio.run(names(nodes=nodes, self_node=True))
    assert declared == [("n1", True)]
    assert both[:1] == declared
    assert [is_declared for _, is_declared in both] == [True, False]


@pytest.mark.parametrize("knows_hooks", [True, False])
def test_a_runner_that_would_ignore_the_hooks_is_reported(
    home: RunnerHome, caplog: pytest.LogCaptureFixture, knows_hooks: bool
) -> None:
    known = Server._hello

    def hello_of_earlier(
        self: Server, connection: Connection, request: dict[str, Any]
    ) -> dict[str, Any]:
        answer = known(self, connection, request)
        return {name: fact for name, fact in answer.items() if name != "hooks"}

    def older() -> None:
        if not knows_hooks:
            Server._hello = hello_of_earlier

    async def main() -> None:
        executor = an_executor(home, hooks=True)
        await executor.open(1)
        await executor.close()

    forked_runner(home.run_dir, change=older)
    asyncio.run(main())
    assert ("runner.lacks_hooks" in caplog.messages) is not knows_hooks
