"""Chooses the executor from the settings; a leader creates one for its term."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from odcd.builds.worker import Builder
from odcd.call_metrics import Calls
from odcd.clock import Clock
from odcd.errors import BadRequest, RunnerDown
from odcd.executor.base import Executor
from odcd.executor.job_rules import check_user
from odcd.executor.kubernetes.boxes import BoxStorage
from odcd.executor.kubernetes.build_jobs import BuildPlace
from odcd.executor.kubernetes.builds import BuildJobs
from odcd.executor.kubernetes.checks import JobCheck, refuse_images
from odcd.executor.kubernetes.claims import Claims
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.executor import KubernetesExecutor
from odcd.executor.kubernetes.objects import Meta, Object
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pods import PodSettings, whole_seconds
from odcd.executor.kubernetes.starts import Budgets
from odcd.executor.kubernetes.template import PodTemplate, read_template
from odcd.executor.local import LocalExecutor
from odcd.executor.output import check_patterns
from odcd.jobs.reservations import check_local
from odcd.metrics import Metrics
from odcd.records.dev_server import BoxKeys
from odcd.records.dispatch import Dispatch
from odcd.records.job import Identity, JobSpec
from odcd.settings import Settings
from odcd.stores.store import Store

log = logging.getLogger(__name__)

Launcher = Callable[[], Awaitable[None]]


class Term(Protocol):
    """A leader's term."""

    @property
    def term(self) -> int: ...

    @property
    def certain(self) -> bool:
        """True while no other daemon can be leading yet."""
        ...


class Engine(Protocol):
    node_grace: timedelta | None
    """How long a node may be unreachable before its jobs end; None: they are never ended for
    that."""
    quarantine: bool
    """Whether nodes on which jobs keep failing are quarantined."""
    canaries: bool
    """Whether canaries can test a quarantined node."""
    check_job: Callable[[Identity, JobSpec], None]
    """Raises the reason to reject a job at submit."""

    ssh: bool
    """Whether users enter dev servers by SSH, which requires their public keys."""
    runs_as_anyone: bool
    """Whether jobs of every user can run, whichever account runs the daemon."""

    async def prepare(self) -> None:
        """Called before the daemon serves. Raises BadRequest or OtherHost when it can never
        work."""
        ...

    async def make(self, lead: Term) -> Executor:
        """Create the executor for a leader, which closes it."""
        ...

    async def claim(self, term: int) -> None:
        """Claim the database for this executor. Raises OtherHost, RunnerDown."""
        ...

    async def make_builder(self, lead: Term) -> Builder:
        """Create the builder of images from users' Dockerfiles, for a leader, which closes it.
        Called only if the settings name a registry."""
        ...

    def reader(self) -> Executor | None:
        """An executor that only reads, for a follower's requests, such as logs; None if there is
        none."""
        ...

    def claims(self) -> Claims | None:
        """The disk claims of its dev servers; None if they have no disks."""
        ...

    async def close(self) -> None: ...


def make_engine(
    settings: Settings, store: Store, clock: Clock, launcher: Launcher, metrics: Metrics
) -> Engine:
    if settings.executor == "kubernetes":
        return KubernetesEngine(settings, store, clock, metrics.backend("kubernetes"))
    return LocalEngine(settings, store, clock, launcher, metrics.backend("runner"))


def check_local_job(who: Identity, spec: JobSpec) -> None:
    """Raises BadRequest, NotImplementedYet."""
    check_local(who, spec)
    check_patterns(who, spec)
    refuse_images(who, spec)


class LocalEngine:
    runs_as_anyone = False  # as root it can; the daemon checks that itself
    node_grace: timedelta | None = None
    quarantine = False
    canaries = False
    ssh = False

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, launcher: Launcher, calls: Calls
    ) -> None:
        self._calls = calls
        self._settings = settings
        self._store = store
        self._clock = clock
        self._launcher = launcher
        self._rules = settings.jobs.rules()

    def check_job(self, who: Identity, spec: JobSpec) -> None:
        """Raises BadRequest, NotImplementedYet, NotAllowed."""
        if self._settings.serves_all:
            check_user(self._rules, who.uid)
        check_local_job(who, spec)

    async def prepare(self) -> None:
        await self._store.leader.check_host(*_place(self._settings.runner_folder))

    async def make(self, lead: Term) -> Executor:
        return LocalExecutor(
            self._settings.runner_folder,
            self._launcher,
            self._clock,
            nodes=self._settings.nodes,
            self_node=self._settings.self_node,
            sizes=self._store.gpu_types.get_sizes,
            calls=self._calls,
        )

    async def claim(self, term: int) -> None:
        await self._store.leader.claim_host(term, *_place(self._settings.runner_folder))

    async def make_builder(self, lead: Term) -> Builder:
        raise AssertionError("processes of a machine have no registry")

    def reader(self) -> Executor | None:
        """None: another daemon on this machine would be the leader."""
        return None

    def claims(self) -> Claims | None:
        """None: home folders are on the machine itself."""
        return None

    async def close(self) -> None:
        pass


