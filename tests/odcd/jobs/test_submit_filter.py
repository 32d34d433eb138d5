"""The site's submit filter, run in its real processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import textwrap
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from odcd.clock import Turns
from odcd.errors import BadRequest, FilterFailed, OdcError, SubmitRejected
from odcd.jobs.submit_filter.changes import MAY_CHANGE, Kind
from odcd.jobs.submit_filter.filtering import AT_ONCE, Filtered, SubmitFilter
from odcd.jobs.submit_filter.process import FilterProcess
from odcd.jobs.submit_filter.settings import read_submit_filter
from odcd.jobs.submit_filter.target import Target
from odcd.records.job import Identity, JobSpec, ReservationSpec

ALICE = Identity(user="alice", uid=1001, gid=1001, operator=False)
BOB = Identity(user="bob", uid=1002, gid=1002, operator=False)
JOB = JobSpec(script="#!/bin/sh\ntrue\n", work_dir="/tmp", gpus=1)
SERVER = ReservationSpec(script="#!/bin/sh\n", work_dir="/", time_limit_s=3600)
LIMIT_S = 60.0
"""Longer than any filter of these tests needs, on a busy machine, too."""


@contextmanager
def filtering(
    path: Path, body: str, *, limit_s: float = LIMIT_S, accept: bool = False
) -> Iterator[SubmitFilter]:
    """A filter with this body of submit(job, request)."""
    write(path, body)
    process = FilterProcess(Target(file=str(path)))
    try:
        yield SubmitFilter(process, limit=timedelta(seconds=limit_s), accept_on_failure=accept)
    finally:
        process.close()
        os.wait()


def write(path: Path, body: str) -> None:
    path.write_text(f"def submit(job, request):\n{textwrap.indent(textwrap.dedent(body), '    ')}")


async def passed(
    found: SubmitFilter, *specs: JobSpec, who: Identity = ALICE, kind: Kind = "batch"
) -> Filtered:
    return await found.apply(who, specs or [JOB], kind, Turns(), dry_run=False)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "filter.py"


def test_a_filter_changes_fields_and_warns(path: Path) -> None:
    body = """
        job["account"] = f"{request.user}-{request.kind}"
        job["time_limit_s"] = 3600
        request.warn("the time limit is now 1 hour")
    """
    with filtering(path, body) as found:
        done = run(passed(found))
    assert (done.specs[0].account, done.specs[0].time_limit_s) == ("alice-batch", 3600)
    assert done.warnings == ("the time limit is now 1 hour",)
    assert done.changed == ("account", "time_limit_s")


def test_a_filter_that_changes_nothing_leaves_the_request_as_it_was(path: Path) -> None:
    with filtering(path, "job['gpus'] = 1") as found:
        done = run(passed(found))
    assert (list(done.specs), done.changed) == ([JOB], ())


def test_a_rejection_carries_the_filters_words_and_the_job(path: Path) -> None:
    body = """
        try:
            if job["name"] == "bad":
                request.reject("no jobs are named\\x1b bad")
        except Exception:
            pass
    """
    with filtering(path, body) as found, pytest.raises(SubmitRejected) as refused:
        run(passed(found, JOB, JobSpec(script="", work_dir="/", name="bad")))
    assert refused.value.text == "no jobs are named? bad"
    assert refused.value.message == (
        "job 1 of the batch: rejected by the site's submit filter: no jobs are named? bad"
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise KeyError('secret')", "ended with KeyError"),
        ("raise SystemExit(0)", "ended with SystemExit"),
        ("import os; os._exit(3)", "ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9"),
        ("import os; os.abort()", "ended by signal 6"),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "printed more than 64 KiB"),
        ("for _ in range(10**9): print('x' * 1000)", "printed more than 64 KiB"),
        ("print('x' * 10**9)", "printed more than 64 KiB|ended with MemoryError"),
        ("job['comment'] = 'x' * (9 * 1024 * 1024)", "answered with more than 8 MiB"),
        ("job['x'] = bytearray(1 << 40)", "ended with MemoryError"),
        ("return 'no'", "ended with TypeError"),
        ("job['account'] = {1, 2}", "ended with TypeError"),
        ("job['uid'] = 0", "changed what a filter may not change in a request of kind batch: uid"),
        ("job['kind'] = 'reservation'", "changed what a filter may not change"),
        ("job['submit_line'] = 'x'", "changed what a filter may not change"),
        ("job['id'] = 7", "changed what a filter may not change"),
        ("job['gpus'] = -1", "set a value that is not valid: .*gpus"),
        ("job['time_limit_s'] = 'long'", "set a value that is not valid: .*time_limit_s"),
        ("job['comment'] = 'a\\x1b[2J'", "set a value that is not valid: .*comment"),
    ],
)  # fmt: skip
def test_a_filter_that_fails_is_a_refusal_that_says_how(path: Path, body: str, why: str) -> None:
    with filtering(path, body) as found:
        with pytest.raises(FilterFailed, match=f"^the site's submit filter ({why})") as refused:
            run(passed(found))
        assert "secret" not in refused.value.message
        # The next request has a new process.
        write(path, "pass")
        assert run(passed(found)).changed == ()


def test_a_filter_that_hangs_is_killed_with_all_it_started(path: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f"""
        import os, subprocess, sys, time
        detached = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open({str(pids)!r}, "w") as file:
            file.write(f"{{os.getpid()}} {{detached.pid}}")
        time.sleep(1000)
    """
    with (
        filtering(path, body, limit_s=1) as found,
        pytest.raises(FilterFailed, match="did not end within 1 s"),
    ):
        run(passed(found))
    for pid in map(int, pids.read_text().split()):
        assert not psutil.pid_exists(pid)


def test_a_failed_filter_accepts_the_request_unchanged_if_the_site_says_so(path: Path) -> None:
    with filtering(path, "job['gpus'] = 2\nraise ValueError", accept=True) as found:
        assert list(run(passed(found)).specs) == [JOB]
        write(path, "request.reject('no')")
        with pytest.raises(SubmitRejected):
            run(passed(found))


def test_a_request_that_ends_early_ends_its_filter(path: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f"""
        import os, time
        open({str(pid_file)!r}, "w").write(str(os.getpid()) + "\\n")
        time.sleep(1000)
    """

    async def leave(found: SubmitFilter) -> int:
        asking = asyncio.create_task(passed(found))
        await until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        asking.cancel()
        await asyncio.wait([asking])
        pid = int(pid_file.read_text())
        await until(lambda: not psutil.pid_exists(pid))
        return pid

    with filtering(path, body) as found:
        assert run(leave(found)) > 0


def test_a_filter_that_hangs_for_one_user_delays_no_one_else(path: Path) -> None:
    body = """
        import time
        if request.user == "alice":
            time.sleep(1000)
    """

    async def both(found: SubmitFilter) -> None:
        hanging = [asyncio.create_task(passed(found)) for _ in range(2 * AT_ONCE)]
        for _ in range(3):
            assert (await passed(found, who=BOB)).changed == ()
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await asyncio.wait(hanging)
        # The places of requests that have gone are free again.
        write(path, "pass")
        await passed(found)

    with filtering(path, body) as found:
        run(both(found))


def test_nothing_that_one_request_leaves_reaches_the_next(path: Path) -> None:
    body = """
        import builtins, os
        request.warn(f"{hasattr(builtins, 'seen')} {os.environ.get('SEEN')} {os.getcwd()}")
        builtins.seen = True
        os.environ["SEEN"] = "1"
        os.chdir("/tmp")
    """
    with filtering(path, body) as found:
        for _ in range(2):
            assert run(passed(found)).warnings == ("False None /",)


def test_the_filters_code_gets_none_of_the_daemons_variables(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ODC_DSN", "postgresql://secret")
    with filtering(path, "import os; request.warn(' '.join(sorted(os.environ)))") as found:
        assert run(passed(found)).warnings == ("HOME LANG PATH",)


def test_without_its_process_a_filter_rejects_every_submit(path: Path) -> None:
    before = set(psutil.Process().children())
    with filtering(path, "pass") as found:
        (watcher,) = set(psutil.Process().children()) - before
        os.kill(watcher.pid, signal.SIGKILL)
        os.waitid(os.P_PID, watcher.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(FilterFailed, match="has lost its process; operators must restart"):
            run(passed(found))


def test_a_reservation_keeps_what_its_server_is_made_of(path: Path) -> None:
    assert MAY_CHANGE["reservation"].isdisjoint({"script", "details", "environment", "pty"})
    with filtering(path, "job['account'], job['time_limit_s'] = 'a', 600") as found:
        done = run(passed(found, SERVER, kind="reservation"))
        assert (done.specs[0].account, done.specs[0].time_limit_s) == ("a", 600)
        for body, why in (
            ("job['script'] = 'x'", "may not change"),
            ("job['details'] = {}; job['details']['disk'] = 'x'", "may not change"),
            ("job['time_limit_s'] = 10**6", "is not between"),
            ("job['name'] = '12'", "is not a valid name"),
            ("job['partitions'] = ['a', 'b']", "has one partition"),
        ):
            write(path, body)
            with pytest.raises(FilterFailed, match=why):
                run(passed(found, SERVER, kind="reservation"))


def test_an_allocation_keeps_the_script_that_holds_its_nodes(path: Path) -> None:
    with (
        filtering(path, "job['script'] = 'true'") as found,
        pytest.raises(FilterFailed, match="may not change"),
    ):
        run(passed(found, kind="allocation"))


def test_a_request_of_many_jobs_is_one_call_of_the_process(path: Path) -> None:
    body = "import os; request.warn(str(os.getpid())); job['comment'] = job['name']"
    specs = [JobSpec(script="", work_dir="/", name=f"j{n}") for n in range(3000)]
    with filtering(path, body) as found:
        done = run(passed(found, *specs))
    assert [spec.comment for spec in done.specs] == [spec.name for spec in specs]
    assert len(set(done.warnings)) == 1


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def submit(:", "ended with SyntaxError"),
        ("import no_such_module", "ended with ModuleNotFoundError"),
        ("x = 1", "ended with LookupError"),
    ],
)
def test_a_filter_that_cannot_be_loaded_is_reported_at_the_start(
    path: Path, source: str, why: str
) -> None:
    with filtering(path, "pass") as found:
        run(found.check())
        path.write_text(source)
        with pytest.raises(OdcError, match=why) as refused:
            run(found.check())
    assert "It printed: " in (refused.value.hint or "")


# -- settings -------------------------------------------------------------------------------------


def test_the_setting_names_a_file_or_a_module(path: Path) -> None:
    path.write_text("")

    def target(text: str) -> Target | None:
        return read_submit_filter({"ODC_SUBMIT_FILTER": text}, local=True).submit_filter

    for text, file, module, function in (
        (str(path), str(path), None, "submit"),
        (f"{path}:check", str(path), None, "check"),
        ("site.rules:check", None, "site.rules", "check"),
    ):
        found = target(text)
        assert found is not None
        assert (found.file, found.module, found.function) == (file, module, function)
    for text, why in (
        ("rules", "neither an absolute path nor a module"),
        ("a/b.py", "is not an absolute path"),
        (f"{path}.none", "No such file"),
        (f"{path}:not-a-name", "is not the name of a function"),
        ("a-b:c", "neither an absolute path nor a module"),
    ):
        with pytest.raises(BadRequest, match=why):
            target(text)
    with pytest.raises(BadRequest, match="has no effect without a submit filter"):
        read_submit_filter({"ODC_SUBMIT_FILTER_FAILURE": "accept"}, local=True)


def test_a_filter_that_others_can_change_does_not_run(path: Path) -> None:
    path.write_text("def submit(job, request): pass\n")
    path.chmod(0o666)
    with pytest.raises(BadRequest, match="is writable by its group or by others"):
        read_submit_filter({"ODC_SUBMIT_FILTER": str(path)}, local=True)
    process = FilterProcess(Target(file=str(path), owners=frozenset({0, os.geteuid()})))
    found = SubmitFilter(process, limit=timedelta(seconds=LIMIT_S), accept_on_failure=False)
    with pytest.raises(FilterFailed, match="ended with PermissionError"):
        run(passed(found))
    process.close()
    os.wait()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


def test_the_documented_filter_does_what_the_page_says(path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "operating" / "hooks.md"
    (source,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    small = JobSpec(script="", work_dir="/")
    long = JobSpec(script="", work_dir="/", time_limit_s=86_400)
    with filtering(path, "pass") as found:
        path.write_text(source)
        with pytest.raises(SubmitRejected, match="jobs with GPUs need an account"):
            run(passed(found))
        assert run(passed(found, small)).specs[0].partitions == ["cpu"]
        done = run(passed(found, long, kind="allocation"))
        assert done.specs[0].time_limit_s == 4 * 3600
        assert len(done.warnings) == 1
