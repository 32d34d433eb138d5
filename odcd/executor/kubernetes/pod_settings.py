"""The settings that the manifests of pods depend on."""

from __future__ import annotations

from dataclasses import dataclass, field

from odcd.executor.kubernetes.dev_server_pods import DevServerStorage
from odcd.executor.kubernetes.groups import GroupFile
from odcd.executor.kubernetes.naming import Namespaces
from odcd.executor.kubernetes.template import PodTemplate
from odcd.executor.kubernetes.tolerations import Terms, tolerations_of
from odcd.records.dispatch import Dispatch


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """The parameters of all manifests of pods, besides the dispatch and the node."""

    namespaces: Namespaces = field(default_factory=Namespaces)
    image: str | None = None
    """The image of jobs that name none; None: they must name one."""
    dev_image: str | None = None
    """The same for dev servers."""
    node_ports: bool = False
    """Whether a dev server's SSH is also reachable by a node port."""
    storage: DevServerStorage = field(default_factory=DevServerStorage)
    """The storage of dev servers."""
    cluster_domain: str = "cluster.local"
    cluster_name: str = "odc"
    grace_s: int = 30
    tolerated: tuple[str, ...] = ()
    template: PodTemplate = field(default_factory=PodTemplate)
    dev_template: PodTemplate | None = None
    """The additions to dev servers; None: the same as to jobs."""
    groups: GroupFile | None = None
    """The groups of users; None: jobs have the group of their submission only."""
    user_namespaces: bool = True
    """Whether dev servers get users of their own on nodes that support it."""

    def groups_of(self, dispatch: Dispatch) -> tuple[int, ...]:
        return self.groups.of(dispatch.user) if self.groups is not None else ()

    def template_of(self, dispatch: Dispatch) -> PodTemplate:
        if dispatch.is_dev_server and self.dev_template is not None:
            return self.dev_template
        return self.template

    @property
    def terms(self) -> Terms:
        """The conditions under which a node accepts these pods."""
        added = self.template.additions
        return Terms(
            tolerations=[*tolerations_of(self.tolerated), *added.get("tolerations", [])],
            selector=added.get("nodeSelector", {}),
        )
