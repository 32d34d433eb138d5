"""Submits: a job, a batch, a command line in sbatch's language."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from odcd.api.answers import (
    Preview,
    SubmitOption,
    SubmitOptions,
    SubmittedArgv,
    SubmittedBatch,
    SubmittedJob,
    TestOnly,
    WhatIf,
)
from odcd.api.context import Api
from odcd.api.problems import problem_of
from odcd.api.routing import JSON, Call, Operation
from odcd.errors import BadRequest, KeyReused, refusal
from odcd.model import MAX_BATCH_JOBS, JobSpec, Submitted
from odcd.slurm.parse import ScriptNeeded, SubmitArgv, parse_submit
from odcd.slurm.table import OPTIONS
from odcd.submission import Prepared, prepare

MAX_ALTERNATIVES = 64
# Why a job waits whose start is not in sight, in the words of the queue.
NOT_IN_SIGHT = {
    "Priority": "behind more jobs than are planned",
    "Resources": "for nodes whose jobs have no time limit",
    "PartitionDown": "while its partition is down",
    "PartitionInactive": "while its partition is inactive",
    "ReqNodeNotAvail": "for nodes that are down, drained, or taken without a time limit",
}


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of the jobs are taken, or none."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(min_length=1, max_length=MAX_BATCH_JOBS)]


class Alternatives(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each is planned as if it alone were submitted."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []
    argv: Annotated[list[list[str]], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []
    """Instead of jobs: the options of each, in sbatch's language."""


class SubmitRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._job = msgspec.json.Decoder(JobSpec)
        self._batch = msgspec.json.Decoder(Batch)
        self._alternatives = msgspec.json.Decoder(Alternatives)
        self._argv = msgspec.json.Decoder(SubmitArgv)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/jobs",
                tag="submit",
                serve=self.submit,
                body=JobSpec,
                makes=True,
                answers={201: (SubmittedJob,)},
                summary="Submit a job or an array",
            ),
            Operation(
                method="POST",
                path="/v1/jobs/batch",
                tag="submit",
                serve=self.submit_batch,
                body=Batch,
                makes=True,
                answers={201: (SubmittedBatch,)},
                summary="Submit many jobs, all or none",
            ),
            Operation(
                method="POST",
                path="/v1/submit-argv",
                tag="submit",
                serve=self.submit_argv,
                body=SubmitArgv,
                makes=True,
                answers={201: (SubmittedArgv,), 200: (TestOnly,)},
                summary="Submit a command line in sbatch's language; 409 asks for its script",
            ),
            Operation(
                method="POST",
                path="/v1/plan/what-if",
                tag="submit",
                serve=self.what_if,
                body=Alternatives,
                answers={200: (WhatIf,)},
                summary="When each of these jobs would start if it alone were submitted now",
            ),
            Operation(
                method="GET",
                path="/v1/submit-options",
                tag="submit",
                serve=self.options,
                answers={200: (SubmitOptions,)},
                summary="The options that submit-argv takes",
            ),
        )

    async def submit(self, call: Call) -> Response:
        spec = await call.body(self._job)
        ids = await self._submit(call, [spec])
        return Response(b'{"id":%d}' % ids[0], 201, media_type=JSON)

    async def submit_batch(self, call: Call) -> Response:
        batch = await call.body(self._batch)
        ids = await self._submit(call, batch.jobs)
        return Response(msgspec.json.encode({"ids": ids}), 201, media_type=JSON)

    async def submit_argv(self, call: Call) -> Response:
        request = await call.body(self._argv)
        try:
            parsed = parse_submit(request, self._api.clock.now())
        except ScriptNeeded as needed:
            return problem_of(needed, script_path=needed.script_path)
        if parsed.test_only:
            preview = await self._preview(call, parsed.spec)
            if parsed.preview_preemption:
                preview = msgspec.structs.replace(preview, text=_preempting(preview))
            told = TestOnly(
                test_only=preview,
                preview_preemption=parsed.preview_preemption,
                json=parsed.json,
                warnings=list(parsed.warnings),
            )
            return Response(msgspec.json.encode(told), 200, media_type=JSON)
        ids = await self._submit(call, [parsed.spec])
        answer = SubmittedArgv(
            id=ids[0],
            wait=parsed.wait,
            parsable=parsed.parsable,
            quiet=parsed.quiet,
            json=parsed.json,
            pty=parsed.spec.pty,
            warnings=list(parsed.warnings),
        )
        return Response(msgspec.json.encode(answer), 201, media_type=JSON)

    async def options(self, call: Call) -> Response:
        options = [
            SubmitOption(long=o.long, short=o.short, value=o.value or None, help=o.help)
            for o in OPTIONS
            if o.supported
        ]
        return Response(msgspec.json.encode(SubmitOptions(options=options)), media_type=JSON)

    async def _submit(self, call: Call, specs: list[JobSpec]) -> list[int]:
        """The ids, in order. Raises the refusal of the first job refused."""
        prepared = self._prepare(call, specs, key=call.key, dry_run=False)
        answers = await self._ask(prepared)
        self._api.metrics.submitted(len(specs))
        self._api.wake()
        return [answer.job_id for answer in answers if answer.job_id is not None]

    def _prepare(
        self, call: Call, specs: Sequence[JobSpec], *, key: str | None = None, dry_run: bool
    ) -> Prepared:
        return prepare(call.who, specs, key=key, dry_run=dry_run, check=self._api.check_job)

    async def what_if(self, call: Call) -> Response:
        """Where and when each would start if it alone were submitted now; submits nothing."""
        asked = await call.body(self._alternatives)
        if bool(asked.jobs) == bool(asked.argv):
            raise BadRequest("either jobs or argv has alternatives", "Give at least one.")
        now = self._api.clock.now()
        specs = asked.jobs or [_imagined(words, now) for words in asked.argv]
        told = WhatIf(at=_iso(now), jobs=await self._previews(call, specs, now))
        return Response(msgspec.json.encode(told), 200, media_type=JSON)

    async def _preview(self, call: Call, spec: JobSpec) -> Preview:
        """What would become of the job. Raises its refusal."""
        await self._ask(self._prepare(call, [spec], dry_run=True))
        return (await self._previews(call, [spec], self._api.clock.now()))[0]

    async def _previews(self, call: Call, specs: Sequence[JobSpec], now: datetime) -> list[Preview]:
        jobs = self._prepare(call, specs, dry_run=True).request["jobs"]
        asks = [{**job, "uid": call.who.uid, "user": call.who.user} for job in jobs]
        told = json.loads(await self._api.store.preview(msgspec.json.encode(asks).decode(), now))
        for spec, one in zip(specs, told, strict=True):
            one["text"] = _foretold(spec, one, now)
        return msgspec.convert(told, list[Preview])

    async def _ask(self, prepared: Prepared) -> list[Submitted]:
        answers = await self._api.batcher.submit(prepared)
        for index, answer in enumerate(answers):
            if answer.code is not None:
                raise _refusal(answer, index if len(answers) > 1 else None)
        return answers


