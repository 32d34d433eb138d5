"""The DCGM exporter's job files: which job has which GPU, whatever happened to daemon or files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.gpu_use.jobs_dir import JobsDir, texts_of, write
from odcd.gpu_use.nvml import Device
from odcd.records.gpu_use import AllocatedGpus
from odcd.stores.gpu_use import GpuUseStore
from tests.support.builders.gpus import GpuQueue
from tests.support.harness.daemon import wait
from tests.support.harness.database import Sql

PLACES = [Device(index=index, uuid=f"GPU-{index}", model="NVIDIA H100") for index in (0, 1, 3)]


def held(job_id: int, *bits: int) -> AllocatedGpus:
    return AllocatedGpus(job_id=job_id, attempt=1, rank=0, indexes=bits, running=True)


def files(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # a temporary file that is being written
            found[path.name] = path.read_text()
    return found


def test_files_are_named_by_nvmls_indexes() -> None:
    assert texts_of([held(7, 0, 2), held(5, 2)], PLACES) == {0: "7\n", 3: "5\n7\n"}
    assert texts_of([held(7, 0, 2)], []) == {0: "7\n", 2: "7\n"}


def test_files_get_their_contents_and_other_files_are_not_changed(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("4\n")
    (tmp_path / "5").write_text("4\n")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".0.new").write_text("half writ")
    assert write(tmp_path, {0: "7\n", 1: "", 3: ""}) == 4
    kept = (tmp_path / "0").stat()
    assert write(tmp_path, {0: "7\n", 1: "", 3: ""}) == 0
    assert (tmp_path / "0").stat().st_ino == kept.st_ino
    assert files(tmp_path) == {"0": "7\n", "1": "", "3": "", "5": "", "notes.txt": "mine"}


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """It is replaced: a reader that has the old file open reads that to its end."""
    write(tmp_path, {0: "1000001\n"})
    with (tmp_path / "0").open() as old:
        write(tmp_path, {0: "2000002\n"})
        assert old.read() == "1000001\n"


def test_files_follow_the_database(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A leader that takes over corrects what a killed one left; a folder that cannot be written
    to stops nothing."""
    folder = tmp_path / "jobs"
    with Sql(database_url) as sql:
        queue = GpuQueue(sql)
        job = queue.run(gpus_per_node=2)

        def end() -> None:
            with Sql(database_url) as other:
                late = GpuQueue(other)
                late.end(job)

        async def work() -> None:
            async with Database(database_url, size=2) as database:
                jobs_dir = JobsDir(
                    0, GpuUseStore(database), SystemClock(), folder, PLACES, timedelta(seconds=30)
                )
                await jobs_dir.write_once()
                await jobs_dir.write_once()
                assert caplog.text.count("gpu_use.no_job_files") == 1
                folder.mkdir()
                (folder / "3").write_text("999\n")
                running = asyncio.create_task(jobs_dir.run())
                await until({"0": f"{job}\n", "1": f"{job}\n", "3": ""})
                await asyncio.to_thread(end)
                jobs_dir.wake()
                await until({"0": "", "1": "", "3": ""})
                running.cancel()

        async def until(expected: dict[str, str]) -> None:
            await asyncio.to_thread(
                wait, lambda: files(folder) == expected or None, lambda: str(files(folder))
            )

        asyncio.run(work())
