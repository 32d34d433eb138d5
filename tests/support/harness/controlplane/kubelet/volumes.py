"""A pod's volumes on this machine: folders that containers see at their mount paths."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane.kubelet.env import NotYet

_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6,
          "G": 10**9, "T": 10**12}  # fmt: skip


def bytes_of(quantity: str) -> int:
    """`512Mi` -> 536870912."""
    for unit, size in _UNITS.items():
        if quantity.endswith(unit):
            return int(float(quantity.removesuffix(unit)) * size)
    return int(float(quantity))


def needed_volume_configmaps(pod: Mapping[str, Any]) -> set[str]:
    return {
        volume["configMap"]["name"]
        for volume in pod["spec"].get("volumes", [])
        if "configMap" in volume and not volume["configMap"].get("optional")
    }


def needed_secrets(pod: Mapping[str, Any]) -> set[str]:
    return {
        volume["secret"]["secretName"]
        for volume in pod["spec"].get("volumes", [])
        if "secret" in volume
    }


def needed_claims(pod: Mapping[str, Any]) -> set[str]:
    return {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes", [])
        if "persistentVolumeClaim" in volume
    }


def attached(volume: Mapping[str, Any], folder: Path) -> Path:
    """The folder for a volume of a CSI driver, by its handle. A new folder looks like an empty file
    system, or like a new access point of EFS."""
    handle: str = volume["spec"]["csi"]["volumeHandle"]
    path = folder / handle
    if not path.exists():
        path.mkdir(parents=True)
        if handle.startswith("fs-"):
            os.chown(path, 1081, 1081)
            path.chmod(0o700)
    return path


def materialise(
    pod: Mapping[str, Any],
    folder: Path,
    configmaps: Mapping[str, Mapping[str, Any]],
    secrets: Mapping[str, Mapping[str, Any]],
    claims: Mapping[str, Path],
) -> dict[str, dict[str, Any]]:
    """Name -> what container.py mounts: a source, or a tmpfs. configmaps, secrets: name -> object.
    claims: name -> folder."""
    made: dict[str, dict[str, Any]] = {}
    group = pod["spec"].get("securityContext", {}).get("fsGroup")
    for volume in pod["spec"].get("volumes", []):
        name = volume["name"]
        path = folder / name
        if "configMap" in volume:
            _write_configmap(path, volume["configMap"], configmaps)
            made[name] = {"source": str(path), "read_only": True}
        elif "secret" in volume:
            data = secrets[volume["secret"]["secretName"]].get("data", {})
            named = {**volume["secret"], "name": "one"}
            _write_configmap(path, named, {"one": {"binaryData": data}}, group)
            made[name] = {"source": str(path), "read_only": True}
        elif "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            made[name] = {"source": str(claims[claim]), "read_only": False}
        elif "emptyDir" in volume:
            made[name] = _empty(path, volume["emptyDir"], group)
        elif "projected" in volume:  # a service account's token, which is not needed here
            path.mkdir(parents=True, exist_ok=True)
            made[name] = {"source": str(path), "read_only": True}
        elif "hostPath" in volume:
            made[name] = {"source": volume["hostPath"]["path"], "read_only": False}
        else:
            raise NotYet("ContainerCreating", f"volume {name}: no such kind on these nodes")
    return made


def mounts(
    container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The mounts that container.py makes for one container."""
    made: list[dict[str, Any]] = []
    for one in container.get("volumeMounts", []):
        volume = dict(volumes[one["name"]])
        if "source" in volume:
            volume["source"] = str(Path(volume["source"]) / one.get("subPath", ""))
        volume["read_only"] |= one.get("readOnly", False)
        made.append({**volume, "target": one["mountPath"]})
    return made


def _empty(path: Path, source: Mapping[str, Any], group: int | None) -> dict[str, Any]:
    """On disk, where containers of a pod share it; in memory only if a limit is set."""
    limit = source.get("sizeLimit")
    if source.get("medium") == "Memory" and limit is not None:
        return {"tmpfs_bytes": bytes_of(limit), "read_only": False}
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    if group is not None:
        os.chown(path, -1, group)
        path.chmod(0o2777)
    return {"source": str(path), "read_only": False}


def _write_configmap(
    path: Path, source: Mapping[str, Any], configmaps: Mapping[str, Mapping[str, Any]],
    group: int | None = None,
) -> None:  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    found = configmaps.get(source["name"], {})
    data = {key: text.encode() for key, text in found.get("data", {}).items()}
    data |= {key: b64decode(text) for key, text in found.get("binaryData", {}).items()}
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    for item in items:
        if item["key"] not in data:
            if source.get("optional"):
                continue
            message = f"references non-existent config key: {item['key']}"
            raise NotYet("ContainerCreating", message)
        file = path / item["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data[item["key"]])
        file.chmod(item.get("mode", source.get("defaultMode", 0o644)))
        if group is not None:
            os.chown(file, -1, group)
