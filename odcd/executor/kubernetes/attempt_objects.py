"""The objects that an attempt has besides its pods: its script, or the files and keys of a dev
server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcd.executor.kubernetes import dev_server_pods, naming
from odcd.executor.kubernetes.dev_server_pods import DevServerStorage
from odcd.executor.kubernetes.launch import script_data
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch

INLINE_BYTES = 8 * 1024
"""A longer script is not part of its pod: odcd keeps all pods in memory."""

Json = dict[str, Any]


def inline_script(dispatch: Dispatch, texts: Mapping[str, str]) -> str | None:
    """The script of a job on one node, if it is short: then its start is one request to the API
    server instead of two. None: the script is in a ConfigMap."""
    if dispatch.is_dev_server or len(dispatch.members) > 1:
        return None
    script = texts[dispatch.script_digest]
    return script if len(script.encode()) <= INLINE_BYTES else None


def script_of(dispatch: Dispatch, script: str, namespace: str, owner_uid: str) -> Json:
    """The ConfigMap owned by the pod of rank 0. owner_uid: that pod's."""
    data = script_data(script)
    assert data is not None, "submit refuses longer scripts"
    return _beside(dispatch, "ConfigMap", namespace, owner_uid) | data


def dev_server_objects(
    dispatch: Dispatch,
    keys: DevServerKeys,
    namespace: str,
    owner_uid: str,
    storage: DevServerStorage,
) -> list[tuple[str, Json]]:
    """The objects that a dev server has instead of a script, each with its resource name in the
    API."""
    files = {"data": dev_server_pods.files_of(dispatch, keys, storage)}
    made = [("configmaps", _beside(dispatch, "ConfigMap", namespace, owner_uid) | files)]
    if not dev_server_pods.keeps_entrypoint(dispatch):
        secret = {"type": "Opaque", "stringData": dev_server_pods.secret_of(dispatch, keys)}
        made.append(("secrets", _beside(dispatch, "Secret", namespace, owner_uid) | secret))
    return made


def _beside(dispatch: Dispatch, kind: str, namespace: str, owner_uid: str) -> Json:
    """An object without data, owned by the pod of rank 0."""
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": naming.script_name(dispatch),
            "namespace": namespace,
            "labels": naming.labels(*dispatch.key, None),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": naming.pod_name(*dispatch.key, 0),
                    "uid": owner_uid,
                }
            ],
        },
        "immutable": True,
    }
