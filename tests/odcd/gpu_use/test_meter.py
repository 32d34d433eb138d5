"""The source of GPU usage, by the daemon's settings and the machine's hardware."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import BadRequest, LeadershipLost
from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.meter import GpuUse
from odcd.gpu_use.nvml import Device, Reading
from odcd.gpu_use.settings import GpuUseSettings, read_gpu_use
from odcd.metrics import Metrics
from odcd.stores.gpu_use import GpuUseStore
from tests.support.builders.gpus import GpuQueue
from tests.support.builders.prometheus_past import Scraped, make_blocks
from tests.support.fakes.dcgm import Gpu
from tests.support.harness.database import Sql
from tests.support.harness.prometheus import Prometheus, needs_prometheus

PATIENCE_S = 60


class Cards:
    """NVML with this many GPUs, of two types."""

    def __init__(self, *models: str, hangs: bool = False) -> None:
        self.models = models
        self.hangs = threading.Event()
        if not hangs:
            self.hangs.set()

    def devices(self) -> list[Device]:
        self.hangs.wait(2 * PATIENCE_S)
        return [
            Device(index=index, uuid=f"GPU-{index}", model=model)
            for index, model in enumerate(self.models)
        ]

    def read(self, index: int) -> Reading:
        raise AssertionError("no job holds one")


class Telling(GpuUseStore):
    """Signals that the source of usage has been set."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.source_set = False

    async def set_meter(self, *args: Any) -> None:
        await super().set_meter(*args)
        self.source_set = True


def files_in(folder: Path) -> dict[str, str]:
    """The final files: one that is being written has another name first."""
    return {path.name: path.read_text() for path in folder.glob("[!.]*")}


def meter_for(
    url: str, settings: GpuUseSettings, so: Callable[[], object] = lambda: True, *,
    pods: bool = False, cards: Cards | None = None,
) -> Any:  # fmt: skip
    """The database's answer once the source is set."""

    async def work() -> None:
        async with asyncio.timeout(PATIENCE_S), Database(url, size=3) as database:
            store = Telling(database)
            meter = GpuUse(
                0, store, SystemClock(), settings,
                namespaces=Namespaces() if pods else None, every=timedelta(seconds=30),
                nvml=cards or Cards(),
            )  # fmt: skip
            running = asyncio.create_task(meter.run())
            try:
                while not running.done():
                    if store.source_set and await asyncio.to_thread(so):
                        return
                    await asyncio.wait([running], timeout=0.02)
                running.result()
            finally:
                running.cancel()
                await asyncio.wait([running])

    asyncio.run(work())
    with Sql(url) as sql:
        return sql.row("select source, idle_ratio, idle_after_s from odc.gpu_meter")


def test_without_prometheus_and_gpus_there_is_no_source(database_url: str) -> None:
    settings = GpuUseSettings(idle_percent=10, idle_after=timedelta(minutes=30))
    meter = meter_for(database_url, settings)
    assert meter == {"source": None, "idle_ratio": 0.1, "idle_after_s": 1800}
    assert meter_for(database_url, settings, pods=True)["source"] is None


def test_unsettled_usage_of_another_source_waits_for_that_source(database_url: str) -> None:
    now = datetime.now(UTC)
    owed: list[int] = []
    for source, ago in (("prometheus", 1), ("prometheus", 20), ("nvml", 1)):
        with Sql(database_url) as sql:
            queue = GpuQueue(sql, source, now=now - timedelta(days=ago))
            job = queue.run(gpus_per_node=1)
            queue.move(3600)
            queue.end(job)
        owed.append(job)

    with Sql(database_url) as sql:
        unsettled = (
            "select from odc.gpu_use where stored_at is null and coalesce(again_at, $1) <= $1"
        )
        meter_for(database_url, GpuUseSettings(), lambda: not sql.rows(unsettled, now))
        rows = sql.rows("select stored_at, gave_up, again_at from odc.gpu_use order by job_id")
    assert [row["stored_at"] is None for row in rows] == [True, False, False]
    assert rows[0]["again_at"] > now
    assert rows[1]["gave_up"] == "Prometheus was not reached in the 15 days it keeps"


def test_a_machine_with_gpus_uses_nvml_and_writes_files_by_gpu_index(
    database_url: str, tmp_path: Path
) -> None:
    """Of two types the more frequent one is offered: the first GPU of jobs is NVML's second."""
    cards = Cards("NVIDIA T1000", "NVIDIA H100 PCIe", "NVIDIA H100 PCIe")
    with Sql(database_url) as sql:
        job = GpuQueue(sql, None).run(gpus_per_node=1)
        sql.execute("update odc.running set running_at = null")
    settings = GpuUseSettings(jobs_dir=tmp_path)
    expected = {"1": f"{job}\n", "2": ""}
    meter = meter_for(database_url, settings, lambda: files_in(tmp_path) == expected, cards=cards)
    assert meter["source"] == "nvml"
    assert {path.name for path in tmp_path.iterdir()} == set(expected)