def _imagined(argv: list[str], now: datetime) -> JobSpec:
    """The job that a command line would make, whatever it runs."""
    return parse_submit(SubmitArgv(argv=[*argv, "--wrap=true"], work_dir="/"), now).spec


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _kept_back(spec: JobSpec, now: datetime) -> str | None:
    """What would keep the job itself from starting."""
    if spec.hold:
        return "the job would be accepted, and held"
    if spec.dependency:
        return f"the job would be accepted, and wait for {spec.dependency}"
    if spec.begin_at is not None and spec.begin_at > now:
        return f"the job would be accepted, and start after {_iso(spec.begin_at)}"
    return None


def _foretold(spec: JobSpec, told: dict[str, Any], now: datetime) -> str:
    if told["refused"] is not None:
        return f"refused: {told['refused']['message']}"
    kept_back = _kept_back(spec, now)
    if kept_back is not None:
        told |= {"start_at": None, "promised": False, "node_names": [], "delays": [], "victims": []}
        return kept_back
    if told["limit"] is not None:
        limit = told["limit"]
        for_what = "licences in use" if limit == "Licenses" else f"its limit {limit}"
        return f"the job would be accepted, and wait for {for_what}"
    if told["start_at"] is None:
        reason = told["reason"]
        return f"the job would be accepted, and wait {NOT_IN_SIGHT[reason]} ({reason})"
    starts = datetime.fromisoformat(told["start_at"])
    bound = "at the latest" if told["promised"] else "unless others come before it"
    when = "now" if starts <= now else f"at {told['start_at']} {bound}"
    late = sum(delay["to"] is not None for delay in told["delays"])
    others = f", and delay {late} {'job' if late == 1 else 'jobs'}" if late else ""
    lost = [str(delay["job_id"]) for delay in told["delays"] if delay["to"] is None]
    if len(lost) == 1:
        others += f", and job {lost[0]} loses its planned start"
    elif lost:
        others += f", and jobs {', '.join(lost)} lose their planned starts"
    if ended := len(told["victims"]):
        others += f", preempting {ended} {'job' if ended == 1 else 'jobs'}"
    return f"the job would start {when} on {', '.join(told['node_names'])}{others}"


def _preempting(told: Preview) -> str:
    """Who would be ended, a line each."""
    if not told.victims:
        return f"{told.text}, preempting nobody" if told.start_at else told.text
    return "\n".join([f"{told.text}:", *(f"  {victim.text}" for victim in told.victims)])


def _refusal(answer: Submitted, index: int | None) -> Exception:
    message = answer.message or "refused"
    if index is not None and answer.code != KeyReused.code:
        message = f"job {index} of the batch: {message}"
    return refusal(answer.code or "", message, answer.hint)
