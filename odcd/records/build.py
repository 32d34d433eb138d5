"""Frozen records about image builds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """An image build from the context with this digest, to be pushed to target.

    made: this attempt already had its Kubernetes Job. uid: the last user who requested it.
    """

    id: int
    attempt: int
    digest: str
    target: str
    dockerfile: str
    uid: int
    made: bool
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLook:
    """The observed state of a build's Job.

    state: going, done (image), failed (error), or lost: it ended, and the result is unknown. step:
    the current step. log: the end of its output. None: currently unknown.
    """

    state: Literal["going", "done", "failed", "lost"]
    image: str | None = None
    error: str | None = None
    step: str | None = None
    log: str | None = None