@needs_prometheus
def test_on_kubernetes_usage_comes_from_prometheus(database_url: str, tmp_path: Path) -> None:
    now = datetime.fromtimestamp(int(time.time()), UTC)
    with Sql(database_url) as sql:
        queue = GpuQueue(sql, now=now - timedelta(seconds=4000))
        job = queue.run(gpus_per_node=1)
        queue.move(3600)
        queue.end(job)
    server = Prometheus(tmp_path / "prometheus")
    card = Gpu(index=0, node="gpu-1", namespace="gpu-batch", pod=f"odc-{job}-1-0", util=75)
    begin_s = (now - timedelta(seconds=4000)).timestamp()
    make_blocks(
        server.data, [Scraped(cards_at=lambda _: [card], begin_s=begin_s, end_s=begin_s + 3600)]
    )
    with server, Sql(database_url) as sql:
        settings = GpuUseSettings(prometheus_url=server.url)
        stored = "select from odc.gpu_use where stored_at is not null"
        meter = meter_for(database_url, settings, lambda: sql.rows(stored), pods=True)
        assert meter["source"] == "prometheus"
        use = sql.row("select * from odc.gpu_use")
    assert (use["job_id"], use["busy_gpu_s"]) == (job, pytest.approx(2700, rel=0.01))


def test_a_failure_of_the_meter_stops_no_other_loop(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def fail(*_: object) -> None:
        raise LookupError("unknown encoding")

    monkeypatch.setattr("odcd.gpu_use.jobs_dir.texts_of", fail)
    settings = GpuUseSettings(jobs_dir=tmp_path)
    meter_for(database_url, settings, lambda: "gpu_use.failed" in caplog.text)
    with Sql(database_url) as sql:
        sql.execute("update odc.term set term = 7")
    with pytest.raises(BaseExceptionGroup) as lost:
        meter_for(database_url, settings, lambda: False)
    assert lost.value.subgroup(LeadershipLost)


def test_a_driver_that_hangs_at_the_start_blocks_nothing_and_is_retried(
    database_url: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    with Sql(database_url) as sql:
        queue = GpuQueue(sql, "nvml", now=now - timedelta(hours=1))
        over = queue.run(gpus_per_node=1)
        queue.move(60)
        queue.end(over)
        queue.move(3500)
        job = queue.run(gpus_per_node=1)
        sql.execute("update odc.running set running_at = null")
    cards = Cards("NVIDIA T1000", "NVIDIA H100 PCIe", "NVIDIA H100 PCIe", hangs=True)
    metrics = Metrics()

    async def until(what: Callable[[], bool]) -> None:
        while not what():
            await asyncio.sleep(0.01)

    async def work() -> None:
        async with asyncio.timeout(PATIENCE_S), Database(database_url, size=3) as database:
            meter = GpuUse(
                0, GpuUseStore(database), SystemClock(), GpuUseSettings(jobs_dir=tmp_path),
                namespaces=None, every=timedelta(seconds=30), nvml=cards,
                nvml_calls=metrics.backend("nvml"), devices_s=0.1, retry_s=0.05,
            )  # fmt: skip
            running = asyncio.create_task(meter.run())
            await until(lambda: files_in(tmp_path) == {"0": f"{job}\n"})
            while not await database.fetchval(
                "select stored_at from odc.gpu_use where job_id = $1", over
            ):
                await asyncio.sleep(0.01)
            cards.hangs.set()
            await until(lambda: files_in(tmp_path) == {"0": "", "1": f"{job}\n", "2": ""})
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(work())
    labels = {"backend": "nvml", "operation": "devices"}
    assert metrics.registry.get_sample_value("odcd_backend_errors_total", labels)


# -- settings ------------------------------------------------------------------------------------


def test_empty_settings_count_as_not_set() -> None:
    environment = {"ODC_PROMETHEUS_URL": "", "ODC_PROMETHEUS_MATCH": "", "ODC_SCRAPE_S": ""}
    assert read_gpu_use(environment, one_machine=False) == GpuUseSettings()


def test_settings_are_read(tmp_path: Path) -> None:
    read = read_gpu_use(
        {
            "ODC_PROMETHEUS_URL": "https://prometheus.example/x",
            "ODC_PROMETHEUS_TOKEN_FILE": str(tmp_path / "token"),
            "ODC_PROMETHEUS_MATCH": "cluster=a, region=eu-1", "ODC_SCRAPE_S": "15",
            "ODC_PROMETHEUS_KEEPS_S": str(90 * 86_400), "ODC_IDLE_GPU_PERCENT": "2.5",
            "ODC_IDLE_GPU_S": "3600",
        },
        one_machine=False,
    )  # fmt: skip
    assert read.prometheus_match == (("cluster", "a"), ("region", "eu-1"))
    assert (read.scrape, read.kept) == (timedelta(seconds=15), timedelta(days=90))
    assert (read.idle_percent, read.idle_after) == (2.5, timedelta(hours=1))
    assert read.prometheus_token == tmp_path / "token"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ODC_PROMETHEUS_URL", "prometheus:9090"), ("ODC_PROMETHEUS_MATCH", 'a="b"'),
        ("ODC_PROMETHEUS_MATCH", "a"), ("ODC_IDLE_GPU_PERCENT", "101"),
        ("ODC_IDLE_GPU_PERCENT", "few"), ("ODC_IDLE_GPU_S", "0"), ("ODC_SCRAPE_S", "-1"),
        ("ODC_DCGM_JOBS_DIR", "/x"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(name: str, text: str) -> None:
    with pytest.raises(BadRequest, match=name):
        read_gpu_use({name: text}, one_machine=False)


def test_on_one_machine_prometheus_needs_the_exporters_files() -> None:
    url = {"ODC_PROMETHEUS_URL": "http://localhost:9090"}
    with pytest.raises(BadRequest, match="ODC_DCGM_JOBS_DIR"):
        read_gpu_use(url, one_machine=True)
    read = read_gpu_use({**url, "ODC_DCGM_JOBS_DIR": "/run/odc/jobs"}, one_machine=True)
    assert read.jobs_dir == Path("/run/odc/jobs")
