"""NVML's readings of this machine's GPUs, added up. NVIDIA's library itself needs a driver, so a
substitute replaces it; everything above it is real."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.gpu_use import nvml as nvml_module
from odcd.gpu_use.apart import Apart, Hangs
from odcd.gpu_use.ended import EndedUse
from odcd.gpu_use.nvml import Device, NvmlDown, Process, PyNvml, Reading
from odcd.gpu_use.queries import Labels
from odcd.gpu_use.sampler import Sampler, cgroup_of
from odcd.gpu_use.sums import Sums, own_memory
from odcd.metrics import Metrics
from odcd.stores.gpu_use import GpuUseStore
from tests.support.builders.gpus import GpuQueue
from tests.support.fakes.clock import VirtualClock
from tests.support.fakes.nvml import Card, FakeLibrary
from tests.support.harness.database import Sql

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = Device(index=3, uuid="GPU-a", model="NVIDIA H100")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    library = FakeLibrary(*(Card(f"GPU-{n}", energy_mj=1000 * n) for n in range(8)))
    monkeypatch.setattr(nvml_module, "pynvml", library)
    return library


def reading(ratio: float | None = 0.5, **fields: object) -> Reading:
    figures = {"mem_used_mib": 100, "power_w": 200.0, "energy_mj": None, **fields}
    return Reading(ratio=ratio, **figures)  # type: ignore[arg-type]


def test_nvml_readings_are_parsed(library: FakeLibrary) -> None:
    nvml = PyNvml()
    assert nvml.devices()[1] == Device(index=1, uuid="GPU-1", model="NVIDIA H100 80GB HBM3")
    library.cards[1].percent = 37
    library.cards[1].processes = [(7, 300), (8, None)]
    assert nvml.read(1) == Reading(
        ratio=0.37, mem_used_mib=500, power_w=100.0, energy_mj=1000,
        processes=(Process(pid=7, mem_mib=300), Process(pid=8, mem_mib=None)),
    )  # fmt: skip
    assert library.begun == 1


def test_values_that_a_card_does_not_report_are_unknown(library: FakeLibrary) -> None:
    library.cards[0].lacks = frozenset({"utilization", "power", "energy", "processes", "memory_v2"})
    assert PyNvml().read(0) == Reading(ratio=None, mem_used_mib=500, power_w=None, energy_mj=None)
    library.cards[0].lacks |= {"memory"}
    assert PyNvml().read(0).mem_used_mib is None


def test_a_missing_or_reloaded_driver_is_handled(library: FakeLibrary) -> None:
    library.down = True
    nvml = PyNvml()
    assert nvml.devices() == []
    with pytest.raises(NvmlDown, match="GPU 0"):
        nvml.read(0)
    library.down = False
    assert nvml.read(0).ratio == 0
    library.begun = 0
    with pytest.raises(NvmlDown):
        nvml.read(0)
    assert nvml.read(0).ratio == 0


def test_a_hanging_driver_blocks_no_caller(library: FakeLibrary) -> None:
    library.hangs.clear()

    async def work() -> None:
        apart = Apart(0.1)
        nvml = PyNvml()
        with pytest.raises(Hangs, match="within"):
            await apart.run(nvml.devices)
        with pytest.raises(Hangs, match="last call"):
            await apart.run(nvml.devices)
        library.hangs.set()
        async with asyncio.timeout(60):
            while True:
                await SystemClock().sleep(0.02)
                with suppress(Hangs):
                    assert len(await apart.run(nvml.devices)) == 8
                    return

    asyncio.run(work())


def test_errors_of_a_call_are_raised() -> None:
    async def work() -> None:
        with pytest.raises(ZeroDivisionError):
            await Apart(60).run(lambda: 1 // 0)

    asyncio.run(work())


@given(
    samples=st.lists(st.tuples(st.floats(0.1, 14), st.floats(0, 1)), min_size=1, max_size=40),
    flushes=st.sets(st.integers(0, 40)),
)
def test_parts_add_up_to_the_whole(samples: list[tuple[float, float]], flushes: set[int]) -> None:
    """However often they are stored: the sampled time is the time that passed, and parts follow one
    another."""
    sums = Sums(15)
    passed_s = 0.0
    covered_s = busy_s = energy_j = 0.0
    until = NOW
    sums.add((1, 1), 0, GPU, 1, reading(), None, passed_s, NOW)
    for n, (step_s, ratio) in enumerate(samples):
        passed_s += step_s
        now = NOW + timedelta(seconds=passed_s)
        sums.add((1, 1), 0, GPU, 1, reading(ratio), None, passed_s, now)
        if n in flushes or n == len(samples) - 1:
            part, _ = sums.take((1, 1), over=False)
            assert part.since == until
            until = part.until
            covered_s += part.covered_s
            busy_s += part.busy_gpu_s
            energy_j += part.energy_j or 0
    assert covered_s == pytest.approx(passed_s)
    assert busy_s == pytest.approx(sum(step_s * ratio for step_s, ratio in samples))
    assert energy_j == pytest.approx(200 * passed_s)


def test_gaps_are_not_counted_and_energy_comes_from_the_counter() -> None:
    sums = Sums(15)
    for at_s, energy_mj in ((0, 0), (10, 5_000_000), (100, 9_000_000), (110, 1000), (120, 2000)):
        sums.add((1, 1), 0, GPU, 2, reading(1.0, energy_mj=energy_mj), 70, at_s, NOW)
    part, [seen] = sums.take((1, 1), over=True)
    # One of two GPUs was read, for 30 s. After a reset, the counter has the energy since the reset.
    assert (part.covered_s, part.busy_gpu_s, part.mem_peak_mib) == (15, 30, 70)
    assert part.energy_j == 5000 + 2000 + 1
    assert (seen.mean_ratio, seen.peak_ratio, seen.index) == (1, 1, 3)
    assert sums.keys() == set()


def test_a_gpu_without_a_usage_reading_does_not_count_as_idle() -> None:
    sums = Sums(15)
    sums.add((1, 1), 0, GPU, 1, reading(0.0), None, 0, NOW)
    sums.add((1, 1), 0, GPU, 1, reading(None), None, 5, NOW)
    sums.add((1, 1), 0, GPU, 1, reading(0.0), None, 10, NOW)
    part, [seen] = sums.take((1, 1), over=False)
    assert (part.covered_s, seen.peak_ratio) == (5, 1.0)


@pytest.mark.parametrize(
    ("own", "mib"),
    [([], 100), ([(1, 30), (2, 40)], 70), ([(1, 30), (2, None)], 100)],
)
def test_memory_is_that_of_the_jobs_processes(own: list[tuple[int, int | None]], mib: int) -> None:
    assert own_memory(reading(), [Process(pid=p, mem_mib=m) for p, m in own]) == mib


def test_a_processs_cgroup_has_the_name_of_its_member(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("1:name=systemd:/x\n0::/odc-1a2b/12-1-0\n")
    assert cgroup_of(7, tmp_path) == "12-1-0"
    assert cgroup_of(8, tmp_path) == ""
    assert isinstance(cgroup_of(os.getpid()), str)


def test_a_job_is_sampled_written_and_closed(library: FakeLibrary, database_url: str) -> None:
    """Two GPUs of eight, for three minutes; then the job ends, and its samples are stored."""
    clock = VirtualClock(NOW)
    with Sql(database_url) as sql:
        queue = GpuQueue(sql, "nvml", now=NOW)
        queue.run(gpus_per_node=3)
        job = queue.run(gpus_per_node=2)
    for card in library.cards[3:5]:
        card.percent = 50
    library.cards[3].processes = [(41, 4000), (42, 300)]

    def look_and_end() -> Any:
        with Sql(database_url) as sql:
            queue = GpuQueue(sql, "nvml", now=NOW + timedelta(seconds=180))
            now = queue.reported_use(job)["now"]
            queue.end(job)
            return now

    async def work(store: GpuUseStore) -> None:
        sampler = Sampler(
            0, store, PyNvml(), PyNvml().devices(), clock, idle_ratio=0.05,
            cgroup_of={41: f"{job}-1-0", 42: "user.slice"}.__getitem__, read_s=60,
        )  # fmt: skip
        for n in range(37):
            if n:
                clock.move_to(NOW + timedelta(seconds=5 * n))
            for card in library.cards:
                card.energy_mj += 500_000
            assert await sampler.sample_once() == set()
            if n % 12 == 0:
                await sampler.write(sampler._sums.keys(), set())
        now = await asyncio.to_thread(look_and_end)
        assert (now["util_ratio"], now["mem_used_mib"]) == (0.5, 4500)
        assert await sampler.sample_once() == {(job, 1)}
        await sampler.write({(job, 1)}, {(job, 1)})
        clock.move_to(NOW + timedelta(seconds=300))
        ended = EndedUse(
            0, store, None, Labels(None), clock, scrape=timedelta(seconds=30),
            kept=timedelta(days=15),
        )  # fmt: skip
        assert await ended.settle_once() == 1

    run(database_url, work)
    with Sql(database_url) as sql:
        use = sql.row("select * from odc.gpu_use where job_id = $1", job)
    assert (use["held_s"], use["covered_s"], use["busy_gpu_s"]) == (180, 180, 180)
    assert (use["mem_peak_mib"], use["gpu_uuids"]) == (4000, ["GPU-3", "GPU-4"])
    assert use["energy_j"] == 2 * 36 * 500
    assert (use["source"], use["gave_up"]) == ("nvml", None)


def test_a_hanging_gpu_loses_no_samples_of_the_others(
    library: FakeLibrary, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock(NOW)
    with Sql(database_url) as sql:
        job = GpuQueue(sql, "nvml", now=NOW).run(gpus_per_node=8)
    metrics = Metrics()
    devices = PyNvml().devices()
    library.cards[3].answers = threading.Event()

    def errors() -> float:
        labels = {"backend": "nvml", "operation": "read"}
        return metrics.registry.get_sample_value("odcd_backend_errors_total", labels) or 0

    async def work(store: GpuUseStore) -> None:
        sampler = Sampler(
            0, store, PyNvml(), devices, clock, idle_ratio=0.05, cgroup_of=lambda _: "",
            calls=metrics.backend("nvml"), read_s=60,
        )  # fmt: skip
        sampler._aparts[3] = Apart(0.1)
        for n in range(13):
            if n:
                clock.move_to(NOW + timedelta(seconds=5 * n))
            await sampler.sample_once()
        await sampler.write(sampler._sums.keys(), set())
        assert errors() == 13
        assert library.cards[3].answers is not None
        library.cards[3].answers.set()
        # The call returns later.
        before = -1.0
        while errors() > before:
            before = errors()
            await sampler.sample_once()

    run(database_url, work)
    with Sql(database_url) as sql:
        use = sql.row("select * from odc.gpu_use where job_id = $1", job)
    assert (use["covered_s"], len(use["gpu_uuids"])) == (60 * 7 / 8, 7)
    records = [r for r in caplog.records if r.message == "gpu_use.nvml_hangs"]
    assert [record.__dict__["gpu"] for record in records] == [3]


def run(url: str, work: Callable[[GpuUseStore], Awaitable[None]]) -> None:
    async def connected() -> None:
        async with Database(url, size=2) as database:
            await work(GpuUseStore(database))

    asyncio.run(connected())
