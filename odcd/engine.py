"""Which executor a daemon has, by its settings; a leader makes one for its term."""

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
    """The term of a leader."""

    @property
    def term(self) -> int: ...

    @property
    def certain(self) -> bool:
        """No other daemon can lead yet."""
        ...


class Engine(Protocol):
    node_grace: timedelta | None
    """How long a node may be away before its jobs end; None: they stay its own."""
    quarantine: bool
    """Are nodes that eat jobs quarantined?"""
    canaries: bool
    """Can a quarantined node be tried?"""
    check_job: Callable[[Identity, JobSpec], None]
    """Raises what it has against a job that is to be submitted."""

    ssh: bool
    """Are dev servers entered by SSH, so that they need their users' keys?"""
    runs_as_anyone: bool
    """Jobs of all users can run, whoever the daemon itself is."""

    async def prepare(self) -> None:
        """Before the daemon serves: raises BadRequest, OtherHost for what can never work."""
        ...

    async def make(self, lead: Term) -> Executor:
        """For a leader; closed by it."""
        ...

    async def claim(self, term: int) -> None:
        """Make the database this executor's. Raises OtherHost, RunnerDown."""
        ...

    async def make_builder(self, lead: Term) -> Builder:
        """What builds images of users' Dockerfiles, for a leader; closed by it. Only where the
        settings name a registry for them."""
        ...

    def reader(self) -> Executor | None:
        """One that does not command, for what a follower may ask of it: logs."""
        ...

    def claims(self) -> Claims | None:
        """How its dev servers come to disks; None: they do not."""
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
    runs_as_anyone = False  # as root it can; that the daemon knows by itself
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
        await self._store.check_host(*_place(self._settings.runner_folder))

    async def make(self, lead: Term) -> Executor:
        return LocalExecutor(
            self._settings.runner_folder,
            self._launcher,
            self._clock,
            nodes=self._settings.nodes,
            self_node=self._settings.self_node,
            sizes=self._store.gpu_type_sizes,
            calls=self._calls,
        )

    async def claim(self, term: int) -> None:
        await self._store.claim_host(term, *_place(self._settings.runner_folder))

    async def make_builder(self, lead: Term) -> Builder:
        raise AssertionError("processes of a machine have no registry")

    def reader(self) -> Executor | None:
        """Another daemon of this machine would be its leader."""
        return None

    def claims(self) -> Claims | None:
        """Homes are the machine's own."""
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
        sizes = await self._store.gpu_type_sizes()
        types = await self._store.instance_types()
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
            PodOutput(cluster, self._store, self._clock, own.namespaces, own.output_bytes),
            instance_types=self._store.instance_types,
            on_orphans=lambda names: self._store.note_orphans(term, names, self._clock.now()),
            orphan_s=own.orphan_grace.total_seconds(),
            leads=leads,
            budgets=budgets,
            box_keys=lambda dispatch: self._keep_keys(term, dispatch),
            on_port=lambda dispatch, port, addresses: self._store.note_box_port(
                term, dispatch.job_id, dispatch.attempt, port, addresses
            ),
            on_contents=lambda job_id, attempt, text, used_bytes: self._store.note_contents(
                term, job_id, attempt, text, used_bytes
            ),
        )

    async def _keep_keys(self, term: int, dispatch: Dispatch) -> BoxKeys | None:
        assert self._make_keys is not None
        made, now = self._make_keys(), self._clock.now()
        return await self._store.keep_box_keys(term, dispatch.job_id, made, now)

    async def claim(self, term: int) -> None:
        """The namespace of the jobs says which cluster it is: its uid is like no other."""
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
        await self._store.claim_host(term, f"kubernetes:{uid}", told)

    def reader(self) -> Executor | None:
        return self._reader

    def claims(self) -> Claims | None:
        assert self._cluster is not None
        return Claims(self._cluster, self._own.namespaces.dev)

    async def close(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()


def _load_keys() -> Callable[[], BoxKeys]:
    """Before the daemon serves: it may not be able to read libraries then. Raises BadRequest."""
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
    """Which runner on which machine the local executor commands, for programs and for people.

    Of two homes on one machine each has a runner of its own, which does not know the other's jobs.
    """
    host = socket.gethostname()
    try:
        machine = Path("/etc/machine-id").read_text().strip() or host
    except OSError:
        machine = host
    return f"{machine}:{runner_folder.resolve()}", f"{host}, home {runner_folder.parent}"
