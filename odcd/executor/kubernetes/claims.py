"""Storage of dev servers as PersistentVolumes, each with its own claim. Pods refer to the claim by
name before it exists; the scheduler waits for it.

Deleting these objects deletes no data: the volumes have the policy Retain, and odcd.disks manages
them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.naming import COMPONENT, DISK, MANAGED_BY, NAME
from odcd.executor.kubernetes.objects import Meta, Object

log = logging.getLogger(__name__)

EBS, EFS = "ebs.csi.aws.com", "efs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
OURS = {NAME: "odc", COMPONENT: "disk", MANAGED_BY: "odcd"}
PERSONAL = "odc-personal-"
ANY_SIZE = "1Gi"
"""EFS has no size, but Kubernetes requires one."""
NOT_FOUND, CONFLICT = 404, 409
_VOLUMES = "/api/v1/persistentvolumes"

Json = dict[str, Any]


class _Csi(Object):
    driver: str = ""
    volume_handle: str = ""


class _ClaimRef(Object):
    uid: str = ""


class _VolumeSpec(Object):
    csi: _Csi | None = None
    claim_ref: _ClaimRef = msgspec.field(default_factory=_ClaimRef)


class _Phase(Object):
    phase: str = ""


class _Volume(Object):
    metadata: Meta
    spec: _VolumeSpec
    status: _Phase = msgspec.field(default_factory=_Phase)


class _Claim(Object):
    metadata: Meta
    status: _Phase = msgspec.field(default_factory=_Phase)


def disk_claim(volume_id: int) -> str:
    """volume_id: of the row in disk_volume."""
    return f"{DISK}{volume_id}"


def personal_claim(uid: int) -> str:
    return f"{PERSONAL}{uid}"


class Claims:
    """Every call can be repeated, and raises ApiRefused, RunnerDown."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        """namespace: of dev servers."""
        self._cluster = cluster
        self._namespace = namespace

    async def publish(self, volume_id: int, cloud_id: str, zone: str, size_gib: int) -> None:
        """Create the volume and its claim, so that pods with disk_claim(volume_id) can run in its
        zone."""
        name = disk_claim(volume_id)
        spec = {
            "capacity": {"storage": f"{size_gib}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": EBS, "volumeHandle": cloud_id, "fsType": "ext4"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
                    ]
                }
            },
        }
        await self._publish(name, spec)

    async def publish_personal(self, uid: int, file_system: str, access_point: str) -> None:
        """Same as publish(), for the user's folder on a shared file system."""
        handle = f"{file_system}::{access_point}"
        spec = {
            "capacity": {"storage": ANY_SIZE},
            "accessModes": ["ReadWriteMany"],
            "csi": {"driver": EFS, "volumeHandle": handle},
        }
        await self._publish(personal_claim(uid), spec)

    async def withdraw(self, volume_id: int) -> bool:
        """Delete the claim and the volume. Return True if both are gone, so that no pod and no node
        uses them; False: they are being deleted, call again."""
        return await self._withdraw(disk_claim(volume_id))

    async def withdraw_personal(self, uid: int) -> bool:
        return await self._withdraw(personal_claim(uid))

    # -- one volume and its claim ---------------------------------------------------------------

    async def _publish(self, name: str, spec: Json) -> None:
        volume, claim = self._objects(name, spec)
        csi, bound_to = spec["csi"], ""
        if not await self._make(_VOLUMES, volume):
            body = await self._find(f"{_VOLUMES}/{name}")
            found = body and msgspec.json.decode(body, type=_Volume)
            there = found.spec.csi if found else None
            if (
                not found
                or found.metadata.deletion_timestamp is not None
                # Its claim was deleted: it is reserved for that claim, and takes no other.
                or found.status.phase == "Released"
                or there is None
                or (there.driver, there.volume_handle) != (csi["driver"], csi["volumeHandle"])
            ):
                raise await self._stranger(name)
            bound_to = found.spec.claim_ref.uid
        if await self._make(self._claims, claim):
            # Its claim was deleted just now, and Kubernetes has not marked the volume as released
            # yet.
            if bound_to:
                raise await self._stranger(name)
            return
        body = await self._find(f"{self._claims}/{name}")
        held = body and msgspec.json.decode(body, type=_Claim)
        # Lost: bound to a former volume of this name; it takes no other.
        if (
            not held
            or held.metadata.deletion_timestamp
            or held.status.phase == "Lost"
            or bound_to not in ("", held.metadata.uid)
        ):
            raise await self._stranger(name)

    def _objects(self, name: str, spec: Json) -> tuple[Json, Json]:
        """The volume and its claim."""
        labels = {"name": name, "labels": OURS}
        # Bind them to each other from the start: no other claim can take the volume, and no storage
        # class creates another volume for the claim.
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": labels,
            "spec": {
                **spec,
                "volumeMode": "Filesystem",
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "name": name,
                    "namespace": self._namespace,
                },
            },
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**labels, "namespace": self._namespace},
            "spec": {
                "accessModes": spec["accessModes"],
                "resources": {"requests": spec["capacity"]},
                "volumeMode": "Filesystem",
                "storageClassName": "",
                "volumeName": name,
            },
        }
        return volume, claim

    async def _stranger(self, name: str) -> RunnerDown:
        """Remove an object of another database, of this one before a restore, or one that is being
        deleted."""
        log.warning("kubernetes.name_taken", extra={"claim": name})
        await self._withdraw(name)
        return RunnerDown(f"another volume has the name {name}", "It is being removed.")

    async def _withdraw(self, name: str) -> bool:
        paths = (f"{self._claims}/{name}", f"{_VOLUMES}/{name}")
        for path in paths:
            await self._remove(path)
        # Finalizers keep objects that a pod uses or a node has attached.
        there = await asyncio.gather(*(self._find(path) for path in paths))
        return there == [None, None]

    @property
    def _claims(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"

    async def _make(self, path: str, body: Json) -> bool:
        """Return False if an object of that name exists."""
        try:
            await self._cluster.post(path, body)
        except ApiRefused as error:
            if error.status != CONFLICT or error.reason != "AlreadyExists":
                raise
            return False
        return True

    async def _remove(self, path: str) -> None:
        try:
            await self._cluster.delete(path)
        except ApiRefused as error:
            if error.status != NOT_FOUND:
                raise

    async def _find(self, path: str) -> bytes | None:
        try:
            return await self._cluster.get(path)
        except ApiRefused as error:
            if error.status == NOT_FOUND:
                return None
            raise