class KubernetesEngine:
    runs_as_anyone = True
    ssh = True

    def __init__(self, settings: Settings, store: Store, clock: Clock, calls: Calls) -> None:
        self._calls = calls
        self._own = settings.kubernetes
        self._builds = settings.builds
        self._disk_mbps = settings.disks.disk_mbps
        self._grace_s = whole_seconds(settings.grace)
        self._store = store
        self._clock = clock
        self._template = PodTemplate()
        self._cluster: Cluster | None = None
        self._reader: Executor | None = None
        self._make_keys: Callable[[], BoxKeys] | None = None
        self.node_grace: timedelta | None = self._own.node_grace
        self.quarantine = self._own.quarantine
        self.canaries = self._own.image is not None
        self.check_job: Callable[[Identity, JobSpec], None] = JobCheck(
            self._own.image, self._own.dev_image
        )

    async def prepare(self) -> None:
        if self._own.pod_template is not None:
            self._template = read_template(self._own.pod_template)
        self._make_keys = _load_keys()
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
        return BuildJobs(await self._connect(), place, lambda: lead.certain)

    def _executor(
        self, cluster: Cluster, term: int, leads: Callable[[], bool] = lambda: False
    ) -> Executor:
        own = self._own
        settings = PodSettings(
            namespaces=own.namespaces,
            image=own.image,
            dev_image=own.dev_image,
            node_ports=own.node_ports,
            storage=BoxStorage(
                workspace_gib=own.workspace_gib,
                ccache_claim=own.ccache_claim,
                ccache_gib=own.ccache_gib,
                disk_mbps=self._disk_mbps,
            ),
            cluster_domain=own.cluster_domain,
            grace_s=self._grace_s,
            tolerated=own.tolerated,
            template=self._template,
        )
        budgets = Budgets(
            schedule_s=own.schedule_budget.total_seconds(),
            start_s=own.start_budget.total_seconds(),
            ready_s=own.ready_budget.total_seconds(),
            disk_s=own.disk_budget.total_seconds(),
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
            box_keys=lambda dispatch: self._keep_keys(term, dispatch),
            on_port=lambda dispatch, port, addresses: self._store.dev_servers.set_port(
                term, dispatch.job_id, dispatch.attempt, port, addresses
            ),
            on_contents=lambda job_id, attempt, text, used_bytes: (
                self._store.disk_work.record_contents(term, job_id, attempt, text, used_bytes)
            ),
        )

    async def _keep_keys(self, term: int, dispatch: Dispatch) -> BoxKeys | None:
        assert self._make_keys is not None
        made, now = self._make_keys(), self._clock.now()
        return await self._store.dev_servers.put_keys(term, dispatch.job_id, made, now)

    async def claim(self, term: int) -> None:
        """Identify the cluster by the uid of the batch namespace, which is unique."""
        assert self._cluster is not None
        name = self._own.namespace_batch
        try:
            body = await self._cluster.get(f"/api/v1/namespaces/{name}")
        except ApiRefused as error:
            raise RunnerDown(
                f"namespace {name} cannot be read: {error.message}",
                "`odcd doctor --executor kubernetes` says what the cluster lacks.",
            ) from error
        uid = msgspec.json.decode(body, type=_Namespace).metadata.uid
        told = f"cluster {self._cluster.host}, namespace {name}"
        await self._store.leader.claim_host(term, f"kubernetes:{uid}", told)

    def reader(self) -> Executor | None:
        return self._reader

    def claims(self) -> Claims | None:
        assert self._cluster is not None
        return Claims(self._cluster, self._own.namespaces.dev)

    async def close(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()


def _load_keys() -> Callable[[], BoxKeys]:
    """Called before the daemon serves, because it may not be able to read libraries later. Raises
    BadRequest."""
    try:
        from odcd.executor.kubernetes.box_keys import make_keys
    except ImportError as error:
        raise BadRequest(
            f"the Kubernetes executor lacks a library: {error}",
            'Install it: pip install "odc[k8s]"',
        ) from error
    return make_keys


class _Namespace(Object):
    metadata: Meta


def _place(runner_folder: Path) -> tuple[str, str]:
    """The identity of the local executor's runner and machine, for programs and for people.

    Two homes on one machine have separate runners, and neither knows the other's jobs.
    """
    host = socket.gethostname()
    try:
        machine = Path("/etc/machine-id").read_text().strip() or host
    except OSError:
        machine = host
    return f"{machine}:{runner_folder.resolve()}", f"{host}, home {runner_folder.parent}"
