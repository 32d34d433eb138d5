"""Prepares the request of one client for odc.submit_jobs, and checks what SQL cannot check."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from odcd.clock import Turns
from odcd.errors import BadRequest, OdcError, TooLarge
from odcd.jobs.checks import (
    check_environment,
    check_job,
    encode_environment,
    encode_job,
    encode_text,
)
from odcd.jobs.options import component_request, job_options
from odcd.jobs.past import past_bytes
from odcd.jobs.terms import add_terms
from odcd.records.job import MAX_BATCH_JOBS, Identity, JobSpec, ReservationSpec
from odcd.slurm.dependencies import parse_dependency
from odcd.slurm.lists import RangeBudget, parse_array
from odcd.slurm.mail import mail_request
from odcd.slurm.script import check_script

MAX_KEY_CHARS = 200
MAX_LISTS_CHARS = 2 * 1024 * 1024
"""Of the arrays and dependencies of one request, as written: each character takes about 2 us."""

Check = Callable[[Identity, JobSpec], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One request of odc.submit_jobs. texts: scripts and environments by digest. size: bytes.
    terms: how many dependencies the jobs have."""

    request: dict[str, Any]
    texts: dict[str, str]
    size: int
    terms: int = 0

    @property
    def job_count(self) -> int:
        """Each component counts."""
        return sum(len(job["components"] or ()) or 1 for job in self.request["jobs"])


class JobCounter:
    """Counts the jobs of one request."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, spec: JobSpec) -> None:
        """Raises TooLarge."""
        self._count += spec.job_count
        if self._count > MAX_BATCH_JOBS:
            raise TooLarge(
                f"the request has more than {MAX_BATCH_JOBS} jobs; each component of a "
                "heterogeneous job counts",
                "Send several requests, or an array.",
            )


def prepare(
    who: Identity, specs: Sequence[JobSpec], *, key: str | None, dry_run: bool,
    check: Check = lambda _who, _spec: None, digest: str | None = None,
) -> Prepared:  # fmt: skip
    """digest: separates a repetition of the request from another one under its key; None: all that
    the jobs are. check: what the executor asks of a job beside. Raises BadRequest, TooLarge or
    BadDependency; of several jobs it says which."""
    steps = _prepare(who, specs, key, dry_run, check, digest)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


async def prepare_in_turns(
    who: Identity, specs: Sequence[JobSpec], *, key: str | None, dry_run: bool,
    check: Check = lambda _who, _spec: None, turns: Turns | None = None,
    digest: str | None = None,
) -> Prepared:  # fmt: skip
    """prepare(); others are served meanwhile. turns: of the request, which may have ended."""
    steps = _prepare(who, specs, key, dry_run, check, digest)
    turns = turns or Turns()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        if turns.are_due():
            await turns.take()


def _prepare(
    who: Identity, specs: Sequence[JobSpec], key: str | None, dry_run: bool, check: Check,
    digest: str | None,
) -> Generator[None, None, Prepared]:  # fmt: skip
    """Pauses after each job."""
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise BadRequest(
            f"the idempotency key has {len(key)} characters",
            f"A key has 1 to {MAX_KEY_CHARS} characters.",
        )
    if not specs:
        raise BadRequest("the batch has no jobs", "Send at least one job.")
    counter = JobCounter()
    for spec in specs:
        counter.add(spec)
    _check_lists(specs)
    texts, budget = _Texts(), RangeBudget()
    jobs: list[dict[str, Any]] = []
    parts: list[bytes] = []
    terms = 0
    for index, spec in enumerate(specs):
        try:
            job = _job(spec, texts, budget)
            check(who, spec)
            parts.append(encode_job(job))
            jobs.append(job)
            terms = add_terms(terms, job)
        except OdcError as error:
            if len(specs) == 1:
                raise
            raise type(error)(f"job {index} of the batch: {error.message}", error.hint) from None
        yield
    own_bytes = sum(map(len, parts))
    request = {
        "uid": who.uid,
        "gid": who.gid,
        "user": who.user,
        "operator": who.operator,
        "key": key,
        "digest": digest or (yield from _fingerprint(specs, jobs, parts)),
        "dry_run": dry_run,
        "own_bytes": own_bytes + sum(map(past_bytes, jobs)),
        "jobs": jobs,
    }
    size = own_bytes + sum(map(len, texts.by_digest.values()))
    return Prepared(request=request, texts=texts.by_digest, size=size, terms=terms)


def _check_lists(specs: Sequence[JobSpec]) -> None:
    """Raises TooLarge. One job's are limited by their own parsers."""
    chars = sum(len(spec.array or "") + len(spec.dependency or "") for spec in specs)
    if len(specs) > 1 and chars > MAX_LISTS_CHARS:
        raise TooLarge(
            f"the arrays and dependencies of the jobs have {chars} characters together, more than "
            f"{MAX_LISTS_CHARS}",
            "Send several requests.",
        )


