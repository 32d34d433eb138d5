"""Jobs with extreme names, patterns, scripts and arguments: the daemon survives, other users' jobs
start, and the messages to the runner stay bounded."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from odcd.errors import RunnerDown
from odcd.executor import link as links
from odcd.executor import starts
from odcd.executor.link import Link
from odcd.executor.wire import Encoder
from odcd.runner import protocol
from odcd.runner.starts import Starts
from tests.attack.front import FORKS
from tests.attack.strangers import ALICE, BOB, as_uid, over_socket
from tests.odcd.executor.test_executor_local import an_executor, run
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import make_home, remove_home
from tests.support.harness.runner import RunnerHome, forked_runner
from tests.support.harness.users import needs_root

pytestmark = pytest.mark.long

MIB = 1024 * 1024
NODE = "n".ljust(60, "o")
TASKS = 128
BURST = {"script": "#!/bin/true\n", "array": f"0-{TASKS - 1}", "ntasks": 1, "mem_per_node_mib": 1}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RunnerHome]:
    home = RunnerHome(tmp_path / "runner")
    yield home
    home.end()


@pytest.fixture
def odc() -> Iterator[Odc]:
    with new_odc() as odc, odc.serving("up", "--node", f"{NODE}=h100:8x256"):
        yield odc


@pytest.fixture
def folder(odc: Odc) -> Path:
    folder = odc.work / "ann"
    folder.mkdir()
    os.chown(folder, ALICE, ALICE)
    return folder


def ask(odc: Odc, uid: int, method: str, target: str, body: object = None) -> Any:
    return over_socket(odc.home / "odcd.sock", uid, method, target, body)


def states(odc: Odc, job_id: int) -> set[str]:
    jobs = ask(odc, ALICE, "GET", f"/v1/jobs/{job_id}")["jobs"]
    return {job["state"] for job in jobs}


def works_for_bob(odc: Odc) -> None:
    job = {"script": "#!/bin/true\n", "work_dir": "/tmp", "stdout": "/dev/null"}
    job_id = ask(odc, BOB, "POST", "/v1/jobs", job)["id"]
    wait(lambda: states(odc, job_id) == {"COMPLETED"}, odc.log)


# -- with a daemon ------------------------------------------------------------------------------


@needs_root
@pytest.mark.long
def test_an_array_with_huge_output_paths_is_refused_and_others_run_on(
    odc: Odc, folder: Path
) -> None:
    """Before: 64 tasks had paths of 410,000 characters, and their start ended the daemon."""
    pid = odc.pid
    job = {**BURST, "work_dir": str(folder), "name": "\U0001f600" * 200}
    problem = ask(
        odc, ALICE, "POST", "/v1/jobs", {**job, "stdout": "%x" * 2048, "stderr": "%x" * 2047}
    )
    works_for_bob(odc)
    assert odc.pid == pid
    assert problem["code"] == "OD010"
    assert "more than 4095 bytes" in problem["detail"]
    assert problem["hint"]


@needs_root
@pytest.mark.long
def test_jobs_with_too_long_expanded_paths_fail_once_with_the_reason(
    odc: Odc, folder: Path
) -> None:
    pid = odc.pid
    job = {**BURST, "work_dir": str(folder), "stdout": "%N" * 2048, "stderr": "x" + "%N" * 2047}
    job_id = ask(odc, ALICE, "POST", "/v1/jobs", job)["id"]
    works_for_bob(odc)
    wait(lambda: states(odc, job_id) == {"FAILED"}, odc.log)
    shown = ask(odc, ALICE, "GET", f"/v1/jobs/{job_id}_7")["jobs"][0]
    assert "more than 4095 bytes" in json.dumps(shown)
    assert "more than 4095 bytes" in json.dumps(ask(odc, ALICE, "GET", f"/v1/jobs/{job_id}_7/logs"))
    assert len(json.dumps(shown)) < 20_000
    assert odc.pid == pid


@needs_root
@pytest.mark.long
def test_many_large_scripts_released_at_once_all_start(odc: Odc, folder: Path) -> None:
    """Before: texts of 12 MiB each, as escapes, were one message; the runner closed on it."""
    pid, ids = odc.pid, list[str]()
    padding = "é" * (2 * MIB - 100)
    for number in range(64):
        job = {"script": f"#!/bin/true\n{number}\n{padding}", "work_dir": str(folder), "ntasks": 1,
               "mem_per_node_mib": 1, "stdout": "/dev/null", "hold": True}  # fmt: skip
        ids.append(str(ask(odc, ALICE, "POST", "/v1/jobs", job)["id"]))
    ask(odc, ALICE, "POST", "/v1/jobs/release", {"ids": ids})
    works_for_bob(odc)
    for job_id in ids:
        wait(lambda job_id=job_id: states(odc, int(job_id)) == {"COMPLETED"}, odc.log)
    assert odc.pid == pid


@needs_root
@pytest.mark.long
def test_patterns_of_output_that_odc_keeps_do_not_matter(odc: Odc, folder: Path) -> None:
    job = {"script": "#!/bin/sh\necho kept\n", "work_dir": str(folder), "stdout": "%N" * 2048,
           "spool_output": True}  # fmt: skip
    job_id = ask(odc, ALICE, "POST", "/v1/jobs", job)["id"]
    wait(lambda: states(odc, job_id) == {"COMPLETED"}, odc.log)


# -- messages to a real runner ----------------------------------------------------------------


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every request that was made."""
    found: list[int] = []
    make = links._request  # pyright: ignore[reportPrivateUsage]

    def request(*given: Any) -> bytes:
        made = make(*given)
        found.append(len(made))
        return made

    monkeypatch.setattr(links, "_request", request)
    return found


