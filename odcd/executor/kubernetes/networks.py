"""The network of a gang: its members reach each other, and no other pod reaches them.

The manifests deny everything to the pods of jobs except names and the internet, before any of them
exists. So a pod without a policy of its own reaches no other, and a missing policy opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcd.executor.kubernetes import naming
from odcd.records.dispatch import Dispatch

GROUP = "networking.k8s.io/v1"

Json = dict[str, Any]


def has_network(dispatch: Dispatch) -> bool:
    """Whether it has members that must reach each other."""
    return len(dispatch.members) > 1


def path_of(namespace: str) -> str:
    return f"/apis/{GROUP}/namespaces/{namespace}/networkpolicies"


def policy_of(dispatch: Dispatch, namespace: str, owners: Mapping[str, str]) -> Json:
    """owners: the uids of the gang's pods, by name. All of them own it, because members may use the
    network after the first of them has ended."""
    members = {
        naming.MANAGED_BY: naming.OURS[naming.MANAGED_BY],
        naming.JOB_ID: str(dispatch.job_id),
        naming.ATTEMPT: str(dispatch.attempt),
    }
    peers = [{"podSelector": {"matchLabels": members}}]
    return {
        "apiVersion": GROUP,
        "kind": "NetworkPolicy",
        "metadata": {
            "name": naming.script_name(dispatch),
            "namespace": namespace,
            "labels": naming.labels(*dispatch.key, None),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
                for name, uid in owners.items()
            ],
        },
        "spec": {
            "podSelector": {"matchLabels": members},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": peers}],
            "egress": [{"to": peers}],
        },
    }
