"""A plain pod for tests of the test harness; pods of odc are built by odc itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.harness.controlplane.api import Manifest


def a_pod(
    namespace: str,
    name: str,
    node: str = "",
    *,
    image: str = "registry.test/busybox:1",
    command: tuple[str, ...] = ("true",),
    gpus: int = 0,
    spec: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    **behaviour: object,
) -> Manifest:
    """One container, on the node if one is named; `run_s=3` becomes test.odc.dev/run-s: "3"."""
    made: Manifest = {
        "restartPolicy": "Never",
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "job", "image": image, "command": list(command)}],
    }
    if gpus:
        made["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    if node:
        named = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [named]}]}
        made["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    made["containers"][0] |= dict(container or {})
    annotations = {
        f"test.odc.dev/{key.replace('_', '-')}": str(value) for key, value in behaviour.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": made | dict(spec or {}),
    }
