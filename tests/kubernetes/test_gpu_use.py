"""GPU usage on Kubernetes: a real daemon, API server and Prometheus, jobs in pods. A stand-in for
the exporter, which needs GPUs, serves the same data, scraped without honorLabels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fakes.dcgm import Gpu, dcgm_text
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.prometheus import Exporter, Prometheus, Scrape, needs_prometheus
from tests.support.harness.stacks import on_kubernetes

pytestmark = [pytest.mark.long, needs_prometheus]


@pytest.fixture
def kubeconfig(shared_plane: ControlPlane, installed: None) -> Path:
    return shared_plane.account_kubeconfig("gpu-controlplane", "odcd")


@pytest.fixture
def dsn(postgres_server: TestServer) -> Iterator[str]:
    made = postgres_server.clone()
    yield made
    postgres_server.drop(made)


def test_gpu_usage_of_pods_is_stored_and_idle_gpus_are_listed(
    dsn: str, kubeconfig: Path, real_nodes: ProcessNodes, tmp_path: Path
) -> None:
    """The leader is killed before the job ends, and Prometheus before it can be queried."""
    cards: list[Gpu] = []

    def card(job: int, index: int, util: float) -> Gpu:
        return Gpu(
            index=index, node=real_nodes.names[0], namespace="gpu-batch", util=util, used_mib=4000,
            pod=f"odc-{job}-1-0",
        )  # fmt: skip

    with Exporter(lambda: dcgm_text(cards)) as exporter:
        own = {"namespace": "monitoring", "pod": "dcgm-exporter-x", "container": "exporter"}
        scrape = Scrape(job="dcgm", targets=[exporter.target], labels=own)
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[scrape])
        with prometheus, on_kubernetes(
            dsn, kubeconfig, real_nodes.names, ODC_PROMETHEUS_URL=prometheus.url,
            ODC_SCRAPE_S="1", ODC_IDLE_GPU_S="2",
        ) as stack:  # fmt: skip
            rests = stack.submit("--gpus", "2", script="sleep 300")
            works = stack.submit("--gpus", "1", script="sleep 12")
            stack.until(rests, "RUNNING")
            stack.until(works, "RUNNING")
            cards += [card(rests, 0, 0), card(rests, 1, 30), card(works, 2, 80)]
            time.sleep(8)
            stack.kill()
            time.sleep(6)
            cards.pop()
            prometheus.__exit__(None, None, None)
            stack.start()
            ended = stack.end(works)
            assert ended["gpu_use"]["owed"] == 1
            time.sleep(4)
            assert stack.job(works)["gpu_use"]["owed"] == 1
            prometheus.__enter__()
            # It checks the running jobs when it starts to lead, and every minute.
            stack.kill()
            stack.start()
            use = wait(
                lambda: (found := stack.job(works)["gpu_use"])["owed"] == 0 and found, stack.log
            )
            assert use["gave_up"] is None
            assert 0.79 < use["busy_ratio"] < 0.81
            assert 4 <= use["seen_gpu_s"] <= use["held_gpu_s"] <= 20
            assert use["mem_peak_mib"] == 4000
            assert "80 % busy" in stack("show", str(works))
            [idle] = wait(lambda: stack.json("idle")["jobs"], stack.log)
            assert (idle["id"], idle["gpus"], idle["idle_gpus"]) == (rests, 2, 1)
            assert "1 of 2" in stack("idle")
            stack("cancel", "--all")
            stack.end(rests)
