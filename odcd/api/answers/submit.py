"""What answers to a submit look like, and to the question what it would do."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer


class SubmittedJob(Answer):
    id: int


class SubmittedBatch(Answer):
    ids: list[int]


class SubmittedArgv(Answer):
    """wait, parsable, quiet, json, pty: what the command line asked of the client."""

    id: int
    wait: bool
    parsable: bool
    quiet: bool
    json: bool
    pty: bool
    warnings: list[str]


class Delay(Answer):
    """A job whose planned start another one would move. to: null when it would lose it."""

    job_id: int
    from_: str = msgspec.field(name="from")
    to: str | None


class Refused(Answer):
    code: str
    message: str
    hint: str


class Victim(Answer):
    """A running job that would be ended for another one, and what it would lose: since its start or
    its last checkpoint, in seconds of GPUs, or of CPUs where it has none."""

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
    """Where and when a job would start, as far as others let it: start_at null when it would wait
    behind more of them than are planned, behind a limit, or when it is held back by itself; reason
    is the queue's then. promised: a pass would protect the start, which beyond the plan depth it
    does not. victims: whom it would preempt."""

    text: str
    node_count: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    cpus_per_node: int | None = None
    mem_per_node_mib: int | None = None
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
    """In the order asked: when each job would start if it alone were submitted at that moment."""

    at: str
    jobs: list[Preview]


class TestOnly(Answer):
    """The answer to --test-only and --preview-preemption: nothing was submitted."""

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
    options: list[SubmitOption]
