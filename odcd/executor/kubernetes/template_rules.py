"""The fields that a site's pod template must not contain: they would give every user rights on
nodes, or the files of others. An admission policy refuses such pods, too, but only when the first
job starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from odcd.errors import BadRequest
from odcd.executor.kubernetes import naming

NEVER = {
    "privileged": "a privileged container has every right on its node",
    "allowPrivilegeEscalation": "odc sets the rights of containers",
    "capabilities": "odc sets the rights of containers",
    "securityContext": "odc sets the user and the rights of containers",
    "procMount": "it exposes files of the node's kernel",
    "hostPath": "it is a folder of the node",
    "hostNetwork": "the pod would have the network of its node",
    "hostPID": "the pod would see the processes of its node",
    "hostIPC": "the pod would share memory with processes of its node",
    "hostPort": "it is a port of the node",
    "hostUsers": "odc sets it where a node supports it",
    "nodeName": "odc's planner chooses the node",
    "schedulerName": "only the scheduler of Kubernetes checks what odc has planned",
    "serviceAccountName": "jobs have an account without rights",
    "automountServiceAccountToken": "jobs have no access to the API server",
    "mountPropagation": "mounts of a container would appear on its node",
}
"""Fields that are refused wherever they are, and why."""
VOLUMES = frozenset({"persistentVolumeClaim", "emptyDir", "nfs"})
"""Kinds of volumes that are neither the node's nor another user's."""
OWN_CLAIMS = "odc-"
"""Claims with this prefix are disks of dev servers."""
PROFILES = ("container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha")
PLACES = ("/odc", "/dev", "/proc", "/sys", "/etc/odc")
"""Folders in which odc and the container runtime mount files."""


def check_additions(additions: Mapping[str, Any], what: str) -> None:
    """what: the template, as an error names it. Raises BadRequest, naming the field."""
    for field, why in (*_anywhere(additions, ""), *_in_place(additions)):
        raise BadRequest(
            f"{what} has {field}, which odc does not accept: {why}",
            "Remove it. A template adds volumes, tolerations, labels and variables only.",
        )


def _anywhere(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            place = f"{path}.{key}" if path else str(key)
            if key in NEVER:
                yield place, NEVER[key]
            yield from _anywhere(inner, place)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[object]", value)):
            yield from _anywhere(inner, f"{path}[{number}]")


def _in_place(additions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for number, volume in enumerate(_entries(additions, "volumes")):
        yield from _wrong_volume(volume, f"volumes[{number}]")
    for number, mount in enumerate(_entries(additions, "volumeMounts")):
        path = str(mount.get("mountPath", ""))
        if any(path == place or path.startswith(f"{place}/") for place in PLACES):
            yield f"volumeMounts[{number}].mountPath", f"{path} belongs to odc or to the runtime"
    for number, variable in enumerate(_entries(additions, "env")):
        if variable.get("name") == "NVIDIA_VISIBLE_DEVICES":
            yield f"env[{number}].name", "a container takes GPUs with it that it was not given"
    for number, toleration in enumerate(_entries(additions, "tolerations")):
        if not toleration.get("key"):
            yield f"tolerations[{number}]", "without a key, jobs would run on every node"
    for kind in ("labels", "annotations"):
        for key in additions.get(kind) or {}:
            if str(key).startswith((f"{naming.DOMAIN}/", "app.kubernetes.io/", *PROFILES)):
                yield f"{kind}.{key}", "policies and odc itself go by it"


def _wrong_volume(volume: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for kind in volume:
        if kind != "name" and kind not in VOLUMES:
            yield f"{path}.{kind}", f"a volume is one of {', '.join(sorted(VOLUMES))}"
    claim = volume.get("persistentVolumeClaim")
    name = str(cast("dict[str, Any]", claim).get("claimName", "")) if claim else ""
    if name.startswith(OWN_CLAIMS):
        yield f"{path}.persistentVolumeClaim.claimName", f"{name} is the disk of a user"


def _entries(additions: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Entries that are no mappings are left to the API server, which names them."""
    found = additions.get(key)
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]
