"""k8s/ without a cluster: every overlay renders, fits Kubernetes' schemas and keeps the rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from odcd.builds.settings import read_builds
from odcd.executor.kubernetes.build_credentials import ISSUER, SERVICE
from odcd.settings import read_settings
from tests.support.builders.manifests import (
    CUSTOM,
    FOLDER,
    OVERLAYS,
    Manifest,
    containers,
    named,
    pod_spec,
    render,
)
from tests.support.builders.pods import MIGRATION, ROW, GpuType, a_pod, gpu_types
from tests.support.harness.arguments import read_arguments
from tests.support.harness.controlplane.nodes import KINDS

VERSION = "1.36"
PLUGINS = {"nvidia-device-plugin", "aws-efa-k8s-device-plugin", "dcgm-exporter"}
"""They work on the node itself; they are in kube-system, and monitoring."""

TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
SIZE: dict[str, Any] = {"type": "string", "pattern": r"^[1-9]\d*(Mi|Gi|Ti)$"}


def closed(required: str, **properties: object) -> dict[str, Any]:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


# Of CloudNativePG's Cluster what we use, after its API reference for 1.28.
CLUSTER = closed(
    "apiVersion kind metadata spec",
    apiVersion={"const": "postgresql.cnpg.io/v1"},
    kind={"const": "Cluster"},
    metadata={"type": "object"},
    spec=closed(
        "instances imageName bootstrap postgresql storage",
        instances={"type": "integer", "minimum": 1},
        imageName=TEXT,
        priorityClassName=TEXT,
        primaryUpdateStrategy={"enum": ["unsupervised", "supervised"]},
        primaryUpdateMethod={"enum": ["switchover", "restart"]},
        enablePDB={"type": "boolean"},
        bootstrap=closed(
            "initdb",
            initdb=closed(
                "database owner",
                database=TEXT,
                owner=TEXT,
                dataChecksums={"type": "boolean"},
                postInitApplicationSQL={"type": "array", "items": TEXT},
            ),
        ),
        postgresql=closed(
            "synchronous parameters",
            synchronous=closed(
                "method number",
                method={"enum": ["any", "first"]},
                number={"type": "integer", "minimum": 1},
                dataDurability={"enum": ["required", "preferred"]},
                failoverQuorum={"type": "boolean"},
            ),
            parameters={"type": "object", "additionalProperties": TEXT},
        ),
        affinity=closed(
            "",
            enablePodAntiAffinity={"type": "boolean"},
            podAntiAffinityType={"enum": ["required", "preferred"]},
            topologyKey=TEXT,
        ),
        topologySpreadConstraints={
            "type": "array",
            "items": closed(
                "maxSkew topologyKey whenUnsatisfiable labelSelector",
                maxSkew={"type": "integer", "minimum": 1},
                topologyKey=TEXT,
                whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
                labelSelector={"type": "object"},
            ),
        },
        storage=closed("size", size=SIZE, storageClass=TEXT),
        walStorage=closed("size", size=SIZE, storageClass=TEXT),
        resources={"type": "object"},
        managed=closed(
            "roles",
            roles={
                "type": "array",
                "items": closed(
                    "name ensure",
                    name=TEXT,
                    ensure={"enum": ["present", "absent"]},
                    login={"type": "boolean"},
                    connectionLimit={"type": "integer"},
                    inRoles={"type": "array", "items": TEXT},
                    passwordSecret=closed("name", name=TEXT),
                ),
            },
        ),
    ),
)
# Of the Prometheus operator's kinds what we use, after its API reference for v0.86.
LABELS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}
DURATION: dict[str, Any] = {"type": "string", "pattern": r"^\d+(ms|[smhd])$"}
SERVICE_MONITOR = closed(
    "apiVersion kind metadata spec",
    apiVersion={"const": "monitoring.coreos.com/v1"},
    kind={"const": "ServiceMonitor"},
    metadata={"type": "object"},
    spec=closed(
        "selector endpoints",
        namespaceSelector=closed("matchNames", matchNames={"type": "array", "items": TEXT}),
        selector=closed("matchLabels", matchLabels=LABELS),
        endpoints={
            "type": "array",
            "items": closed(
                "port",
                port=TEXT,
                path=TEXT,
                interval=DURATION,
                scrapeTimeout=DURATION,
                honorLabels={"type": "boolean"},
            ),
        },
    ),
)
_RULE = closed(
    "expr",
    record=TEXT,
    alert=TEXT,
    expr=TEXT,
    labels=LABELS,
    annotations=LABELS,
    **{"for": DURATION},
)
PROMETHEUS_RULE = closed(
    "apiVersion kind metadata spec",
    apiVersion={"const": "monitoring.coreos.com/v1"},
    kind={"const": "PrometheusRule"},
    metadata={"type": "object"},
    spec=closed(
        "groups",
        groups={
            "type": "array",
            "items": closed("name rules", name=TEXT, rules={"type": "array", "items": _RULE}),
        },
    ),
)
SCHEMAS = {
    "Cluster": CLUSTER, "ServiceMonitor": SERVICE_MONITOR, "PrometheusRule": PROMETHEUS_RULE,
}  # fmt: skip


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest, kubectl: Path) -> list[Manifest]:
    return render(kubectl, FOLDER / "overlays" / request.param)


@pytest.fixture
def production(kubectl: Path) -> list[Manifest]:
    return render(kubectl, FOLDER / "overlays" / "production")


def validate(manifest: Manifest) -> None:
    """Raises the validators' errors."""
    # Importing them takes as long as collecting a thousand tests.
    import jsonschema
    import kubernetes_validate

    if manifest["kind"] in CUSTOM:
        jsonschema.validate(manifest, SCHEMAS[manifest["kind"]])
    else:
        kubernetes_validate.validate(manifest, VERSION, strict=True)


