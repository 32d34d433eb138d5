"""The collaborators of the API; odcd.app creates them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from odcd.api.http.clients import Version
from odcd.api.http.credentials import Credentials
from odcd.api.slurm.large_lists import LargeLists
from odcd.api.slurm.step_sessions import StepSessions
from odcd.audit.log import AuditLog
from odcd.builds.settings import no_target
from odcd.clock import Clock
from odcd.errors import NotOwner, RunnerDown, UnknownJob
from odcd.events import EventHub
from odcd.executor.base import Executor
from odcd.executor.declaring import Declaring
from odcd.fairness.limits import Fairness
from odcd.jobs.github_keys import Keys
from odcd.jobs.submission import Prepared
from odcd.jobs.submit_filter.filtering import SubmitFilter
from odcd.login.logins import Logins
from odcd.metrics import Metrics
from odcd.notify.settings import NotifySettings
from odcd.records.job import Identity, JobSpec, Selector, Submitted
from odcd.slurm.mail import MailTo
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
    """Tells the planner about a change, in addition to the database's notification."""
    executor_of: Callable[[], Executor | None]
    """The executor this daemon commands; None while it does not lead."""
    listening: Callable[[], bool]
    """Whether the database listener is connected."""
    led: Callable[[], bool]
    """Whether this daemon leads and has taken over the running jobs, or another daemon leads."""
    metrics: Metrics
    scrape: Callable[[str | None], Awaitable[tuple[bytes, str]]]
    """The metrics for Prometheus and their media type, given the request's Accept header."""
    own_uid: int
    """The uid that the daemon runs as; this user is an operator."""
    operators: frozenset[str] = field(default_factory=frozenset)
    """Users with administrative rights, in addition to root and own_uid."""
    commands: Callable[[], bool] = lambda: True
    """Whether this daemon commands that executor; otherwise the executor is read-only."""
    address: str = ""
    """Where users of this machine reach the daemon: the path of its socket."""
    listens: Callable[[], Sequence[tuple[str, int]]] = lambda: ()
    """The TCP addresses that the daemon listens on."""
    tls: bool = False
    """Whether TCP uses HTTPS."""
    dev_server_terminals: bool = True
    """Users connect to dev servers through the terminal of the job; otherwise by SSH."""
    check_job: Callable[[Identity, JobSpec], None] = lambda _who, _spec: None
    """Raises the executor's objection to a job, if any."""
    submit_filter: SubmitFilter | None = None
    """The site's function that may change or reject submits."""
    declaring: Declaring = field(default_factory=Declaring)
    """Which nodes operators may declare."""
    logins: Logins | None = None
    """Admits users by AWS identity; None: logins are off."""
    keys: Keys | None = None
    """The SSH keys that may connect to dev servers; None: dev servers do not use SSH."""
    disk_gib: int | None = None
    """The default size of a new disk; None: this daemon has no disks."""
    shared_storage: bool = False
    """Whether dev servers mount their user's part of a shared file system."""
    build_target: Callable[[], str] = no_target
    """The registry that images built from users' Dockerfiles are pushed to. Raises BadRequest when
    this daemon builds no images."""
    oldest_client: Version | None = None
    """Older versions of odcctl are refused; None: none are."""
    fairness: Fairness = field(default_factory=Fairness)
    """The limits per user."""
    check_disk: Callable[[], None] = lambda: None
    """Raises DiskAlmostFull."""
    serves_uid: int | None = None
    """The only user that the daemon serves (a user's own daemon); None: all users."""
    proxy_uids: frozenset[int] = frozenset()
    """Uids of reverse proxies: their sockets on this machine carry requests of remote browsers."""
    audit: AuditLog | None = None
    """The audit log for changes and refusals; None: off."""
    steps: StepSessions = field(default_factory=StepSessions)
    """The clients that are attached to steps."""
    large_lists: LargeLists = field(default_factory=LargeLists)
    credentials: Credentials = field(default_factory=Credentials)
    """Ends open streams, tunnels and terminals when their API key ends."""

    notify: NotifySettings = field(default_factory=NotifySettings)
    """The settings for mail and webhooks."""

    def mail_to(self, who: Identity) -> MailTo | None:
        """None: the daemon sends no mail."""
        own = self.notify
        return MailTo(user=who.user, domain=own.mail_domain) if own.sends_mail else None

    def executor(self) -> Executor:
        """Raises RunnerDown when this daemon commands no executor."""
        executor = self.executor_of()
        if executor is None:
            raise RunnerDown(
                "this daemon does not lead, so it cannot reach running jobs",
                "Just after a start, try again in a moment; otherwise ask the daemon that leads: "
                "`odcctl diag` names it.",
            )
        return executor

    async def one_job(self, selector: Selector) -> int:
        """The id of the one job that a selector names. Raises UnknownJob when it names no job, or a
        task that has not started and so has no id of its own."""
        if selector.tasks is None:
            return selector.job_id
        ids = await self.store.jobs.resolve(selector)
        if not ids:
            raise UnknownJob(
                f"array {selector.job_id} does not exist or has no such task",
                "`odcctl queue -t all` lists all jobs.",
            )
        if len(ids) > 1:
            raise UnknownJob(
                f"the selector names {len(ids)} jobs instead of one", "Name one task, as in 7_3."
            )
        return ids[0]

    async def own_job(self, who: Identity, selector: Selector) -> int:
        """one_job(), for what only the owner and operators may see. Raises NotOwner."""
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
    return UnknownJob(f"job {job_id} does not exist", "`odcctl queue -t all` lists all jobs.")
