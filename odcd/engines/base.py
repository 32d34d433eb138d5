"""The interface of engines. An engine creates an executor for each leader's term."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from odcd.builds.worker import Builder
from odcd.elastic.groups import ElasticNodes
from odcd.executor.base import Executor
from odcd.executor.kubernetes.claims import Claims
from odcd.records.job import Identity, JobSpec

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

    def elastic_nodes(self) -> ElasticNodes | None:
        """The nodes of elastic groups; None if it has no such groups."""
        ...

    async def close(self) -> None: ...
