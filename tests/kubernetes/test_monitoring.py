"""k8s/components/monitoring: what Prometheus sees, which GPUs are watched, the stack's values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from grafana.written import prometheus_rule
from tests.support.builders.manifests import FOLDER, Manifest, named, render
from tests.support.harness.boards import boards, filled, metrics_in, questions, rules
from tests.support.harness.controlplane.nodes import KINDS

HERE = FOLDER / "components" / "monitoring"
VALUES = yaml.safe_load((HERE / "values.yaml").read_text(encoding="utf-8"))
DAEMON = {"app.kubernetes.io/name": "odc", "app.kubernetes.io/component": "daemon"}


@pytest.fixture
def monitoring(kubectl: Path) -> list[Manifest]:
    return render(kubectl, FOLDER / "overlays" / "monitoring")


def test_the_monitoring_stack_has_its_retention_and_requires_the_secret() -> None:
    """MON-01"""
    spec = VALUES["prometheus"]["prometheusSpec"]
    assert (spec["retention"], spec["retentionSize"]) == ("15d", "45GB")
    claim = spec["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert claim["resources"]["requests"]["storage"] == "50Gi"
    storage = yaml.safe_load((HERE / "storage.yaml").read_text(encoding="utf-8"))
    assert storage["metadata"]["name"] == claim["storageClassName"]
    assert storage["parameters"]["type"] == "gp3"
    grafana = VALUES["grafana"]
    assert grafana["service"] == {"type": "NodePort", "nodePort": 30080}
    assert grafana["admin"]["existingSecret"] == "grafana-admin"
    assert "adminPassword" not in grafana
    assert yaml.safe_load((HERE / "namespace.yaml").read_text())["metadata"]["name"] == "monitoring"


def test_prometheus_sets_external_labels_of_the_cluster() -> None:
    assert set(VALUES["prometheus"]["prometheusSpec"]["externalLabels"]) == {
        "cluster", "environment",
    }  # fmt: skip


def test_gpu_metrics_are_collected_except_on_profiling_nodes(monitoring: list[Manifest]) -> None:
    """MON-02"""
    spec = named(monitoring, "DaemonSet", "dcgm-exporter", "monitoring")["spec"]["template"]["spec"]
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    def runs_on(labels: dict[str, str]) -> bool:
        return any(
            all(
                (labels.get(one["key"]) in one["values"]) == (one["operator"] == "In")
                for one in term["matchExpressions"]
            )
            for term in terms
        )

    for kind in KINDS.values():
        gpu_node = {"node.kubernetes.io/instance-type": kind.instance_type}
        assert runs_on(gpu_node) == bool(kind.gpus), kind
        for off in (
            {"gpu.monitoring/profiling-dedicated": "true"},
            {"nvidia.com/gpu.deploy.dcgm-exporter": "false"},
            {"nsight": "true"},
        ):
            assert not runs_on(gpu_node | off)
        assert runs_on(gpu_node | {"gpu.monitoring/profiling-dedicated": "false"}) == bool(
            kind.gpus
        )
    assert runs_on({"nvidia.com/gpu.present": "true"})
    assert not runs_on({"nvidia.com/gpu.present": "true", "nsight": "true"})
    assert {"operator": "Exists"} in spec["tolerations"]


def test_the_exporter_collects_every_metric_that_panels_use() -> None:
    lines = (HERE / "counters.csv").read_text(encoding="utf-8").splitlines()
    fields = {line.partition(",")[0] for line in lines if not line.startswith("#")}
    expressions = [filled(q.text) for q in questions() if not q.sql]
    expressions += [rule["expr"] for rule in rules("record") + rules("alert")]
    used = {name for text in expressions for name in metrics_in(text) if name.startswith("DCGM_")}
    assert used
    assert used <= fields


def test_dashboards_of_odc_and_of_nvidia_are_there(monitoring: list[Manifest]) -> None:
    """MON-03: use, memory, temperature and power of the cluster, a node, a GPU."""
    given = [
        m
        for m in monitoring
        if m["kind"] == "ConfigMap" and m["metadata"].get("labels", {}).get("grafana_dashboard")
    ]
    assert {m["metadata"]["labels"]["grafana_dashboard"] for m in given} == {"1"}
    assert {m["metadata"]["namespace"] for m in given} == {"monitoring"}
    found = {board["uid"]: board for m in given for board in map(json.loads, m["data"].values())}
    assert found == {board["uid"]: board for board in boards()}
    sidecar = VALUES["grafana"]["sidecar"]["dashboards"]
    assert (sidecar["label"], sidecar["labelValue"]) == ("grafana_dashboard", "1")
    assert VALUES["grafana"]["dashboards"]["nvidia"]["dcgm-exporter"]["gnetId"] == 12239
    overview = json.dumps(found["odc-gpus"])
    for field in ("GPU_UTIL", "FB_USED", "GPU_TEMP", "POWER_USAGE"):
        assert f"DCGM_FI_DEV_{field}" in overview
    assert {one["name"] for one in found["odc-gpus"]["templating"]["list"]} >= {"node", "gpu"}


def test_prometheus_finds_and_reaches_odcd(monitoring: list[Manifest]) -> None:
    monitor = named(monitoring, "ServiceMonitor", "odcd", "monitoring")["spec"]
    service = named(monitoring, "Service", "odcd", "gpu-controlplane")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["namespaceSelector"]["matchNames"] == ["gpu-controlplane"]
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["honorLabels"], "pod and namespace are those of jobs"
    policy = named(monitoring, "NetworkPolicy", "odcd-and-prometheus", "gpu-controlplane")["spec"]
    assert policy["podSelector"]["matchLabels"] == DAEMON
    assert policy["ingress"][0]["ports"] == [{"port": "http", "protocol": "TCP"}]
    peer = policy["ingress"][0]["from"][0]
    assert set(peer) == {"namespaceSelector", "podSelector"}, "both must hold"
    exporter = named(monitoring, "ServiceMonitor", "dcgm-exporter", "monitoring")["spec"]
    daemon_set = named(monitoring, "DaemonSet", "dcgm-exporter", "monitoring")["spec"]["template"]
    labels = daemon_set["metadata"]["labels"]
    assert exporter["selector"]["matchLabels"].items() <= labels.items()


def test_the_rules_are_those_of_the_files(monitoring: list[Manifest]) -> None:
    found = named(monitoring, "PrometheusRule", "odc", "monitoring")
    assert found["spec"] == prometheus_rule()["spec"]


def test_grafana_logs_in_with_the_report_role(monitoring: list[Manifest]) -> None:
    roles = named(monitoring, "Cluster", "odc-db")["spec"]["managed"]["roles"]
    by = {role["name"]: role for role in roles}
    assert by["odc_report"]["login"] is False
    assert by["grafana"]["inRoles"] == ["odc_report"]
    [source] = VALUES["grafana"]["additionalDataSources"]
    assert source["uid"] == "odc-postgresql"
    assert source["user"].startswith("$")
    assert source["secureJsonData"]["password"].startswith("$")