def quiet(**changes: Any) -> Any:
    return a_dispatch_of("#!/bin/sh\n", stdout="/dev/null", **changes)


def test_large_starts_go_in_bounded_messages(home: RunnerHome, sizes: list[int]) -> None:
    texts: dict[str, str] = {}
    dispatches: list[Any] = []
    for job in range(1, 25):
        # Too many arguments for Linux, which says so of each; six bytes a character.
        script = f"#!/bin/sh\n#{job}".ljust(MIB, "é")
        dispatch, its = a_dispatch_of(
            script, job_id=job, stdout="/dev/null", args=("\x01" * MIB,)
        )  # fmt: skip
        dispatches.append(dispatch)
        texts |= its

    async def body(watched: Any) -> None:
        await watched.executor.start(dispatches, texts)
        for dispatch in dispatches:
            end = await watched.end_of(dispatch.job_id)
            assert (end.kind, end.detail) == (
                "start_failed", "cannot execute the script: Argument list too long"
            )  # fmt: skip

    run(an_executor(home), body)
    assert max(sizes) <= starts.MESSAGE_BYTES + 1000
    assert sum(sizes) > 8 * starts.MESSAGE_BYTES


def test_the_runner_keeps_the_texts_of_queued_jobs(home: RunnerHome) -> None:
    """Together they are larger than the runner's cache of unused texts."""
    pairs = [
        a_dispatch_of(
            f"#!/bin/true\n#{job}".ljust(4 * MIB - 9, "x"),
            json.dumps({f"V{n}": str(job) * 50_000 for n in range(4)}),
            job_id=job, stdout="/dev/null",
        )
        for job in range(1, 31)
    ]  # fmt: skip

    async def body(watched: Any) -> None:
        texts = {digest: text for _, its in pairs for digest, text in its.items()}
        await watched.executor.start([dispatch for dispatch, _ in pairs], texts)
        ends = [await watched.end_of(job) for job in range(1, 31)]
        assert [(end.kind, end.exit_code) for end in ends] == [("exited", 0)] * 30, ends

    run(an_executor(home), body)


def test_a_job_that_is_too_large_alone_fails_and_the_others_run(
    home: RunnerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "MAX_DISPATCH_BYTES", 100_000)
    (good, texts), (bad, _) = quiet(job_id=1), quiet(job_id=2, args=("x" * 100_000,))
    gang, _ = quiet(job_id=3, args=("x" * 100_000,), members=(a_member(0), a_member(1)))

    async def body(watched: Any) -> None:
        await watched.executor.start([bad, good, gang], texts)
        assert (await watched.end_of(1)).exit_code == 0
        for job, rank in ((2, 0), (3, 0), (3, 1)):
            end = await watched.end_of(job, rank)
            assert (end.kind, end.cause) == ("start_failed", "unknown")
            assert "more than 100000" in (end.detail or "")

    run(an_executor(home), body)


