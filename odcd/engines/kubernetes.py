"""Runs jobs as pods of a Kubernetes cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

import msgspec

from odcd.builds.worker import Builder
from odcd.call_metrics import Calls
from odcd.clock import Clock
from odcd.engines.base import Term
from odcd.errors import BadRequest, RunnerDown
from odcd.executor.base import Executor
from odcd.executor.kubernetes.build_jobs import BuildPlace
from odcd.executor.kubernetes.builds import BuildJobs, Sign
from odcd.executor.kubernetes.checks import JobCheck
from odcd.executor.kubernetes.claims import Claims
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.dev_server_pods import DevServerStorage
from odcd.executor.kubernetes.elastic_nodes import KubernetesElasticNodes
from odcd.executor.kubernetes.executor import KubernetesExecutor
from odcd.executor.kubernetes.fence import Fencer
from odcd.executor.kubernetes.groups import GroupFile
from odcd.executor.kubernetes.objects import Meta, Object
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pods import PodSettings, whole_seconds
from odcd.executor.kubernetes.starts import Budgets
from odcd.executor.kubernetes.template import PodTemplate, read_dev_template, read_template
from odcd.isolation import IsolationWatch
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch
from odcd.records.job import Identity, JobSpec
from odcd.settings import Settings
from odcd.stores.store import Store

log = logging.getLogger(__name__)


class KubernetesEngine:
    runs_as_anyone = True
    ssh = True

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, calls: Calls,
        watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        self._calls = calls
        self._watch = watch
        self._own = settings.kubernetes
        self._builds = settings.builds
        self._disks = settings.disks
        self._disk_mbps = settings.disks.disk_mbps
        self._grace_s = whole_seconds(settings.grace)
        self._store = store
        self._clock = clock
        self._template = PodTemplate()
        self._dev_template: PodTemplate | None = None
        self._groups: GroupFile | None = None
        self._cluster: Cluster | None = None
        self._reader: Executor | None = None
        self._make_keys: Callable[[], DevServerKeys] | None = None
        self._sign: Sign | None = None
        self.node_grace: timedelta | None = self._own.node_grace
        self.quarantine = self._own.quarantine
        self.canaries = self._own.image is not None
        self.check_job: Callable[[Identity, JobSpec], None] = JobCheck(
            self._own.image, self._own.dev_image, settings.builds
        )

    async def prepare(self) -> None:
        if self._own.pod_template is not None:
            self._template = read_template(self._own.pod_template)
        if self._own.dev_pod_template is not None:
            self._dev_template = read_dev_template(self._own.dev_pod_template, self._template)
        if self._own.group_file is not None:
            self._groups = GroupFile(self._own.group_file)
        self._make_keys = _load_keys()
        self._sign = self._load_signer()
        self._cluster = await self._connect()
        self._reader = self._executor(self._cluster, 0)

    async def _connect(self) -> Cluster:
        return await Cluster.connect(self._own.kubeconfig, self._own.context, self._calls)

    async def make(self, lead: Term) -> Executor:
        return self._executor(await self._connect(), lead.term, lambda: lead.certain)

    async def make_builder(self, lead: Term) -> Builder:
        sizes = await self._store.gpu_types.get_sizes()
        types = await self._store.gpu_types.get_instance_types()
        gpus = [instance for instance, name in types.items() if sizes[name].gpus > 0]
        place = BuildPlace(settings=self._builds, term=lead.term, gpu_instances=gpus)
        return BuildJobs(await self._connect(), place, lambda: lead.certain, self._sign)

    def _executor(
        self, cluster: Cluster, term: int, leads: Callable[[], bool] = lambda: False
    ) -> Executor:
        own = self._own
        settings = PodSettings(
            namespaces=own.namespaces,
            image=own.image,
            dev_image=own.dev_image,
            node_ports=own.node_ports,
            storage=DevServerStorage(
                workspace_gib=own.workspace_gib,
                ccache_claim=own.ccache_claim,
                ccache_gib=own.ccache_gib,
                disk_mbps=self._disk_mbps,
            ),
            cluster_domain=own.cluster_domain,
            grace_s=self._grace_s,
            tolerated=own.tolerated,
            template=self._template,
            dev_template=self._dev_template,
            groups=self._groups,
            user_namespaces=own.user_namespaces,
        )
        budgets = Budgets(
            schedule_s=own.schedule_budget.total_seconds(),
            start_s=own.start_budget.total_seconds(),
            ready_s=own.ready_budget.total_seconds(),
            disk_s=own.disk_budget.total_seconds(),
            denied_s=own.denied_budget.total_seconds(),
        )
        return KubernetesExecutor(
            cluster,
            self._clock,
            settings,
            PodOutput(cluster, self._store.outputs, self._clock, own.namespaces, own.output_bytes),
            instance_types=self._store.gpu_types.get_instance_types,
            on_orphans=lambda names: self._store.leader.record_orphans(
                term, names, self._clock.now()
            ),
            orphan_s=own.orphan_grace.total_seconds(),
            leads=leads,
            budgets=budgets,
            fencer=self._fencer(),
            node_grace=own.node_grace,
            log_streams=own.log_streams,
            ensure_keys=lambda dispatch: self._ensure_keys(term, dispatch),
            on_port=lambda dispatch, port, addresses: self._store.dev_servers.set_port(
                term, dispatch.job_id, dispatch.attempt, port, addresses
            ),
            on_contents=lambda job_id, attempt, text, used_bytes: (
                self._store.disk_work.record_contents(term, job_id, attempt, text, used_bytes)
            ),
            watch=self._watch,
        )

    def _fencer(self) -> Fencer | None:
        if self._own.fence == "off":
            return None
        # The library is slow to import, and most servers need it for nothing.
        from odcd.aws.instances import Instances

        region, endpoint = self._disks.aws_region, self._disks.aws_endpoint
        return Instances(self._own.fence, region, endpoint, self._clock)

    async def _ensure_keys(self, term: int, dispatch: Dispatch) -> DevServerKeys | None:
        assert self._make_keys is not None
        made, now = self._make_keys(), self._clock.now()
        return await self._store.dev_servers.put_keys(term, dispatch.job_id, made, now)

    def _load_signer(self) -> Sign | None:
        """None if builds get no credentials, or the key cannot be read: then only builds fail."""
        if self._builds.key is None:
            return None
        from odcd.executor.kubernetes.build_credentials import read_key

        try:
            key = read_key(self._builds.key)
        except BadRequest as error:
            log.error("builds.no_key", extra={"why": error.message})
            return None
        return lambda build: key.config(build, self._builds, self._clock.now())

    async def claim(self, term: int) -> None:
        """Identify the cluster by the uid of the batch namespace, which is unique."""
        assert self._cluster is not None
        name = self._own.namespace_batch
        try:
            body = await self._cluster.get(f"/api/v1/namespaces/{name}")
        except ApiRefused as error:
            raise RunnerDown(
                f"namespace {name} cannot be read: {error.message}",
                "`odcd doctor --executor kubernetes` shows what the cluster lacks.",
            ) from error
        uid = msgspec.json.decode(body, type=_Namespace).metadata.uid
        description = f"cluster {self._cluster.host}, namespace {name}"
        await self._store.leader.claim_host(term, f"kubernetes:{uid}", description)

    def reader(self) -> Executor | None:
        return self._reader

    def claims(self) -> Claims | None:
        assert self._cluster is not None
        return Claims(self._cluster, self._own.namespaces.dev)

    def elastic_nodes(self) -> KubernetesElasticNodes | None:
        assert self._cluster is not None
        return KubernetesElasticNodes(self._cluster)

    async def close(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()


def _load_keys() -> Callable[[], DevServerKeys]:
    """Called before the daemon serves, because it may not be able to read libraries later. Raises
    BadRequest."""
    try:
        from odcd.executor.kubernetes.dev_server_keys import make_keys
    except ImportError as error:
        raise BadRequest(
            f"the Kubernetes executor needs a library: {error}",
            'Install it: pip install "odc[k8s]"',
        ) from error
    return make_keys


class _Namespace(Object):
    metadata: Meta
