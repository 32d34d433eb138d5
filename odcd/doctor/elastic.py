"""Check what elastic groups need of AWS and of the cluster."""

from __future__ import annotations

from odcd.disks.cloud import CloudBusy, CloudRefused
from odcd.disks.settings import DiskSettings
from odcd.doctor.host import Finding
from odcd.elastic.settings import ElasticSettings
from odcd.errors import OdcError
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.settings import KubernetesSettings

RIGHTS = "Give odcd the rights that docs/operating/cloud.md#elastic-groups names."
NODES = "Use the component k8s/components/fence: it lets odcd taint nodes that are to be removed."


async def examine_elastic(
    own: ElasticSettings, disks: DiskSettings, kubernetes: KubernetesSettings
) -> list[Finding]:
    """No findings if odcd changes no groups."""
    if own.elastic_cluster is None:
        return []
    return [await _groups(own.elastic_cluster, disks), *await _nodes(kubernetes)]


async def _groups(name: str, disks: DiskSettings) -> Finding:
    try:
        from odcd.aws.groups import Groups
    except ImportError as error:
        hint = 'Install it: pip install "odc[aws]"'
        return Finding(about="elastic", verdict="bad", text=f"a library lacks: {error}", hint=hint)
    cloud = Groups(name, disks.aws_region, disks.aws_endpoint)
    await cloud.open()
    try:
        groups = await cloud.groups()
    except (CloudBusy, CloudRefused) as error:
        return Finding(about="elastic", verdict="bad", text=str(error), hint=RIGHTS)
    finally:
        await cloud.close()
    problems = [f"{group.name}: {group.problem}" for group in groups if group.problem]
    if problems or not groups:
        tags = f"odc.dev/cluster={name} and odc.dev/elastic=true"
        return Finding(
            about="elastic",
            verdict="bad",
            text="; ".join(problems) or f"no Auto Scaling group has the tags {tags}",
            hint="See docs/operating/cloud.md#elastic-groups.",
        )
    sizes = ", ".join(f"{g.name} ({g.min_nodes} to {g.max_nodes} nodes)" for g in groups)
    return Finding(about="elastic", verdict="ok", text=f"elastic groups: {sizes}")


async def _nodes(settings: KubernetesSettings) -> list[Finding]:
    """Whether odcd may taint nodes. Nothing is changed: there is no such node."""
    try:
        cluster = await Cluster.connect(settings.kubeconfig, settings.context)
    except OdcError:
        return []  # The check of the cluster reports it.
    try:
        await cluster.patch("/api/v1/nodes/odc-doctor-asks?dryRun=All", {})
    except ApiRefused as error:
        if error.status == 403:
            text = f"odcd may not taint nodes: {error.message}"
            return [Finding(about="elastic", verdict="bad", text=text, hint=NODES)]
    except OdcError:
        return []
    finally:
        await cluster.close()
    return [Finding(about="elastic", verdict="ok", text="odcd may taint nodes that it removes")]
