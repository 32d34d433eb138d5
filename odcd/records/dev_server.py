"""Frozen records about dev servers: what their users are told, and how they are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """The user of a dev server is to be told that it ends in so many minutes; None: that its end
    was put off; 0: that its time is over, and only its grace is left. extensible: it was not
    extended yet. shared_home: its home folder is that of its user's other ones, too."""

    job_id: int
    attempt: int
    name: str
    minutes: int | None
    expires_at: datetime
    extensible: bool
    shared_home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JupyterWish:
    """Jupyter Lab is to run in this dev server, or not to run any more."""

    job_id: int
    attempt: int
    wanted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How much a dev server is used. sessions: connections to it. gpu_percent: of its busiest GPU;
    None: it has none, or cannot tell. cpu_s: CPU time of all that ever ran in it."""

    sessions: int
    gpu_percent: int | None
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookWish:
    """A dev server that is to be looked at."""

    job_id: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleNotice:
    """What the user of a dev server is to be told: for how long it has been idle, and when it ends
    if it stays so. idle_s None: it is idle no more."""

    idle_s: int | None
    release_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxKeys:
    """Of one dev server: what its SSH server shows, what its members reach one another by, and what
    lets one use its Jupyter Lab."""

    host_key: str
    """Private, as OpenSSH keeps it."""
    host_public: str
    gang_key: str
    gang_public: str
    jupyter_token: str
