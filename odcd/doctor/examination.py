"""The record that the checks of a Kubernetes cluster share."""

from __future__ import annotations

from dataclasses import dataclass

from odcd.builds.settings import BuildSettings
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.inventory import Inventory
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.pods import PodSettings
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.kubernetes.template import PodTemplate

EXAMPLE_IMAGE = "registry.example/job:1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The pod templates of the site. dev_servers: None if it is that of jobs."""

    jobs: PodTemplate
    dev_servers: PodTemplate | None


class Examination:
    """The cluster, the settings, and the inventory that examine_nodes takes for later checks."""

    def __init__(
        self, cluster: Cluster, settings: KubernetesSettings, templates: Templates, grace_s: int,
        builds: BuildSettings,
    ) -> None:  # fmt: skip
        self.builds = builds
        self.cluster = cluster
        self.settings = settings
        self.pods = PodSettings(
            namespaces=settings.namespaces,
            image=settings.image or EXAMPLE_IMAGE,
            dev_image=settings.dev_image or EXAMPLE_IMAGE,
            cluster_domain=settings.cluster_domain,
            grace_s=grace_s,
            tolerated=settings.tolerated,
            template=templates.jobs,
            dev_template=templates.dev_servers,
            user_namespaces=settings.user_namespaces,
        )
        self.inventory = Inventory()
        self.nodes: dict[str, Node] = {}
        self.cluster_pods: list[Pod] = []
