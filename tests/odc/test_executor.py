"""Functions as jobs: results, exceptions, arrays, cancels, and clear errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, as_completed
from pathlib import Path

import pytest

from odc import (
    CallFailed,
    Client,
    FolderNotShared,
    JobExecutor,
    JobFailed,
    NotPicklable,
    OdcError,
    Unreachable,
)
from odc.ends import End
from odc.executor import _failure  # pyright: ignore[reportPrivateUsage]
from odcd.home.lock import holder
from tests.odc import functions
from tests.odc.conftest import NODES
from tests.support.harness.daemon import Odc, gone, kill, wait

WAIT_S = 60


@pytest.fixture
def executor(client: Client, tmp_path: Path) -> Iterator[JobExecutor]:
    made = JobExecutor(client, folder=tmp_path / "calls", time="5")
    yield made
    made.shutdown(cancel_futures=True)


def test_a_call_returns_its_value(client: Client, tmp_path: Path) -> None:
    with JobExecutor(client, folder=tmp_path) as executor:
        future = executor.submit(functions.add, 2, b=3)
        assert future.result(WAIT_S) == 5
        status = future.job.status()
        assert (status.name, status.state) == ("add", "COMPLETED")
    assert list(tmp_path.iterdir()) == []


def test_a_call_raises_its_exception_with_the_traceback_of_the_node(
    executor: JobExecutor,
) -> None:
    future = executor.submit(functions.divide, 1, 0)
    with pytest.raises(ZeroDivisionError) as raised:
        future.result(WAIT_S)
    assert "in divide" in "".join(traceback.format_exception(raised.value))
    assert future.job.wait(WAIT_S).state == "FAILED"
    with pytest.raises(CallFailed, match="Odd: strange"):
        executor.submit(functions.odd).result(WAIT_S)
    with pytest.raises(NotPicklable, match="its result of type lock cannot be pickled"):
        executor.submit(functions.lock).result(WAIT_S)


def test_map_is_one_array_and_keeps_the_order(executor: JobExecutor, client: Client) -> None:
    assert list(executor.map(functions.add, range(5), [10] * 5, timeout=WAIT_S)) == [
        10, 11, 12, 13, 14,
    ]  # fmt: skip
    futures = executor.submit_array(functions.divide, [(6, n) for n in range(5)], chunksize=2)
    assert len(list(as_completed(futures, WAIT_S))) == 5
    values = [future.exception() or future.result() for future in futures]
    assert values[1:] == [6, 3, 2, 1.5]
    assert isinstance(values[0], ZeroDivisionError)
    assert {str(future.job.id).partition("_")[2] for future in futures} == {"0", "1", "2"}
    assert list(executor.map(functions.add, [])) == []


def test_a_running_call_can_be_cancelled(executor: JobExecutor, odc: Odc) -> None:
    future = executor.submit(functions.until, str(odc.work / "never"))
    odc.wait_for(int(future.job.id), "RUNNING")
    assert future.running()
    assert future.cancel()
    assert future.cancelled()
    assert future.job.wait(WAIT_S).state == "CANCELLED"


def test_a_job_that_ends_without_a_result_is_explained(executor: JobExecutor) -> None:
    with pytest.raises(JobFailed, match="ended as FAILED with exit code 3") as failed:
        executor.submit(functions.end, 3).result(WAIT_S)
    assert failed.value.exit_code == 3


def test_an_interpreter_that_the_node_lacks_is_named(client: Client, tmp_path: Path) -> None:
    executor = JobExecutor(client, folder=tmp_path, python="/opt/none/python")
    with pytest.raises(JobFailed, match="has no interpreter /opt/none/python") as failed:
        executor.submit(functions.add, 1).result(WAIT_S)
    assert not isinstance(failed.value, FolderNotShared)
    by_name = JobExecutor(client, folder=tmp_path, python=Path(sys.executable).name, environment={
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    })  # fmt: skip
    assert by_name.submit(functions.add, 1, b=1).result(WAIT_S) == 2


def test_ctrl_c_leaves_the_block_while_the_calls_go_on(client: Client, tmp_path: Path) -> None:
    futures: list[Future[int]] = []

    def run() -> None:
        with JobExecutor(client, folder=tmp_path, hold=True) as executor:
            futures.append(executor.submit(functions.add, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        run()
    [job] = client.list_jobs(name="add", state="PENDING")
    note = f"odc: job {job.id} goes on; `odcctl cancel {job.id}` ends it"
    assert stopped.value.__notes__ == [note]
    assert not futures[0].done()
    assert list(tmp_path.iterdir()) != []
    client.cancel(job.id)


def test_ctrl_c_while_a_result_is_awaited_says_that_the_job_goes_on(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(future: object, timeout: float | None) -> None:
        raise KeyboardInterrupt

    future = executor.submit(functions.add, 1)
    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        future.result()
    assert f"job {future.job.id} goes on" in stopped.value.__notes__[0]


def test_a_function_that_cannot_be_pickled_is_refused_at_once(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not installed
    with pytest.raises(NotPicklable, match=r"function .*<lambda>.* cannot be pickled") as refused:
        executor.submit(lambda: 1)
    assert "cloudpickle" in str(refused.value)
    with pytest.raises(NotPicklable, match="an argument cannot be pickled"):
        executor.submit(functions.add, (n for n in ()))  # pyright: ignore[reportArgumentType]


def test_a_folder_that_the_node_does_not_see_is_named(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is missing where the job looks, as in another folder with the same path."""
    submit = client.submit

    def elsewhere(script: str, folder: str, token: str, *words: str, **options: object) -> object:
        return submit(script, folder, "another", *words, **options)  # pyright: ignore

    monkeypatch.setattr(client, "submit", elsewhere)
    executor = JobExecutor(client, folder=tmp_path)
    with pytest.raises(FolderNotShared, match="does not see the folder"):
        executor.submit(functions.add, 1).result(WAIT_S)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (End(job_id=7, state="FAILED", detail="cannot open /f/out: no such file"), "does not see"),
        (End(job_id=7, state="COMPLETED", exit_code=0), "is another one on its node"),
    ],
)
def test_a_folder_without_a_result_is_named(end: End, text: str) -> None:
    failure = _failure(end, Path("/f"), "python3")
    assert isinstance(failure, FolderNotShared)
    assert text in str(failure)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o2770])