class _Texts:
    """The texts of one request; those that repeat are checked and digested once."""

    def __init__(self) -> None:
        self.by_digest: dict[str, str] = {}
        self._known: dict[str | bytes, str] = {}

    def script(self, script: str) -> str:
        digest = self._known.get(script)
        if digest is None:
            check_script(script)
            digest = self._keep(script, encode_text(script, "the script"))
            self._known[script] = digest
        return digest

    def environment(self, environment: dict[str, str]) -> str:
        encoded = encode_environment(environment)
        digest = self._known.get(encoded)
        if digest is None:
            check_environment(environment, encoded)
            digest = self._keep(encoded.decode(), encoded)
            self._known[encoded] = digest
        return digest

    def _keep(self, text: str, encoded: bytes) -> str:
        digest = hashlib.sha256(encoded).hexdigest()
        self.by_digest[digest] = text
        return digest


def _job(spec: JobSpec, texts: _Texts, budget: RangeBudget) -> dict[str, Any]:
    check_job(spec)
    return {
        "name": spec.name or "job",
        "kind": "reservation" if isinstance(spec, ReservationSpec) else "batch",
        "script_digest": texts.script(spec.script),
        "environment_digest": texts.environment(spec.environment),
        "args": spec.args,
        "work_dir": spec.work_dir,
        "umask": spec.umask,
        "stdin": spec.stdin,
        "stdout": spec.stdout,
        "stderr": spec.stderr,
        "open_mode": spec.open_mode,
        "partitions": spec.partitions,
        "account": spec.account,
        "qos": spec.qos,
        "nice": spec.nice,
        "comment": spec.comment,
        "hold": spec.hold,
        "begin_at": spec.begin_at.isoformat() if spec.begin_at else None,
        "deadline_at": spec.deadline_at.isoformat() if spec.deadline_at else None,
        "time_limit_s": spec.time_limit_s,
        "node_count": spec.node_count,
        "node_count_max": spec.node_count_max,
        "switches": spec.switches,
        "switches_wait_s": spec.switches_wait_s,
        "ntasks": spec.ntasks,
        "ntasks_per_node": spec.ntasks_per_node,
        "cpus_per_task": spec.cpus_per_task,
        "cpus_per_gpu": spec.cpus_per_gpu,
        "gpus": spec.gpus,
        "gpus_per_node": spec.gpus_per_node,
        "gpus_per_task": spec.gpus_per_task,
        "gpu_type": spec.gpu_type.lower() if spec.gpu_type else None,
        "mem_per_node_mib": spec.mem_per_node_mib,
        "mem_per_cpu_mib": spec.mem_per_cpu_mib,
        "mem_per_gpu_mib": spec.mem_per_gpu_mib,
        "tmp_mib": spec.tmp_mib,
        "exclusive": spec.exclusive,
        "constraint": spec.constraint,
        "node_list": spec.node_list,
        "exclude_nodes": spec.exclude_nodes,
        "booking": spec.booking,
        "licences": spec.licences,
        "components": [component_request(one) for one in spec.components] or None,
        "requeue": spec.requeue,
        "signal_number": spec.signal_number,
        "signal_before_s": spec.signal_before_s,
        "signal_batch": spec.signal_batch,
        "submit_host": spec.submit_host,
        "array": _array(spec.array, budget) if spec.array is not None else None,
        "dependency": dependency_request(spec.dependency) if spec.dependency is not None else None,
        "options": job_options(spec),
        "mail": mail_request(spec.mail_types, spec.mail_user),
        "reservation": spec.details if isinstance(spec, ReservationSpec) else None,
    }


def dependency_request(text: str) -> dict[str, Any]:
    """A dependency as odc.submit_jobs and odc.update_jobs take it. Raises BadDependency."""
    dependency = parse_dependency(text)
    return {
        "text": dependency.text,
        "any": dependency.any,
        "terms": [
            {
                "kind": term.kind,
                "target_id": term.target_id,
                "target_task": term.target_task,
                "delay_s": term.delay_s,
            }
            for term in dependency.terms
        ],
    }


def _array(text: str, budget: RangeBudget) -> dict[str, Any]:
    array = parse_array(text, budget)
    return {
        "tasks": array.multirange, "min": array.min, "max": array.max, "count": array.count,
        "step": array.step, "throttle": array.throttle,
    }  # fmt: skip


def _fingerprint(
    specs: Sequence[JobSpec], jobs: Sequence[dict[str, Any]], parts: Sequence[bytes]
) -> Generator[None, None, str]:
    """A digest that separates a repetition of a request from another one under its key. Pauses
    after each job.

    A moment parsed from a command line (now+1hour) moves between the two; the line itself does not.
    """
    digest = hashlib.sha256()
    for spec, job, part in zip(specs, jobs, parts, strict=True):
        if isinstance(spec, ReservationSpec) and "ssh_keys" in spec.details:
            # GitHub's answer of that moment, not the user's request.
            wishes = {name: value for name, value in spec.details.items() if name != "ssh_keys"}
            part = encode_job(job | {"reservation": wishes})
        if spec.submit_line and (spec.begin_at or spec.deadline_at):
            part = encode_job(job | {"begin_at": None, "deadline_at": None})
        digest.update(b"%d:" % len(part))
        digest.update(part)
        yield
    return digest.hexdigest()
