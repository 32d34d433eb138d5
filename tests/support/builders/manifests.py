"""k8s/ as kubectl renders it."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.support.harness.kube import Kube, as_list

FOLDER = Path(__file__).parents[3] / "k8s"
OVERLAYS = tuple(sorted(path.name for path in (FOLDER / "overlays").iterdir()))
CUSTOM = frozenset({"Cluster", "ServiceMonitor", "PrometheusRule"})
"""Kinds from operators, whose schema no API server in the tests has."""

Manifest = dict[str, Any]


def render(kubectl: Path, folder: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(text(kubectl, folder)))


@functools.cache
def text(kubectl: Path, folder: Path) -> str:
    done = subprocess.run(
        [kubectl, "kustomize", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "kustomize warns"
    return done.stdout


def applicable(kubectl: Path, folder: Path) -> list[Manifest]:
    return [each for each in render(kubectl, folder) if each["kind"] not in CUSTOM]


def apply(kube: Kube, manifests: list[Manifest]) -> None:
    kube.do("apply", "--server-side", "--force-conflicts", "-f", "-", given=as_list(manifests))


def named(
    manifests: list[Manifest], kind: str, name: str, namespace: str | None = None
) -> Manifest:
    """The only one of that kind and name."""
    found = [
        m
        for m in manifests
        if m["kind"] == kind
        and m["metadata"]["name"] == name
        and namespace in (None, m["metadata"].get("namespace"))
    ]
    assert len(found) == 1, f"{len(found)} {kind} {name}"
    return found[0]


def pod_spec(manifest: Manifest) -> Manifest | None:
    return manifest.get("spec", {}).get("template", {}).get("spec")


def containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]
