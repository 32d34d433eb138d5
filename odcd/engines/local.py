"""Runs jobs as processes of this machine."""

from __future__ import annotations

import asyncio
import logging
import socket
from datetime import timedelta
from pathlib import Path

from odcctl.remote.folder import Foreign, make_folder
from odcd.builds.worker import Builder
from odcd.call_metrics import Calls
from odcd.clock import Clock
from odcd.elastic.groups import ElasticNodes
from odcd.engines.base import Launcher, Term
from odcd.executor.base import Executor
from odcd.executor.job_rules import check_user
from odcd.executor.kubernetes.checks import refuse_images
from odcd.executor.kubernetes.claims import Claims
from odcd.executor.local import LocalExecutor
from odcd.executor.other_hosts import check_gang
from odcd.executor.output import check_patterns
from odcd.jobs.reservations import check_local
from odcd.records.job import Identity, JobSpec
from odcd.settings import Settings
from odcd.stores.store import Store

log = logging.getLogger(__name__)


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
        """Raises BadRequest, NotImplementedYet, NotAllowed, NeverFits."""
        if self._settings.serves_all:
            check_user(self._rules, who.uid)
        check_local_job(who, spec)
        check_gang(self._settings.other_hosts, who, spec)

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
            commands=await asyncio.to_thread(self._make_commands),
            hooks=self._settings.jobs.has_hooks,
        )

    def _make_commands(self) -> str | None:
        """Make the folder with Slurm's commands beside the socket, which every user reaches. None:
        it cannot be written; jobs run without it."""
        socket_path = self._settings.socket
        folder = str(socket_path.parent / "slurm")
        try:
            make_folder(folder, default=str(socket_path), shared=True)
        except (OSError, Foreign) as error:
            log.warning("slurm.no_commands", extra={"folder": folder, "why": str(error)})
            return None
        return folder

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

    def elastic_nodes(self) -> ElasticNodes | None:
        return None

    async def close(self) -> None:
        pass


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
