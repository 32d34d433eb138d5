"""The queries to Prometheus, and the meaning of its answers. The real one is in
test_prometheus.py."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.prometheus import Sample
from odcd.gpu_use.queries import Labels, ask_ended, ratio_of, read_ended, read_live
from odcd.records.gpu_use import GpuKey, UnmeasuredAttempt, usage_by_job

END = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCRAPE = timedelta(seconds=30)
PODS = Labels(Namespaces())


def an_owed(held_s: float = 3600, gpus: int = 2) -> UnmeasuredAttempt:
    return UnmeasuredAttempt(
        job_id=7, attempt=1, gpus=gpus, running_at=END - timedelta(seconds=held_s), ended_at=END,
        covered_s=0, source="prometheus",
    )  # fmt: skip


def samples_of(gpu: str, **figures: float) -> list[Sample]:
    uuid, _, instance = gpu.partition("/")
    return [
        Sample(
            labels={
                "UUID": uuid, "odc_attempt": "7-1", "odc_figure": name,
                **({"GPU_I_ID": instance} if instance else {}),
            },
            value=value,
        )
        for name, value in figures.items()
    ]  # fmt: skip


def test_figures_of_gpus_add_up() -> None:
    one = an_owed()
    samples = [
        *samples_of("GPU-a", util=50, seen=240, memory=1000.5, energy=360_000_000, power=1),
        *samples_of("GPU-b", util=100, seen=120, memory=70_000, power=200),
    ]
    [found] = read_ended(samples, [one], SCRAPE)
    # 240 looks in an hour; b was seen for half of it, so its energy is what it drew then.
    assert found.covered_s == pytest.approx(2700)
    assert found.busy_gpu_s == pytest.approx(0.5 * 3600 + 1800)
    assert (found.mem_peak_mib, found.gpu_uuids) == (70_000, ["GPU-a", "GPU-b"])
    assert found.energy_j == pytest.approx(360_000 + 200 * 1800)


def test_slices_of_a_card_are_distinguished() -> None:
    samples = [
        *samples_of("GPU-a/1", engine=0.5, seen=240),
        *samples_of("GPU-a/2", engine=1, seen=240),
    ]
    [found] = read_ended(samples, [an_owed()], SCRAPE)
    assert (found.busy_gpu_s, found.gpu_uuids) == (pytest.approx(5400), ["GPU-a"])
    # All slices of the one card that it holds are its.
    assert read_ended(samples, [an_owed(gpus=1)], SCRAPE) == [replace(found, covered_s=3600)]


def test_impossible_values_are_ignored() -> None:
    blank = 9223372036854775794.0
    samples = samples_of(
        "GPU-a", util=blank, engine=0.25, seen=240, memory=blank, energy=blank, power=1
    )
    [found] = read_ended(samples, [an_owed(gpus=1)], SCRAPE)
    assert found.busy_gpu_s == pytest.approx(900)
    assert (found.mem_peak_mib, found.energy_j) == (None, pytest.approx(3600))
    [found] = read_ended(samples_of("GPU-a", util=blank, seen=240), [an_owed()], SCRAPE)
    assert (found.covered_s, found.busy_gpu_s, found.energy_j) == (0, 0, None)
    assert read_ended(samples_of("GPU-a", util=50, memory=3), [an_owed()], SCRAPE) == []


def test_a_gpu_of_an_earlier_attempt_is_not_counted() -> None:
    """An exporter that only names jobs: samples of the earlier GPU are near, or one is within the
    attempt."""
    own = samples_of("GPU-b", util=50, seen=230)
    for before in (samples_of("GPU-a", seen=4), samples_of("GPU-a", util=100, seen=5, energy=1e9)):
        [found] = read_ended([*before, *own], [an_owed(gpus=1)], SCRAPE)
        assert (found.gpu_uuids, found.busy_gpu_s) == (["GPU-b"], pytest.approx(0.5 * 3450))
    # Nothing else is known about an attempt that ran too briefly, and that is reported.
    assert read_ended(samples_of("GPU-a", seen=2), [an_owed(held_s=10)], SCRAPE) == []


@pytest.mark.parametrize(
    ("percent", "engine", "ratio"),
    [(50, None, 0.5), (50, 0.9, 0.5), (None, 0.9, 0.9), (101, None, None), (-1, 0.5, 0.5),
     (None, 1.1, None), (0, 0.9, 0.0)],
)  # fmt: skip
def test_usage_is_that_of_the_whole_gpu_or_else_of_its_engine(
    percent: float | None, engine: float | None, ratio: float | None
) -> None:
    assert ratio_of(percent, engine) == ratio


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({"exported_pod": "odc-7-2-1", "pod": "dcgm-exporter-x"}, GpuKey(7, 2, 1, "GPU-a")),
        ({"pod": "odc-7-2-1", "GPU_I_ID": "3"}, GpuKey(7, 2, 1, "GPU-a/3")),
        ({"pod": "odc-7-2-1-x"}, None),
        ({"pod": "somebody-7-2-1"}, None),
        ({"pod": "odc-7-2-1", "UUID": ""}, None),
        ({}, None),
    ],
)
def test_pods_have_the_names_of_their_attempts(labels: dict[str, str], key: GpuKey | None) -> None:
    assert PODS.key({"UUID": "GPU-a", **labels}) == key


def test_jobs_of_one_machine_are_identified_by_the_exporter_label() -> None:
    labels = Labels(None, [("cluster", "a")])
    assert labels.of_attempt(7, 1) == ['hpc_job="7",cluster="a"']
    assert labels.key({"UUID": "GPU-a", "hpc_job": "7"}) == GpuKey(7, 0, 0, "GPU-a")
    for other in ("", "7.batch", "-7", "07", "9" * 30):
        assert labels.key({"UUID": "GPU-a", "hpc_job": other}) is None


def test_queries_cover_both_label_forms_within_the_namespaces_of_odc() -> None:
    text = ask_ended(PODS, [an_owed()], SCRAPE)
    for form in (
        'exported_namespace=~"gpu-batch|gpu-dev",exported_pod=~"odc-7-1-[0-9]+"',
        '{namespace=~"gpu-batch|gpu-dev",pod=~"odc-7-1-[0-9]+"}[3600000ms] @ 1767268800.000)',
    ):
        assert form in text


def test_readings_of_one_gpu_are_merged() -> None:
    """Scraped twice, under both label forms."""
    samples = [
        Sample(
            labels={
                "UUID": "GPU-a", "gpu": "0", "modelName": "NVIDIA H100", "odc_figure": figure, **pod
            },
            value=value,
        )
        for pod in ({"pod": "odc-7-1-0"}, {"pod": "x", "exported_pod": "odc-7-1-0"})
        for figure, value in (("mean", 0.03), ("peak", 0.049), ("memory", 100.0))
    ]  # fmt: skip
    [look] = usage_by_job(read_live(samples, PODS), 0.05)
    assert (look.job_id, look.attempt, look.util_ratio) == (7, 1, pytest.approx(0.03))
    assert (look.mem_used_mib, look.idle_gpus) == (100, ["GPU-a"])
    assert [(g.rank, g.index, g.uuid) for g in look.gpus] == [(0, 0, "GPU-a")]
    [look] = usage_by_job(read_live(samples, PODS), 0.049)
    assert look.idle_gpus == []


def test_impossible_readings_are_dropped() -> None:
    def look(**figures: float) -> list[Any]:
        labels = {"UUID": "GPU-a", "pod": "odc-7-1-0"}
        return read_live(
            [Sample(labels={**labels, "odc_figure": f}, value=v) for f, v in figures.items()], PODS
        )

    assert look(mean=0.5, peak=1.1) == look(mean=-1, peak=0.5) == look(memory=5) == []
    [seen] = look(mean=0.5, peak=0.5, memory=9.2e18)
    assert (seen.mem_used_mib, seen.index) == (None, None)