def test_a_folder_that_others_can_change_is_refused(
    client: Client, tmp_path: Path, mode: int
) -> None:
    """Whoever replaces a result there runs code as its reader."""
    tmp_path.chmod(mode)
    with pytest.raises(OdcError, match="other users can replace files"):
        JobExecutor(client, folder=tmp_path).submit(functions.add, 1)


def test_a_daemon_that_restarts_loses_no_result(
    executor: JobExecutor, odc: Odc, tmp_path: Path
) -> None:
    flag = tmp_path / "go"
    futures = executor.submit_array(functions.until, [(str(flag),), ("/",)])
    futures[1].result(WAIT_S)
    pid = odc.pid
    assert kill(pid)
    wait(lambda: gone(pid) and holder(odc.home / "odcd.lock") is None, lambda: "it lives on")
    flag.touch()
    odc.up(*NODES)
    assert futures[0].result(WAIT_S) is None


def test_a_daemon_that_never_answered_is_reported_at_once(tmp_path: Path) -> None:
    nowhere = Client(str(tmp_path / "none.sock"))
    with pytest.raises(Unreachable):
        JobExecutor(nowhere, folder=tmp_path / "calls").submit(functions.add, 1)
    assert list((tmp_path / "calls").iterdir()) == []
    with pytest.raises(ValueError, match="array is not an option"):
        JobExecutor(nowhere, array="0-3")
