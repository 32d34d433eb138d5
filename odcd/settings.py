"""The daemon's settings, read once at its start: arguments, else environment, else defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from odcd.builds.settings import BuildSettings, read_builds
from odcd.disks.settings import DiskSettings, read_disks
from odcd.elastic.settings import ElasticSettings, read_elastic
from odcd.errors import BadRequest
from odcd.executor.declared_nodes import parse_nodes
from odcd.executor.job_rules import JobSettings, read_jobs
from odcd.executor.kubernetes.settings import KubernetesSettings, read_kubernetes
from odcd.fairness.disk_reserve import read_reserve
from odcd.fairness.settings import FairnessSettings, read_fairness
from odcd.front.settings import FrontSettings, read_front
from odcd.gpu_use.settings import GpuUseSettings, read_gpu_use
from odcd.history.settings import HistorySettings, read_history
from odcd.jobs.submit_filter.settings import SubmitFilterSettings, read_submit_filter
from odcd.login.settings import LoginSettings, read_login
from odcd.notify.settings import NotifySettings, read_notify
from odcd.records.node import DeclaredNode
from odcd.variables import (
    parse_address,
    read_accounts,
    read_audit,
    read_choice,
    read_seconds,
    read_url,
    read_words,
)

ROOT_HOME = Path("/var/lib/odc")
ROOT_SOCKET = Path("/run/odc/odcd.sock")
# sockaddr_un allows 107 bytes and a NUL; the longest socket path below home is the runner's.
MAX_SOCKET_PATH = 107
LONGEST_SOCKET = "runner/runner.sock"
LEASE = timedelta(seconds=10)
CLOCK_LIMIT = timedelta(seconds=30)
GRACE = timedelta(seconds=30)
LOOK = timedelta(seconds=300)
SWEEP = timedelta(seconds=30)
RESERVATION_WAIT = timedelta(hours=48)
MAX_RESERVATION_WAIT_S = 365 * 86_400
GITHUB_URL = "https://github.com"
NOWHERE = "none"
PAGE_ADDRESSES = tuple(("127.0.0.1", port) for port in range(7070, 7080))
ROOT_PAGE_ADDRESSES = tuple(("127.0.0.1", port) for port in range(720, 728))
"""On ports below 1024, no other user can take the daemon's port while it is down. IANA assigned
none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    home: Path
    """--home, ODC_HOME. The folder for everything the daemon keeps. Default ~/.odc, as root
    /var/lib/odc."""
    config: Path | None = None
    """--config, ODC_CONFIG. The settings file; none: no file. Default: for root with the default
    home /etc/odc/odcd.toml, for other users odcd.toml in the home, if it exists."""
    socket: Path
    """The Unix socket for HTTP on this machine: <home>/odcd.sock; for root's default home
    /run/odc/odcd.sock."""
    socket_mode: int
    """0o666 for root, whose daemon serves all users and identifies them by the kernel; 0o600 for a
    user."""
    listen: tuple[str, int] | None = None
    """--listen, ODC_LISTEN. The host and port for HTTP over TCP, with tokens; none for no TCP.
    Default: with up the first free port of 127.0.0.1:7070 to 7079, as root of 720 to 727, for the
    page; with serve none."""
    listen_first: tuple[tuple[str, int], ...] = ()
    """Without --listen, the first of these that is free is used; the daemon also starts if none
    is."""
    proxy_uids: frozenset[int] = frozenset()
    """ODC_PROXY_USERS. Accounts of reverse proxies on this machine, names or uids: a session of the
    page that comes through one is not bound to a user of the machine. Default none."""
    audit_log: str | None = None
    """ODC_AUDIT_LOG. The file for the audit log, which has every change and every refused login or
    request, one JSON object per line; - for standard output. Default none."""
    front: FrontSettings = field(default_factory=FrontSettings)
    dsn: str | None = None
    """--dsn, ODC_DSN. An external PostgreSQL; None: the embedded one of home."""
    executor: Literal["local", "kubernetes"] = "local"
    """--executor of serve, ODC_EXECUTOR. How jobs run: local, as processes of this machine, or
    kubernetes, as pods of a cluster. Default local."""
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    jobs: JobSettings = field(default_factory=JobSettings)
    submits: SubmitFilterSettings = field(default_factory=SubmitFilterSettings)
    disks: DiskSettings = field(default_factory=DiskSettings)
    elastic: ElasticSettings = field(default_factory=ElasticSettings)
    login: LoginSettings = field(default_factory=LoginSettings)
    builds: BuildSettings = field(default_factory=BuildSettings)
    gpu_use: GpuUseSettings = field(default_factory=GpuUseSettings)
    fairness: FairnessSettings = field(default_factory=FairnessSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    disk_reserve_mib: int | None = None
    """ODC_DISK_RESERVE_MIB. Free MiB on the embedded database's disk, below which jobs,
    reservations and builds are rejected; 0: no reserve. Default 2 % of the disk, at most 512."""
    nodes: tuple[DeclaredNode, ...] = ()
    """--node, ODC_NODES. Nodes declared for accounting only,
    NAME=TYPE:GPUS[xCPUS][@ZONE[/GROUP[/LAYER...]]]: the location is a zone, a placement group and
    the layers of the network, outermost first; an empty part is unknown. The word self is the
    machine itself; ODC_NODES has blanks between nodes. Default none."""
    self_node: bool = True
    """--node. Whether the machine itself is a node: with --node self, or without any --node."""
    other_hosts: tuple[str, ...] = ()
    """Declared nodes that are other machines, where odcd runs nothing. Found at the start."""
    pg_version: int | None = None
    """--pg of up, ODC_PG. The major version of the embedded PostgreSQL. Default the version in
    home, else 18."""
    lease: timedelta = LEASE
    """ODC_LEASE_S. How long a leader may be silent before another daemon takes over. Default 10
    s."""
    clock_limit: timedelta = CLOCK_LIMIT
    """ODC_CLOCK_LIMIT_S. A daemon whose clock differs from PostgreSQL's by more than this does not
    lead. Default 30 s."""
    grace: timedelta = GRACE
    """ODC_GRACE_S. The time from TERM to KILL when a job must end. Default 30 s."""
    oldest_client: str | None = None
    """ODC_OLDEST_CLIENT. An odcctl below it is rejected with a request to upgrade. Default none."""
    look: timedelta = LOOK
    """ODC_LOOK_S. How often a reservation is checked for activity, if its QOS acts on idle ones.
    Default 300 s."""
    sweep: timedelta = SWEEP
    """ODC_SWEEP_S. The maximum time between two checks, in case a notification was lost. Default 30
    s."""
    reservation_wait: timedelta = RESERVATION_WAIT
    """ODC_RESERVATION_WAIT_S. A dev server that has waited this long is cancelled. Default 48 h."""
    github_url: str = GITHUB_URL
    """ODC_GITHUB_URL. The server whose <user>.keys lists the SSH keys that can enter a user's dev
    servers on Kubernetes. The proxy of HTTPS_PROXY is used, if set. Default
    https://github.com."""
    operators: frozenset[str] = frozenset()
    """--operator, ODC_OPERATORS. Users who may act for others, in addition to root and the daemon's
    own user. Default none."""
    log_format: Literal["text", "json"] = "text"
    """--log-format, ODC_LOG_FORMAT. A log line is key=value text, or json. Default text."""
    detached: bool = False
    """--detach of up. Return when the daemon is ready; it logs to <home>/odcd.log. Default no."""

    @property
    def serves_all(self) -> bool:
        """Whether the daemon serves every user: root's does; a user's serves only that user."""
        return self.socket_mode == 0o666

    @property
    def runner_folder(self) -> Path:
        return self.home / "runner"

    @property
    def lock(self) -> Path:
        return self.home / "odcd.lock"

    @property
    def log_file(self) -> Path:
        return self.home / "odcd.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The options of `up` and `serve`."""

    embedded: bool
    """Whether the daemon has its own PostgreSQL: with up."""
    home: str | None = None
    node: Sequence[str] = ()
    listen: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    operator: Sequence[str] = ()
    allow_root_jobs: bool = False
    config: str | None = None
    log_format: Literal["text", "json"] | None = None
    dsn: str | None = None
    executor: Literal["local", "kubernetes"] | None = None
    kubeconfig: str | None = None
    context: str | None = None
    pg: int | None = None
    detach: bool = False


def read_settings(args: Arguments, environment: Mapping[str, str]) -> Settings:
    """Settings of `up` and `serve`. Raises BadRequest, naming the invalid option."""
    home = find_home(args.home, environment)
    texts, by = (args.node, "--node") if args.node else (_nodes(environment), "ODC_NODES")
    nodes, self_node = parse_nodes(texts, by)
    listen = args.listen or environment.get("ODC_LISTEN")
    listen_by = "--listen" if args.listen else "ODC_LISTEN"
    root = os.geteuid() == 0
    executor = args.executor or _executor(environment, embedded=args.embedded)
    on_kubernetes = executor == "kubernetes"
    kubernetes, disks = KubernetesSettings(), DiskSettings()
    if on_kubernetes:
        if texts:
            raise BadRequest(
                f"{by} is only for the local executor",
                f"On Kubernetes the nodes come from the cluster: leave {by} out.",
            )
        kubernetes = read_kubernetes(args.kubeconfig, args.context, environment)
        disks = read_disks(environment)
    return Settings(
        home=home,
        socket=socket_of(home),
        socket_mode=0o666 if root else 0o600,
        listen=parse_address(listen, listen_by) if listen and listen != NOWHERE else None,
        listen_first=_listen_first(root) if args.embedded and not listen else (),
        proxy_uids=read_accounts(environment, "ODC_PROXY_USERS"),
        audit_log=read_audit(environment, detached=args.detach),
        front=read_front(environment, args.tls_cert, args.tls_key),
        dsn=args.dsn or None,
        executor=executor,
        kubernetes=kubernetes,
        jobs=read_jobs(environment, allow_root=args.allow_root_jobs, local=not on_kubernetes),
        submits=read_submit_filter(environment, local=not on_kubernetes),
        disks=disks,
        elastic=read_elastic(environment, disks.aws_region, kubernetes=on_kubernetes),
        login=read_login(environment),
        builds=read_builds(environment) if on_kubernetes else BuildSettings(),
        gpu_use=read_gpu_use(environment, one_machine=not on_kubernetes),
        fairness=read_fairness(environment),
        history=read_history(environment),
        notify=read_notify(environment),
        disk_reserve_mib=read_reserve(environment),
        nodes=nodes,
        self_node=self_node,
        pg_version=args.pg or _pg_version(environment),
        lease=read_seconds(environment, "ODC_LEASE_S", LEASE),
        clock_limit=read_seconds(environment, "ODC_CLOCK_LIMIT_S", CLOCK_LIMIT),
        grace=read_grace(environment),
        oldest_client=environment.get("ODC_OLDEST_CLIENT") or None,
        look=read_seconds(environment, "ODC_LOOK_S", LOOK),
        sweep=read_seconds(environment, "ODC_SWEEP_S", SWEEP),
        reservation_wait=read_seconds(
            environment, "ODC_RESERVATION_WAIT_S", RESERVATION_WAIT, MAX_RESERVATION_WAIT_S
        ),
        github_url=read_url(environment, "ODC_GITHUB_URL", GITHUB_URL),
        operators=frozenset(args.operator or read_words(environment, "ODC_OPERATORS")),
        log_format=args.log_format or _log_format(environment),
        detached=args.detach,
    )


def _nodes(environment: Mapping[str, str]) -> list[str]:
    return environment.get("ODC_NODES", "").split()


def _executor(environment: Mapping[str, str], *, embedded: bool) -> Literal["local", "kubernetes"]:
    chosen = read_choice(environment, "ODC_EXECUTOR", ("local", "kubernetes"))
    if chosen != "kubernetes":
        return "local"
    if embedded:
        raise BadRequest(
            "ODC_EXECUTOR=kubernetes: `odcd up` runs jobs on this machine",
            "Use `odcd serve` for a cluster.",
        )
    return "kubernetes"


def _pg_version(environment: Mapping[str, str]) -> int | None:
    chosen = read_choice(environment, "ODC_PG", ("16", "18"))
    return int(chosen) if chosen else None


def _log_format(environment: Mapping[str, str]) -> Literal["text", "json"]:
    chosen = read_choice(environment, "ODC_LOG_FORMAT", ("text", "json"))
    return "json" if chosen == "json" else "text"


def _listen_first(root: bool) -> tuple[tuple[str, int], ...]:
    return ROOT_PAGE_ADDRESSES if root else PAGE_ADDRESSES


def read_grace(environment: Mapping[str, str]) -> timedelta:
    return read_seconds(environment, "ODC_GRACE_S", GRACE)


def default_home() -> Path:
    return ROOT_HOME if os.geteuid() == 0 else Path.home() / ".odc"


def find_home(given: str | None, environment: Mapping[str, str]) -> Path:
    """--home, else ODC_HOME, else the default; absolute, and short enough for the sockets in it."""
    named = given or environment.get("ODC_HOME")
    home = Path(named).expanduser().absolute() if named else default_home()
    length = len(os.fsencode(home / LONGEST_SOCKET))
    if length > MAX_SOCKET_PATH:
        raise BadRequest(
            f"home {home} is too long: its sockets would have {length} bytes, and Linux allows "
            f"{MAX_SOCKET_PATH}",
            "Choose a home with a shorter path: --home DIR.",
        )
    return home


def socket_of(home: Path) -> Path:
    if os.geteuid() == 0 and home == ROOT_HOME:
        return ROOT_SOCKET
    return home / "odcd.sock"
