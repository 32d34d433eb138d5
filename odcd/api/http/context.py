"""What the API works with; odcd.app makes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from odcd.api.http.clients import Version
from odcd.api.http.credentials import Credentials
from odcd.audit.log import AuditLog
from odcd.builds.settings import no_target
from odcd.clock import Clock
from odcd.errors import NotOwner, RunnerDown, UnknownJob
from odcd.events import EventHub
from odcd.executor.base import Executor
from odcd.fairness.limits import Fairness
from odcd.jobs.github_keys import Keys
from odcd.jobs.submission import Prepared
from odcd.login.logins import Logins
from odcd.metrics import Metrics
from odcd.records.job import Identity, JobSpec, Selector, Submitted
from odcd.stores.store import Store


class Batcher(Protocol):
    async def submit(self, prepared: Prepared) -> list[Submitted]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The collaborators of every resource."""

    store: Store
    batcher: Batcher
    events: EventHub
    clock: Clock
    wake: Callable[[], None]
    """Something changed that the planner should look at; called beside the notification."""
    executor_of: Callable[[], Executor | None]
    """The executor this daemon commands; None while it does not lead."""
    listening: Callable[[], bool]
    """Is the database's listener connected?"""
    led: Callable[[], bool]
    """Has this daemon taken over what runs, or does another lead?"""
    metrics: Metrics
    scrape: Callable[[str | None], Awaitable[tuple[bytes, str]]]
    """What Prometheus is told, and its media type, by what it accepts."""
    own_uid: int
    """The uid the daemon runs under: an operator."""
    operators: frozenset[str] = field(default_factory=frozenset)
    """Users who may act for others, beside root and own_uid."""
    commands: Callable[[], bool] = lambda: True
    """Is that executor this daemon's to command, or one that only reads?"""
    address: str = ""
    """Where users of this machine reach the daemon: the path of its socket."""
    listens: Callable[[], Sequence[tuple[str, int]]] = lambda: ()
    """The TCP addresses it listens on."""
    tls: bool = False
    """There by HTTPS."""
    box_terminals: bool = True
    """Dev servers are entered by the terminal of their job; else by SSH."""
    check_job: Callable[[Identity, JobSpec], None] = lambda _who, _spec: None
    """Raises what the executor has against a job."""
    logins: Logins | None = None
    """Lets users in by AWS identity; None: nobody."""
    keys: Keys | None = None
    """Whose SSH keys enter dev servers; None: they are not entered by SSH."""
    disk_gib: int | None = None
    """The size of a new disk; None: this daemon has no disks."""
    shared_storage: bool = False
    """Dev servers have their user's part of a shared file system."""
    build_target: Callable[[], str] = no_target
    """Where images that are built of users' Dockerfiles are pushed to. Raises BadRequest where none
    are built."""
    oldest_client: Version | None = None
    """odcctl below it is refused; None: none is."""
    fairness: Fairness = field(default_factory=Fairness)
    """The limits of each user."""
    check_disk: Callable[[], None] = lambda: None
    """Raises DiskAlmostFull."""
    serves_uid: int | None = None
    """The only user it serves (a user's own daemon); None: all."""
    proxy_uids: frozenset[int] = frozenset()
    """Whose sockets of this machine speak for browsers elsewhere: reverse proxies'."""
    audit: AuditLog | None = None
    """Where changes and refusals are written down; None: nowhere."""
    credentials: Credentials = field(default_factory=Credentials)
    """Ends what is open when its key does."""

    def executor(self) -> Executor:
        """Raises RunnerDown when this daemon commands none."""
        executor = self.executor_of()
        if executor is None:
            raise RunnerDown(
                "this daemon does not lead, so it cannot reach what runs",
                "Just after its start, try again in a moment; else ask the daemon that leads: "
                "`odcctl diag` names it.",
            )
        return executor

    async def one_job(self, selector: Selector) -> int:
        """The id of the one job a selector names. Raises UnknownJob when it names none, or a task
        that has not started and so has no id of its own."""
        if selector.tasks is None:
            return selector.job_id
        ids = await self.store.jobs.resolve(selector)
        if not ids:
            raise UnknownJob(
                f"array {selector.job_id} has no such task, or does not exist",
                "`odcctl queue -t all` lists the jobs there are.",
            )
        if len(ids) > 1:
            raise UnknownJob(
                f"that names {len(ids)} jobs, and this is about one", "Name one task, as in 7_3."
            )
        return ids[0]

    async def own_job(self, who: Identity, selector: Selector) -> int:
        """one_job(), for what only its owner and operators may see. Raises NotOwner."""
        job_id = await self.one_job(selector)
        owner = await self.store.jobs.get_owner(job_id)
        if owner is None:
            raise unknown_job(job_id)
        uid, name = owner
        if not who.operator and uid != who.uid:
            raise NotOwner(
                f"job {job_id} belongs to {name}", "Only its owner and operators may do that."
            )
        return job_id


def unknown_job(job_id: int) -> UnknownJob:
    return UnknownJob(
        f"job {job_id} does not exist", "`odcctl queue -t all` lists the jobs there are."
    )
