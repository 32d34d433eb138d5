"""Answers to submits and to previews of submits."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer
from odcd.api.answers.jobs import Component


class SubmittedJob(Answer):
    """warnings: messages for the user; the job was accepted."""

    id: int
    warnings: list[str] = msgspec.field(default_factory=list)


class SubmittedBatch(Answer):
    """warnings: messages for the user about any of the jobs."""

    ids: list[int]
    warnings: list[str] = msgspec.field(default_factory=list)


class SubmittedArgv(Answer):
    """wait, parsable, quiet, json, pty: what the command line requests from the client. folders:
    those that must exist on the daemon's machine when the job starts, for a warning; empty if jobs
    run elsewhere."""

    id: int
    wait: bool
    parsable: bool
    quiet: bool
    json: bool
    pty: bool
    warnings: list[str]
    folders: list[str]


class Delay(Answer):
    """A job whose planned start another job would move. to null: it would lose it."""

    job_id: int
    from_: str = msgspec.field(name="from")
    to: str | None


class Refused(Answer):
    code: str
    message: str
    hint: str


class Victim(Answer):
    """A running job that another job would preempt, and the work it would lose since its start or
    last checkpoint, in GPU-seconds, or in CPU-seconds if it has no GPUs."""

    text: str
    job_id: int
    user: str
    qos: str
    mode: Literal["requeue", "cancel"]
    ran_s: int
    grace_s: int
    lost_gpu_s: int | None = None
    lost_cpu_s: int | None = None


class Preview(Answer):
    """Where and when a job would start, given the other jobs. start_at null: it would wait behind
    more jobs than are planned or for a limit, or its own conditions hold it back; reason is then
    the queue's reason. promised: a pass would protect the start; starts beyond the plan depth are
    not protected. victims: the jobs it would preempt. components: as in Job."""

    text: str
    node_count: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    cpus_per_node: int | None = None
    mem_per_node_mib: int | None = None
    components: list[Component] | None = None
    time_limit_s: int | None = None
    start_at: str | None = None
    node_names: list[str] = msgspec.field(default_factory=list)
    promised: bool = False
    limit: str | None = None
    reason: str | None = None
    delays: list[Delay] = msgspec.field(default_factory=list)
    victims: list[Victim] = msgspec.field(default_factory=list)
    refused: Refused | None = None


class WhatIf(Answer):
    """When each job would start if it alone were submitted now, in the order of the request."""

    at: str
    jobs: list[Preview]


class TestOnly(Answer):
    """The answer to --test-only and --preview-preemption. Nothing was submitted."""

    test_only: Preview
    preview_preemption: bool
    json: bool
    warnings: list[str]


class SubmitOption(Answer):
    long: str
    short: str | None
    value: str | None
    help: str


class SubmitOptions(Answer):
    """sync_max_bytes: of the files that run --sync may send; null: no limit."""

    options: list[SubmitOption]
    sync_max_bytes: int | None
