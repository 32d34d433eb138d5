"""The record that the checks of a Kubernetes cluster share."""

from __future__ import annotations

from odcd.builds.settings import BuildSettings
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.inventory import Inventory
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pods import PodSettings
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.kubernetes.template import PodTemplate

EXAMPLE_IMAGE = "registry.example/job:1.0"


class Examination:
    """The cluster, the settings, and the inventory that examine_nodes takes for later checks."""

    def __init__(
        self, cluster: Cluster, settings: KubernetesSettings, template: PodTemplate, grace_s: int,
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
            template=template,
        )
        self.inventory = Inventory()
        self.nodes: dict[str, Node] = {}
