"""Answers about the daemon and the whole cluster."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from odcd.api.answers.common import Answer


class Leader(Answer):
    term: int
    holder: str | None
    host: str | None
    taken_at: str | None


class Pass(Answer):
    id: int
    at: str
    looked: int
    started: int
    took_ms: float


class EtaScore(Answer):
    """How well the starts of the last 7 days were predicted when the jobs were submitted. null: no
    prediction was scored. coverage: the fraction that started between p10 and p90. foreseen: the
    number of pending jobs that have an expected start now."""

    scored: int
    coverage: float | None
    mean_abs_error_s: int | None
    bias_s: int | None
    mean_width_s: int | None
    foreseen: int
    refreshed_at: str | None


class ExecutorState(Answer):
    """The executor that runs the jobs, as seen by the daemon that answers. unreached_s: how long it
    has not responded; 0: it responds; null: another daemon commands it."""

    name: str | None
    unreached_s: int | None


class Cluster(Answer):
    """jobs: the number of rows by state; the pending tasks of an array are one row. pending_tasks
    counts every task."""

    at: str
    executor: ExecutorState
    leader: Leader
    jobs: dict[str, int]
    pending_tasks: int
    oldest_pending_s: int | None
    nodes: dict[str, int]
    gpus: dict[str, int]
    last_pass: Pass | None
    planned: int
    eta: EtaScore
    last_event_id: int


class Event(Answer):
    """The data of a server-sent event. kind "lagged": the client was too slow and must reconnect
    with this id as Last-Event-ID."""

    id: int
    at: str
    kind: str
    actor: str
    job_id: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
    node: str | None = None
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class Info(Answer):
    """Paths of this server."""

    version: str
    name: Literal["odc"] = "odc"
    docs: Literal["/docs"] = "/docs"
    openapi: Literal["/openapi.json"] = "/openapi.json"
    health: Literal["/health"] = "/health"


class Health(Answer):
    status: Literal["ok"]
    version: str


class Ready(Answer):
    """The status is 503 if any check is false."""

    ready: bool
    checks: dict[str, bool]
