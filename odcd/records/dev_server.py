"""Frozen records about dev servers: notices to their users, and activity checks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryNotice:
    """A notice due to the user of a dev server. minutes: it ends in this many; None: its end was
    postponed; 0: its time is over and only its grace period is left. extensible: it was not
    extended yet. shared_home: its home folder is shared with the user's other dev servers."""

    job_id: int
    attempt: int
    name: str
    minutes: int | None
    expires_at: datetime
    extensible: bool
    shared_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNotice:
    """A notice due to the user of a dev server about its nodes. text: None: the last notice no
    longer holds. until_at: when the first node may be gone; None: not known."""

    job_id: int
    attempt: int
    name: str
    text: str | None
    until_at: datetime | None
    expires_at: datetime
    shared_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JupyterRequest:
    """Whether Jupyter Lab should run in this dev server."""

    job_id: int
    attempt: int
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The activity of a dev server. sessions: connections to it. gpu_percent: usage of its busiest
    GPU; None: it has no GPU, or usage is unknown. cpu_s: CPU time of everything that ever ran in
    it."""

    sessions: int
    gpu_percent: int | None
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCheck:
    """A dev server that is due for an activity check."""

    job_id: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleNotice:
    """A notice to the user of a dev server: how long it has been idle, and when it ends if it stays
    idle. idle_s None: it is no longer idle."""

    idle_s: int | None
    release_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServerKeys:
    """The keys of one dev server: the host key of its SSH server, the key its members use to reach
    each other, and the token of its Jupyter Lab."""

    host_key: str
    """The private key, in OpenSSH format."""
    host_public: str
    gang_key: str
    gang_public: str
    jupyter_token: str
