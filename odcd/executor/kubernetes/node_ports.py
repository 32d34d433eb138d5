"""A node port for the SSH of a dev server: one service per dev server, deleted with its pods.

The API server assigns the number, so it is unique. A member is only reachable through its own node,
by the same number on every node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.dev_server_pods import SSH_PORT
from odcd.executor.kubernetes.objects import Node, Object
from odcd.records.dispatch import Dispatch

Json = dict[str, Any]
PREFERRED = ("ExternalIP", "InternalIP")


class _Port(Object):
    node_port: int = 0


class _Spec(Object):
    ports: list[_Port]


class _Service(Object):
    spec: _Spec


def service_of(dispatch: Dispatch, namespace: str, owner_uid: str) -> Json:
    """owner_uid: of the pod of rank 0."""
    own = naming.labels(*dispatch.key, None)
    chosen = (naming.MANAGED_BY, naming.JOB_ID, naming.ATTEMPT)
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": naming.pod_name(*dispatch.key, 0),
        "uid": owner_uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name_of(dispatch),
            "namespace": namespace,
            "labels": own,
            "ownerReferences": [owner],
        },
        "spec": {
            "type": "NodePort",
            "externalTrafficPolicy": "Local",
            "selector": {key: own[key] for key in chosen},
            "ports": [{"name": "ssh", "protocol": "TCP", "port": 22, "targetPort": SSH_PORT}],
        },
    }


def name_of(dispatch: Dispatch) -> str:
    return f"odc-{dispatch.job_id}-{dispatch.attempt}-ssh"


def port_in(answer: bytes) -> int | None:
    """The node port of a service in the API server's answer."""
    return next((p.node_port for p in msgspec.json.decode(answer, type=_Service).spec.ports), None)


def addresses_of(dispatch: Dispatch, nodes: Mapping[str, Node]) -> Sequence[str]:
    """By rank: the address of the member's node; empty if it has none."""
    return [_address(nodes.get(member.node)) for member in dispatch.members]


def _address(node: Node | None) -> str:
    by_type = {one.type: one.address for one in node.status.addresses} if node is not None else {}
    return next((by_type[kind] for kind in PREFERRED if by_type.get(kind)), "")