def test_every_manifest_fits_its_schema(overlay: list[Manifest]) -> None:
    for manifest in overlay:
        validate(manifest)


def test_no_resource_is_defined_twice(overlay: list[Manifest]) -> None:
    names = [
        (m["apiVersion"], m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"])
        for m in overlay
    ]
    assert sorted(set(names), key=str) == sorted(names, key=str)


def test_every_component_is_part_of_an_overlay() -> None:
    texts = [(FOLDER / "overlays" / name / "kustomization.yaml").read_text() for name in OVERLAYS]
    components = {path.name for path in (FOLDER / "components").iterdir()}
    assert {name for name in components if not any(name in text for text in texts)} == set()


def test_images_have_a_version(overlay: list[Manifest]) -> None:
    for image in _images(overlay):
        assert re.search(r"(:[\w.-]*\d[\w.-]*|@sha256:[0-9a-f]{64})$", image), image
        assert not image.endswith(":latest"), image


def test_the_workloads_of_odc_are_restricted(overlay: list[Manifest]) -> None:
    for name, spec in _workloads(overlay):
        if name in PLUGINS:
            continue
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not spec.get("hostNetwork"), name
        assert not [v for v in spec.get("volumes", []) if "hostPath" in v], name
        for container in containers(spec):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"], name
            assert not rights["allowPrivilegeEscalation"], name
            assert rights["capabilities"] == {"drop": ["ALL"]}, name


def test_only_odcd_has_a_token(overlay: list[Manifest]) -> None:
    with_token = {
        name for name, spec in _workloads(overlay) if spec.get("automountServiceAccountToken", True)
    }
    assert with_token == {"odcd"}


def test_workloads_request_cpu_and_memory(overlay: list[Manifest]) -> None:
    for name, spec in _workloads(overlay):
        for container in containers(spec):
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
            assert "memory" in container["resources"]["limits"], name


def test_roles_have_no_wildcard_and_read_no_secret(overlay: list[Manifest]) -> None:
    rules = [
        (m["metadata"]["name"], rule)
        for m in overlay
        if m["kind"] in ("Role", "ClusterRole")
        for rule in m["rules"]
    ]
    assert rules
    for name, rule in rules:
        names = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert "*" not in "".join(names), name
        if any(word.startswith("secrets") for word in names):
            assert rule["verbs"] == ["create"], name
        assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(names), name


def test_only_odcd_is_bound_to_a_role(overlay: list[Manifest]) -> None:
    subjects = [
        subject
        for m in overlay
        if m["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in m["subjects"]
    ]
    assert subjects
    for subject in subjects:
        assert subject == {
            "kind": "ServiceAccount",
            "name": "odcd",
            "namespace": "gpu-controlplane",
        }


@pytest.mark.parametrize("namespace", ["gpu-controlplane", "gpu-batch", "gpu-dev", "gpu-builds"])
def test_pods_without_a_network_policy_have_no_network(
    overlay: list[Manifest], namespace: str
) -> None:
    policy = named(overlay, "NetworkPolicy", "default-deny", namespace)
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254"])
def test_no_network_policy_allows_instance_metadata(overlay: list[Manifest], address: str) -> None:
    blocks = [block for m in overlay if m["kind"] == "NetworkPolicy" for block in _blocks(m)]
    assert len(blocks) > 4
    for block in blocks:
        if ip_address(address) in ip_network(block["cidr"]):
            excepted = [ip_network(each) for each in block.get("except", [])]
            assert any(ip_address(address) in each for each in excepted), block


@pytest.mark.parametrize(
    ("namespace", "name"), [("gpu-batch", "jobs"), ("gpu-dev", "jobs"), ("gpu-builds", "builds")]
)
@pytest.mark.parametrize(
    "address", ["10.0.0.1", "10.100.0.1", "172.20.0.1", "192.168.1.1", "100.64.0.1", "fd12::1"]
)
def test_jobs_reach_no_private_address(
    overlay: list[Manifest], namespace: str, name: str, address: str
) -> None:
    policy = named(overlay, "NetworkPolicy", name, namespace)
    for block in _blocks(policy):
        inside = ip_address(address) in ip_network(block["cidr"])
        excepted = any(ip_address(address) in ip_network(e) for e in block.get("except", []))
        assert not inside or excepted


@pytest.mark.parametrize("namespace", ["gpu-batch", "gpu-dev"])
def test_jobs_reach_names_and_the_internet_and_no_pod_reaches_them(
    overlay: list[Manifest], namespace: str
) -> None:
    """ACC-22: the members of a gang reach each other by a policy of their own, on all
    ports; tests/odcd/executor/kubernetes/test_networks.py tries them together."""
    policy = named(overlay, "NetworkPolicy", "jobs", namespace)["spec"]
    assert policy["podSelector"] == {"matchLabels": {"app.kubernetes.io/managed-by": "odcd"}}
    assert "ingress" not in policy
    assert "Ingress" in policy["policyTypes"]
    names, internet = policy["egress"]
    assert {(p["port"], p["protocol"]) for p in names["ports"]} == {(53, "UDP"), (53, "TCP")}
    assert "ports" not in internet
    assert {each["ipBlock"]["cidr"] for each in internet["to"]} == {"0.0.0.0/0", "::/0"}


@pytest.mark.parametrize("namespace", ["gpu-batch", "gpu-dev"])
def test_no_policy_lets_jobs_with_networks_of_their_own_reach_each_other(
    overlay: list[Manifest], namespace: str
) -> None:
    for policy in overlay:
        if policy["kind"] != "NetworkPolicy" or policy["metadata"]["namespace"] != namespace:
            continue
        peers = [
            peer
            for rules, side in (("ingress", "from"), ("egress", "to"))
            for rule in policy["spec"].get(rules, [])
            for peer in rule.get(side, [])
            if "podSelector" in peer and "namespaceSelector" not in peer
        ]
        older = {"key": "odc.dev/network", "operator": "DoesNotExist"}
        for peer in peers:
            assert older in peer["podSelector"]["matchExpressions"], policy["metadata"]["name"]


CATALOGUE = {row["instance"]: row for row in ROW.finditer(MIGRATION.read_text("utf-8"))}
MORE = ("p6-b300.48xlarge", "p5e.48xlarge", "p4de.24xlarge", "g6e.12xlarge", "g6e.48xlarge")
"""Instance types of the catalogue's GPUs in other sizes."""


def _instances(manifests: list[Manifest], name: str) -> set[str]:
    needs = named(manifests, "DaemonSet", name)["spec"]["template"]["spec"]["affinity"]
    terms = needs["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return {
        value
        for term in terms["nodeSelectorTerms"]
        for one in term["matchExpressions"]
        if one["key"] == "node.kubernetes.io/instance-type"
        for value in one["values"]
    }


@pytest.mark.parametrize("name", ["nvidia-device-plugin", "image-prepull", "dcgm-exporter"])
def test_daemonsets_cover_the_gpu_types_of_the_catalogue(kubectl: Path, name: str) -> None:
    manifests = render(kubectl, FOLDER / "overlays" / "monitoring")
    gpus = {instance for instance, row in CATALOGUE.items() if int(row["gpus"])}
    assert len(gpus) > 5
    assert {*gpus, *MORE} <= _instances(manifests, name)


def test_the_plugin_of_efa_covers_the_types_with_efa(production: list[Manifest]) -> None:
    efa = {instance for instance, row in CATALOGUE.items() if int(row["efa"])}
    assert {*efa, *MORE} <= _instances(production, "aws-efa-k8s-device-plugin")


@pytest.mark.parametrize(
    "name",
    ["nvidia-device-plugin", "aws-efa-k8s-device-plugin", "image-prepull", "dcgm-exporter"],
)
@pytest.mark.parametrize(
    "taint",
    ["nvidia.com/gpu", "vpc.amazonaws.com/efa", "odc.dev/team", "dedicated"],
)
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_daemonsets_tolerate_the_taints_that_jobs_tolerate(
    kubectl: Path, name: str, taint: str, effect: str
) -> None:
    """Else a node with one of them has no devices. `dedicated` stands for ODC_TOLERATIONS."""
    manifests = render(kubectl, FOLDER / "overlays" / "monitoring")
    tolerations = named(manifests, "DaemonSet", name)["spec"]["template"]["spec"]["tolerations"]
    assert any(
        one.get("key", taint) == taint
        and one.get("operator") == "Exists"
        and one.get("effect", effect) == effect
        for one in tolerations
    )


def test_postgresql_is_spread_over_zones(overlay: list[Manifest]) -> None:
    found = [m for m in overlay if m["kind"] in ("Cluster", "StatefulSet")]
    [spec] = [
        m["spec"] if m["kind"] == "Cluster" else m["spec"]["template"]["spec"]
        for m in found
        if m["metadata"]["name"] == "odc-db"
    ]
    [spread] = spec["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["maxSkew"]) == ("topology.kubernetes.io/zone", 1)
    # An instance whose volume is in a crowded zone must be able to come back.
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_odcd_finds_its_settings_and_its_database(overlay: list[Manifest]) -> None:
    deployment = named(overlay, "Deployment", "odcd")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    settings = container["envFrom"][0]["configMapRef"]["name"]
    assert {"ODC_NAMESPACE_BATCH", "ODC_NAMESPACE_DEV", "ODC_IMAGE"} <= set(
        named(overlay, "ConfigMap", settings)["data"]
    )
    assert settings != "odcd", "a change of the settings must roll the daemon out"
    services = [m["metadata"]["name"] for m in overlay if m["kind"] == "Service"]
    clusters = [m["metadata"]["name"] for m in overlay if m["kind"] == "Cluster"]
    assert "odc-db-rw" in services or "odc-db" in clusters


def test_odcd_takes_its_arguments_and_settings(overlay: list[Manifest]) -> None:
    deployment = named(overlay, "Deployment", "odcd")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    settings = named(overlay, "ConfigMap", container["envFrom"][0]["configMapRef"]["name"])["data"]
    own = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    read = read_settings(read_arguments(container["args"]), settings | own)
    assert read.executor == "kubernetes"
    assert read.listen == ("0.0.0.0", container["ports"][0]["containerPort"])
    assert read.kubernetes.image == settings["ODC_IMAGE"]
    assert str(read.home).startswith(container["volumeMounts"][0]["mountPath"] + "/")
    page = (FOLDER.parent / "docs" / "reference" / "settings.md").read_text()
    assert [name for name in settings if f"`{name}`" not in page] == []


def test_a_failover_in_production_loses_no_commit(production: list[Manifest]) -> None:
    spec = named(production, "Cluster", "odc-db")["spec"]
    assert spec["instances"] >= 3
    assert spec["postgresql"]["synchronous"] == {
        "method": "any",
        "number": 1,
        "dataDurability": "required",
        "failoverQuorum": True,
    }


def test_the_default_images_are_pulled_in_advance(production: list[Manifest]) -> None:
    settings = next(
        m
        for m in production
        if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("odcd-")
    )
    pulled = named(production, "DaemonSet", "image-prepull")["spec"]["template"]["spec"]
    images = {each["name"]: each["image"] for each in pulled["containers"]}
    data = settings["data"]
    assert images == {"job": data["ODC_IMAGE"], "dev": data["ODC_DEV_IMAGE"]}
    assert "initContainers" not in pulled
    for container in pulled["containers"]:
        # It restarts every half hour, and queries the registry then.
        assert container["imagePullPolicy"] == "Always"
        assert container["command"] == ["/bin/sh", "-c", "sleep 1800"]


def test_images_are_pulled_on_all_gpu_nodes_at_once(production: list[Manifest]) -> None:
    """IMG-14"""
    spec = named(production, "DaemonSet", "image-prepull")["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}
    needs = spec["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = needs["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    instances = {
        value for term in terms for one in term["matchExpressions"] for value in one["values"]
    }
    assert {kind.instance_type for kind in KINDS.values() if kind.gpus} <= instances


def test_each_registry_has_a_cache_and_built_images_have_one(
    production: list[Manifest],
) -> None:
    """IMG-12: HTTP on port 5000, and credentials, if there are any, in a secret."""
    upstreams = {
        "ghcr": ("https://ghcr.io", "50Gi"),
        "dockerhub": ("https://registry-1.docker.io", "50Gi"),
        "nvcr": ("https://nvcr.io", "500Gi"),
    }
    for name, (url, size) in upstreams.items():
        service = named(production, "Service", f"registry-{name}", "gpu-controlplane")
        assert service["spec"]["ports"][0]["port"] == 5000
        deployment = named(production, "Deployment", f"registry-{name}")["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        for selector in (service["spec"]["selector"], deployment["selector"]["matchLabels"]):
            assert selector["odc.dev/registry"] == name
            assert selector.items() <= labels.items()
        [container] = deployment["template"]["spec"]["containers"]
        variables = {each["name"]: each for each in container["env"]}
        assert variables["REGISTRY_PROXY_REMOTEURL"]["value"] == url
        for variable in ("REGISTRY_PROXY_USERNAME", "REGISTRY_PROXY_PASSWORD"):
            given = variables[variable]["valueFrom"]["secretKeyRef"]
            assert (given["name"], given["optional"]) == (f"registry-{name}", True)
        [volume] = [v for v in deployment["template"]["spec"]["volumes"] if "persistent" in str(v)]
        claim = named(
            production, "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]
        )
        assert claim["spec"]["resources"]["requests"]["storage"] == size
        network = named(production, "NetworkPolicy", f"registry-{name}")["spec"]["podSelector"]
        assert network["matchLabels"].items() <= labels.items()
    own = named(production, "Deployment", "registry-builds")["spec"]["template"]["spec"]
    assert "REMOTEURL" not in str(own)


def test_builds_reach_the_registry_of_builds_and_nothing_else_inside(
    production: list[Manifest],
) -> None:
    """IMG-12: and odcd is configured with it. They do not reach the port that nodes pull from,
    which needs no credential."""
    policy = named(production, "NetworkPolicy", "to-registry-builds", "gpu-builds")["spec"]
    [rule] = policy["egress"]
    assert rule["ports"] == [{"port": 5001, "protocol": "TCP"}]
    pods = rule["to"][0]["podSelector"]["matchLabels"]
    registry = named(production, "Deployment", "registry-builds")["spec"]["template"]
    assert pods.items() <= registry["metadata"]["labels"].items()
    rules = named(production, "NetworkPolicy", "registry-builds")["spec"]["ingress"]
    for one in rules:
        by_builds = any("podSelector" in peer for peer in one["from"])
        assert [port["port"] for port in one["ports"]] == ["push" if by_builds else "http"]
    settings = next(
        m["data"]
        for m in production
        if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("odcd-")
    )
    read = read_builds(settings)
    assert read.registry_http
    host = "registry-builds.gpu-controlplane.svc.cluster.local"
    assert read.target().startswith(f"{host}:5000/")
    assert read.push_host == f"{host}:5001"
    odcd = named(production, "Deployment", "odcd")["spec"]["template"]["spec"]
    mounts = {one["mountPath"]: one["name"] for one in odcd["containers"][0]["volumeMounts"]}
    [key] = [one for one in odcd["volumes"] if one["name"] == mounts[str(read.key)]]
    assert key["secret"] == {"secretName": "odc-build-key", "optional": True, "defaultMode": 0o440}


def test_the_registry_of_builds_checks_credentials_and_deletes_nothing(
    production: list[Manifest],
) -> None:
    """tests/attack/test_build_registry.py runs a registry with these files."""
    pod = named(production, "Deployment", "registry-builds")["spec"]["template"]["spec"]
    servers = {one["name"]: one for one in pod["containers"]}
    files = next(
        m["data"]
        for m in production
        if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("registry-builds-")
    )
    for name, container in servers.items():
        assert container["args"] == ["serve", f"/etc/odc/{name}.yml"]
        settings = yaml.safe_load(files[f"{name}.yml"])
        assert settings["storage"]["delete"] == {"enabled": False}
        port = int(settings["http"]["addr"].removeprefix(":"))
        assert [one["containerPort"] for one in container["ports"]] == [port]
        assert "REGISTRY_STORAGE_DELETE_ENABLED" not in str(container)
    push, pull = (yaml.safe_load(files[f"{name}.yml"]) for name in ("push", "pull"))
    assert (push["auth"]["token"]["issuer"], push["auth"]["token"]["service"]) == (ISSUER, SERVICE)
    assert pull["storage"]["maintenance"]["readonly"] == {"enabled": True}
    [key] = [one["secret"] for one in pod["volumes"] if one["name"] == "key"]
    assert [item["key"] for item in key["items"]] == ["tls.crt"], "it cannot sign"


def test_nodes_use_the_registry_caches_of_the_cluster(tmp_path: Path) -> None:
    """IMG-13"""
    (tmp_path / "etc" / "docker").mkdir(parents=True)
    own = "registry-builds.gpu-controlplane.svc.cluster.local:5000"
    script = [FOLDER / "nodes" / "registries.sh"]
    subprocess.run(
        ["sh", *script, "ghcr.io=10.1.0.5", "docker.io=10.1.0.6", f"{own}=10.1.0.7"],
        env={"ODC_ROOT": str(tmp_path), "PATH": os.environ["PATH"]}, check=True,
    )  # fmt: skip
    certs = tmp_path / "etc" / "containerd" / "certs.d"
    read = {
        path.parent.name: tomllib.loads(path.read_text()) for path in certs.glob("*/hosts.toml")
    }
    assert {name: one["server"] for name, one in read.items()} == {
        "ghcr.io": "https://ghcr.io", "docker.io": "https://registry-1.docker.io",
        own: "http://10.1.0.7:5000",
    }  # fmt: skip
    assert list(read["ghcr.io"]["host"]) == ["http://10.1.0.5:5000"]
    docker = json.loads((tmp_path / "etc" / "docker" / "daemon.json").read_text())
    assert docker["insecure-registries"] == ["10.1.0.5:5000", "10.1.0.6:5000", "10.1.0.7:5000"]
    wrong = subprocess.run(["sh", *script, "a b=c"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "is not REGISTRY=ADDRESS" in wrong.stderr


def test_the_overlay_of_the_operators_page_works(kubectl: Path, tmp_path: Path) -> None:
    page = FOLDER.parent / "docs" / "operating" / "kubernetes.md"
    text = re.search(r"kustomization.yaml <<'END'\n(.*?)^END$", page.read_text(), re.M | re.S)
    assert text is not None
    shutil.copytree(FOLDER, tmp_path / "k8s")
    overlay = tmp_path / "k8s" / "overlays" / "production"
    with (overlay / "kustomization.yaml").open("a") as file:
        file.write(text[1])
    images = _images(render(kubectl, overlay))
    assert "registry.example.com/odcd:0.1.0" in images
    assert "registry.example.com/train:2026.11" in images, "pulled ahead"


def test_the_dockerfile_runs_as_the_user_of_the_deployment(production: list[Manifest]) -> None:
    text = (FOLDER / "Dockerfile").read_text()
    context = named(production, "Deployment", "odcd")["spec"]["template"]["spec"]["securityContext"]
    user = re.findall(r"^USER (\d+):(\d+)$", text, re.M)
    assert user == [(str(context["runAsUser"]), str(context["runAsGroup"]))]
    assert re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M), "copies something"
    for source in " ".join(re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M)).split():
        assert (FOLDER.parent / source).exists(), source


@pytest.mark.parametrize("gpu_type", gpu_types(), ids=lambda each: each.name)
def test_a_pod_of_every_gpu_type_fits_the_schema(gpu_type: GpuType) -> None:
    for gpus in {gpu_type.gpus, min(1, gpu_type.gpus)}:
        validate(a_pod(gpu_type, gpus))


@pytest.mark.parametrize("gpu_type", gpu_types(), ids=lambda each: each.name)
def test_a_dev_server_of_every_gpu_type_fits_the_schema(gpu_type: GpuType) -> None:
    """GPU-01"""
    for gpus in {gpu_type.gpus, min(1, gpu_type.gpus)}:
        for ask in ({}, {"preserve_entrypoint": True}):
            pod = a_pod(gpu_type, gpus, gang=2, dev_server=True, ask=ask)
            validate(pod)


def test_the_gpu_types_of_the_manifests_are_parsed() -> None:
    assert [each.name for each in gpu_types()] == [
        "b200",
        "h200",
        "h100",
        "a100",
        "a10g",
        "l4",
        "t4",
        "t4-small",
        "cpu-x86",
        "cpu-arm",
    ]


def _workloads(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    for manifest in manifests:
        spec = pod_spec(manifest)
        if spec is not None:
            yield manifest["metadata"]["name"], spec


def _images(manifests: list[Manifest]) -> list[str]:
    found = [c["image"] for _, spec in _workloads(manifests) for c in containers(spec)]
    return found + [m["spec"]["imageName"] for m in manifests if m["kind"] == "Cluster"]


def _blocks(policy: Manifest) -> list[Manifest]:
    return [
        peer["ipBlock"]
        for rule in policy["spec"].get("egress", [])
        for peer in rule.get("to", [])
        if "ipBlock" in peer
    ]


def test_the_overlay_sets_the_address_of_the_runbooks(kubectl: Path, tmp_path: Path) -> None:
    """One line, and every alert leads there; it is no object of the cluster itself."""
    for name in ("k8s", "grafana"):
        shutil.copytree(FOLDER.parent / name, tmp_path / name)
    overlay = tmp_path / "k8s" / "overlays" / "monitoring"
    path = overlay / "kustomization.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count("url=https://github.com/example/odc/blob/main\n") == 1
    path.write_text(
        text.replace("url=https://github.com/example/odc/blob/main", "url=http://wiki.here:81/odc"),
        encoding="utf-8",
    )
    manifests = render(kubectl, overlay)
    groups = named(manifests, "PrometheusRule", "odc")["spec"]["groups"]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    assert len(alerts) > 20
    for alert in alerts:
        page = alert["annotations"]["runbook_url"]
        found = re.fullmatch(r"http://wiki\.here:81/odc/(docs/operating/runbooks/.+\.md)", page)
        assert found is not None, page
        assert (FOLDER.parent / found[1]).exists()
    assert not [one for one in manifests if one["metadata"]["name"] == "odc-docs"]