def test_a_job_that_the_runner_refuses_does_not_stop_the_others(
    home: RunnerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    (good, texts), (bad, _), (alone, _) = (quiet(job_id=job) for job in (1, 2, 3))
    dispatch_of = Encoder.dispatch

    def malformed(encoder: Encoder, d: Any, *given: Any) -> dict[str, Any]:
        made = dispatch_of(encoder, d, *given)
        return made if d is good else {**made, "ends_at": "nonsense"}

    monkeypatch.setattr(Encoder, "dispatch", malformed)

    async def body(watched: Any) -> None:
        await watched.executor.start([bad, good], texts)
        await watched.executor.start([alone], texts)
        assert (await watched.end_of(1)).exit_code == 0
        for job in (2, 3):
            end = await watched.end_of(job)
            assert (end.kind, end.cause) == ("start_failed", "unknown")
            assert "malformed" in (end.detail or "")

    run(an_executor(home), body)


def ignore_refusals() -> None:
    refusal = Starts._refusal  # pyright: ignore[reportPrivateUsage]

    def without(self: Starts, dispatch: dict[str, Any], why: str | None) -> Any:
        return refusal(self, {**dispatch, "refusal": None}, why)

    Starts._refusal = without  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def test_an_earlier_runner_reports_the_reason_too(home: RunnerHome) -> None:
    home.run_dir.mkdir()
    forked_runner(home.run_dir, change=ignore_refusals)
    dispatch, texts = a_dispatch_of(stdout="%x" * 2048, name="n" * 200)

    async def body(watched: Any) -> None:
        await watched.executor.start([dispatch], texts)
        end = await watched.end_of(1)
        assert (end.kind, end.cause) == ("start_failed", "unknown")
        assert "more than 4095 bytes" in (end.detail or "")

    run(an_executor(home), body)


def test_a_closed_connection_is_a_runner_that_is_down(home: RunnerHome) -> None:
    """Before: a RuntimeError of uvloop, which ended the daemon."""
    home.launch()

    async def main() -> None:
        link = await Link.open(home.run_dir, 1)
        # Several wait for their turn; the first one notices that the runner is gone.
        first = asyncio.create_task(link.ask("list"))
        await first
        home.kill()
        requests = [asyncio.create_task(link.ask("list")) for _ in range(5)]
        done = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(one) for one in done] == [RunnerDown] * 5, done
        with pytest.raises(RunnerDown):
            await link.ask("list")

    # A process of its own: runners that later tests fork must not inherit this loop.
    process = FORKS.Process(target=lambda: uvloop.run(main()))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_a_cancelled_request_does_not_fail_those_of_others(home: RunnerHome) -> None:
    """Before: a client that closed its connection while odcd asked the runner about its job broke
    the connection over which jobs of all users start and end."""
    home.launch()

    async def main() -> None:
        link = await Link.open(home.run_dir, 1)
        for _ in range(20):
            left = asyncio.create_task(link.ask("list"))
            other = asyncio.create_task(link.ask("list"))
            for _ in range(3):
                await asyncio.sleep(0)
            left.cancel()
            assert "members" in await other
        assert not link.broken

    # A process of its own: runners that later tests fork must not inherit this loop.
    process = FORKS.Process(target=lambda: uvloop.run(main()))
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("text", ["é", "\U0001f600", "\ud83d", "\u2028", "\x00\x1f\x7f"])
def test_any_text_is_encoded_so_that_an_earlier_version_can_read_it(text: str) -> None:
    line = protocol.encode({"text": text})
    assert line.count(b"\n") == 1
    assert protocol.decode(line) == {"text": text}
    # The format of an earlier version.
    assert protocol.decode(json.dumps({"text": text}).encode()) == {"text": text}


# -- files of the kernel ----------------------------------------------------------------------

KERNELS = ("/proc/self/maps", "/proc/self/status", "/proc/self/mountinfo", "/sys/kernel/notes",
           "/proc/self/cwd/../proc/self/maps")  # fmt: skip


@needs_root
def test_output_replaced_by_a_link_to_the_kernels_files_is_not_read(home: RunnerHome) -> None:
    """Before: the layout of the memory of the runner's fork."""
    folder = make_home()
    os.chown(folder, ALICE, ALICE)
    path = folder / "out"
    home.launch()
    try:
        for target in KERNELS:
            as_uid(ALICE, lambda target=target: path.symlink_to(target))
            with pytest.raises(links.RunnerRefused, match="not a regular file"):
                links.open_output(
                    home.run_dir, {"uid": ALICE, "gid": ALICE, "path": str(path)}
                )  # fmt: skip
            path.unlink()
        path.write_text("mine")
        fd = links.open_output(home.run_dir, {"uid": ALICE, "gid": ALICE, "path": str(path)})
        assert os.read(fd, 10) == b"mine"
        os.close(fd)
    finally:
        remove_home(folder)


def test_a_job_gets_no_file_of_the_kernel_as_its_input(home: RunnerHome) -> None:
    dispatch, texts = a_dispatch_of("#!/bin/cat\n", stdin="/proc/self/maps", stdout="/dev/null")

    async def body(watched: Any) -> None:
        await watched.executor.start([dispatch], texts)
        end = await watched.end_of(1)
        assert (end.kind, end.cause) == ("start_failed", "unknown")
        assert "neither a regular file" in (end.detail or "")

    run(an_executor(home), body)
