"""The join of GPUs and jobs in a real Prometheus that scrapes exporters of every setup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fakes.dcgm import Gpu, dcgm_text, kube_pod_labels
from tests.support.harness.boards import RULES
from tests.support.harness.prometheus import (
    Exporter,
    Prometheus,
    QueryRefused,
    Scrape,
    needs_prometheus,
)

pytestmark = [needs_prometheus, pytest.mark.long]

AROUND = {"namespace": "monitoring", "pod": "dcgm-exporter-7xk2p", "container": "exporter"}
"""The labels of service discovery for the exporter itself."""
CARDS = [
    Gpu(index=0, node="n1", util=80, used_mib=40000, namespace="gpu-batch", pod="odc-7-1-0"),
    Gpu(index=1, node="n1", util=40, used_mib=20000, namespace="gpu-batch", pod="odc-7-1-0"),
    Gpu(index=2, node="n1", util=10, used_mib=1000, namespace="gpu-dev", pod="odc-8-1-0"),
    Gpu(index=3, node="n1"),
    Gpu(index=4, node="n1", util=99, namespace="theirs", pod="notebook"),
]
NAIVE = (
    'label_replace(label_replace(DCGM_FI_DEV_GPU_UTIL, "pod", "$1", "exported_pod", "(.+)"),'
    ' "namespace", "$1", "exported_namespace", "(.+)")'
    " * on (namespace, pod) group_left (label_odc_dev_job_id) kube_pod_labels"
)
"""As found in tutorials."""


def job_info(*, instance: str = "", account: str = "vision") -> str:
    lines = ["# TYPE odcd_job_info gauge"]
    for job, user, kind, namespace, gpus in (
        (7, "alice", "batch", "gpu-batch", 2), (8, "bob", "reservation", "gpu-dev", 1),
    ):  # fmt: skip
        lines.append(
            f'odcd_job_info{{job_id="{job}",user="{user}",account="{account}",partition="h100",'
            f'kind="{kind}",rank="0",node="n1",namespace="{namespace}",pod="odc-{job}-1-0",'
            f'gpus="{gpus}"}} 1'
        )
    return "\n".join(lines) + "\n"


def pod_labels(partition: str = "h100") -> str:
    return kube_pod_labels(
        [
            {
                "namespace": "gpu-batch", "pod": "odc-7-1-0", "odc.dev/job-id": "7",
                "odc.dev/user": "alice", "odc.dev/partition": partition,
            },
            {
                "namespace": "gpu-dev", "pod": "odc-8-1-0", "odc.dev/job-id": "8",
                "odc.dev/user": "bob", "odc.dev/partition": "h100",
                "odc.dev/kind": "reservation",
            },
        ]
    )  # fmt: skip


Source = Callable[[], str]


@contextmanager
def watched(
    folder: Path, join: str, *, dcgm: Source, honor: bool, sources: list[Source]
) -> Iterator[Prometheus]:
    """A Prometheus with the rules, one DCGM exporter, and replicas of the source of job labels."""
    with ExitStack() as stack:
        card = stack.enter_context(Exporter(dcgm))
        others = [stack.enter_context(Exporter(one)) for one in sources]
        scrapes = [
            Scrape(job="dcgm", targets=[card.target], honor_labels=honor, labels=AROUND),
            Scrape(job="jobs", targets=[one.target for one in others], honor_labels=True),
        ]
        rules = [RULES / "rules" / name for name in (f"{join}.yaml", "gpu.yaml")]
        yield stack.enter_context(Prometheus(folder, scrapes=scrapes, rules=rules))


def by_job(prometheus: Prometheus) -> dict[str, tuple[str, float]]:
    return {
        row["metric"]["job_id"]: (row["metric"]["user"], round(float(row["value"][1]), 3))
        for row in prometheus.query("odcd:gpu_utilization:avg_by_job")
    }


def healthy(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        return all(rule["health"] != "unknown" for rule in prometheus.rules())

    prometheus.until(evaluated, "all rules are evaluated")
    broken = [rule for rule in prometheus.rules() if rule["health"] != "ok"]
    assert broken == []


def until_it_is(prometheus: Prometheus, question: str, *expected: float) -> None:
    """A scrape that fails because the machine is busy leaves out its data for a moment."""
    prometheus.until(
        lambda: prometheus.values(question) == [*expected], f"{question} is {expected or 'nothing'}"
    )


def refusal(prometheus: Prometheus, question: str) -> str | None:
    try:
        prometheus.query(question)
    except QueryRefused as error:
        return str(error)
    return None


EXPECTED = {"7": ("alice", 0.6), "8": ("bob", 0.1)}


@pytest.mark.parametrize("join", ["join-odcd", "join-kube-state-metrics"])
@pytest.mark.parametrize("honor", [False, True], ids=["exported_pod", "pod"])
def test_both_forms_of_labels_and_both_joins(tmp_path: Path, join: str, honor: bool) -> None:
    source = job_info if join == "join-odcd" else pod_labels
    with watched(
        tmp_path / "prometheus", join, dcgm=lambda: dcgm_text(CARDS), honor=honor, sources=[source]
    ) as prometheus:
        prometheus.until(lambda: by_job(prometheus) == EXPECTED, f"{EXPECTED} is there")
        label = "pod" if honor else "exported_pod"
        until_it_is(prometheus, f'count(DCGM_FI_DEV_GPU_UTIL{{{label}="odc-7-1-0"}})', 2)
        prometheus.until(lambda: prometheus.query("odcd:gpu_power:watts_by_job"), "there is power")
        until_it_is(prometheus, "odcd:gpu_join_missing")
        # A card is counted once, and that of another's pod not at all.
        until_it_is(prometheus, "count(odcd:gpu:job)", 3)
        until_it_is(prometheus, "count(odcd:dcgm_gpu_energy:joules_total)", 3)
        healthy(prometheus)


def test_two_kube_state_metrics_and_a_stale_series_do_not_break_it(tmp_path: Path) -> None:
    """And they do break the join of the tutorials."""
    partition = "old"
    with watched(
        tmp_path / "prometheus", "join-kube-state-metrics", dcgm=lambda: dcgm_text(CARDS),
        honor=False, sources=[lambda: pod_labels(partition), pod_labels],
    ) as prometheus:  # fmt: skip
        prometheus.until(lambda: by_job(prometheus) == EXPECTED, f"{EXPECTED} is there")
        message = prometheus.until(lambda: refusal(prometheus, NAIVE), "that is refused")
        assert re.search(r"many-to-many|multiple matches", message)
        healthy(prometheus)
        # The first replica is moved: its last samples stay for the look-back period.
        prometheus.change(
            scrapes=[one for one in prometheus.scrapes if one.job == "dcgm"]
            + [
                Scrape(job="jobs", targets=[one.targets[1]], honor_labels=True)
                for one in prometheus.scrapes
                if one.job == "jobs"
            ]
        )
        prometheus.until(lambda: by_job(prometheus) == EXPECTED, f"{EXPECTED} is there again")
        healthy(prometheus)
        until_it_is(prometheus, "count(odcd:gpu_pod:join)", 2)


def test_another_leader_with_another_account_does_not_break_it(tmp_path: Path) -> None:
    outputs = {"first": job_info(account="old"), "second": ""}
    with watched(
        tmp_path / "prometheus", "join-odcd", dcgm=lambda: dcgm_text(CARDS), honor=False,
        sources=[lambda: outputs["first"], lambda: outputs["second"]],
    ) as prometheus:  # fmt: skip
        prometheus.until(lambda: by_job(prometheus) == EXPECTED, f"{EXPECTED} is there")
        outputs["second"] = job_info(account="new")

        def accounts() -> set[str]:
            found = prometheus.query("odcd:gpu_utilization:avg_by_job")
            return {row["metric"]["account"] for row in found}

        prometheus.until(lambda: len(prometheus.query("odcd_job_info")) == 4, "both export it")
        for _ in range(3):
            healthy(prometheus)
            found = prometheus.until(accounts, "somebody is believed")
            assert len(found) == 1, "a job has two accounts"
        outputs["first"] = ""
        prometheus.until(lambda: accounts() == {"new"}, "the new one is believed")


def test_mapping_files_pods_labels_slices_and_a_short_list(tmp_path: Path) -> None:
    cards: list[Gpu] = [
        Gpu(index=0, node="n1", util=50, hpc_job="7"),
        Gpu(index=1, node="n1", util=30, pod_labels={"odc.dev/job-id": "8"}),
        Gpu(index=2, node="n2", util=20, instance="3", namespace="gpu-batch", pod="odc-7-1-0"),
    ]
    short = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_FB_FREE"}
    with watched(
        tmp_path / "prometheus", "join-odcd", dcgm=lambda: dcgm_text(cards, without=short),
        honor=True, sources=[job_info],
    ) as prometheus:  # fmt: skip
        expected: dict[str, Any] = {"7": ("alice", 0.35), "8": ("bob", 0.3)}
        prometheus.until(lambda: by_job(prometheus) == expected, f"{expected} is there")
        assert prometheus.query("odcd:gpu_memory_used_ratio:by_job") == []
        healthy(prometheus)


def test_gpus_and_jobs_that_the_join_misses_are_reported(tmp_path: Path) -> None:
    cards = [
        Gpu(index=0, node="n1", util=50, namespace="gpu-batch", pod="odc-7-1-0"),
        Gpu(index=1, node="n1", util=50, namespace="gpu-batch", pod="odc-99-1-0"),
        Gpu(index=2, node="n1", util=50, namespace="theirs", pod="notebook"),
    ]
    [first, *_] = [line for line in job_info().splitlines() if 'pod="odc-7-1-0"' in line]
    silent = first.replace("odc-7-1-0", "odc-7-1-1").replace('"n1"', '"n2"') + "\n"
    silent = silent.replace('rank="0"', 'rank="1"')
    with watched(
        tmp_path / "prometheus", "join-odcd", dcgm=lambda: dcgm_text(cards), honor=False,
        sources=[lambda: job_info() + silent],
    ) as prometheus:  # fmt: skip

        def missing() -> dict[tuple[str, str], float]:
            found = prometheus.query("odcd:gpu_join_missing")
            return {
                (row["metric"]["missing"], row["metric"]["node"]): float(row["value"][1])
                for row in found
            }

        # Job 8 and the second member of job 7 have GPUs, and no card reports them.
        expected = {("job", "n1"): 1, ("gpu", "n1"): 1, ("gpu", "n2"): 1}
        prometheus.until(lambda: missing() == expected, f"missing are {expected}")
