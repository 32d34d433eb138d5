"""Checks by dry runs whether a cluster admits the pods that odcd creates, and only those."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from odcd.doctor.builds import MANIFESTS
from odcd.doctor.host import Finding
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import Inventory, offer_of
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.records.dispatch import Dispatch, Member
from odcd.records.node import NodeReport


async def examine_pods(
    cluster: Cluster, own: PodSettings, inventory: Inventory, nodes: Mapping[str, Node]
) -> AsyncIterator[Finding]:
    """Check that the pods of a job would be admitted: a dry run for each kind of node."""
    kinds: dict[tuple[str, bool], NodeReport] = {}
    for node in inventory.nodes:
        kinds.setdefault((node.gpu_type, offer_of(nodes[node.name]).efa > 0), node)
    admitted: list[str] = []
    fenced: dict[str, str] = {}
    for (gpu_type, _), node in sorted(kinds.items()):
        offers = {node.name: offer_of(nodes[node.name])}
        kind = "job"
        try:
            examples = {"job": _example(node), "dev server": _example_dev_server(node)}
            for kind, dispatch in examples.items():
                pod = pod_of(dispatch, dispatch.members[0], {}, offers, own)
                namespace = pod["metadata"]["namespace"]
                path = f"/api/v1/namespaces/{namespace}/pods"
                await cluster.post(path, pod, [("dryRun", "All")])
                if kind == "job":
                    admitted.append(f"{gpu_type} in {namespace}")
                if namespace not in fenced:
                    fenced[namespace] = await _refusal_of_a_strange_pod(cluster, path, pod)
        except ApiRefused as error:
            if "only odcd makes" in error.message:
                yield Finding(
                    about="admission",
                    verdict="note",
                    text="not tried: only odcd's own account may create pods",
                    hint="Run this where odcd runs: kubectl -n gpu-controlplane exec deploy/odcd "
                    "-- odcd doctor --executor kubernetes",
                )
                return
            yield Finding(
                about="admission",
                verdict="bad",
                text=f"a {kind} on a whole {gpu_type} node would be refused: {error.message}",
                hint=f"Policies and manifests must be of the same version of odc. {MANIFESTS}",
            )
    if admitted:
        yield Finding(
            about="admission",
            verdict="ok",
            text=f"jobs and dev servers are admitted: {', '.join(admitted)}",
        )
    for namespace in sorted(name for name, refusal in fenced.items() if not refusal):
        yield Finding(
            about="fences",
            verdict="bad",
            text=f"a pod that odcd never creates would be admitted in {namespace}",
            hint=f"The admission policies are missing, or not bound. {MANIFESTS}",
        )
    if fenced and all(fenced.values()):
        yield Finding(
            about="fences",
            verdict="note",
            text="pods that odcd never creates are refused; networks and quotas are not checked",
            hint="odcd may not read them: kubectl get networkpolicy,resourcequota -A",
        )


async def _refusal_of_a_strange_pod(cluster: Cluster, path: str, pod: dict[str, Any]) -> str:
    """Return the error that rejects a job's pod with a second container, as a dry run; empty if it
    is admitted."""
    strange = copy.deepcopy(pod)
    strange["spec"]["containers"].append(
        {"name": "stranger", "image": pod["spec"]["containers"][0]["image"]}
    )
    try:
        await cluster.post(path, strange, [("dryRun", "All")])
    except ApiRefused as error:
        return error.message
    return ""


def _example_dev_server(node: NodeReport) -> Dispatch:
    return replace(_example(node), kind="reservation", ask={})


def _example(node: NodeReport) -> Dispatch:
    """A job that uses a whole node."""
    member = Member(
        rank=0, node=node.name, gpu_type=node.gpu_type, gpu_indexes=tuple(range(node.gpus)),
        cpus=node.cpus, mem_mib=node.mem_mib, node_gpus=node.gpus, node_cpus=node.cpus,
        node_mem_mib=node.mem_mib, virtual=False,
    )  # fmt: skip
    return Dispatch(
        term=0, job_id=0, attempt=0, array_job_id=None, array_task_id=None, array_min=None,
        array_max=None, array_count=None, array_step=None, name="doctor", user="doctor", uid=65534,
        gid=65534, account="default", partition="main", qos="normal", work_dir="/", umask=0o022,
        stdin=None, stdout=None, stderr=None, open_mode="truncate", script_digest="",
        environment_digest="", args=(), options={}, submit_host="doctor", restarts=0,
        started_at=datetime(2000, 1, 1, tzinfo=UTC), ends_at=None, signal_number=None,
        signal_before_s=None, signal_batch=False, members=(member,),
    )  # fmt: skip
