"""Submits: a job, a batch, or a command line in sbatch's language."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.submit import (
    Preview,
    SubmitOption,
    SubmitOptions,
    SubmittedArgv,
    SubmittedBatch,
    SubmittedJob,
    TestOnly,
    WhatIf,
)
from odcd.api.http.bodies import MAX_PARTS, decode_parts
from odcd.api.http.context import Api
from odcd.api.http.problems import problem_of
from odcd.api.http.routing import JSON, Call, Operation
from odcd.api.http.streaming import unless_gone
from odcd.api.previews import Previews, iso, text_with_victims
from odcd.errors import BadRequest, KeyReused, OdcError, refusal
from odcd.jobs.filtered import Passed, prepare_filtered
from odcd.jobs.submission import JobCounter
from odcd.jobs.submit_batches import SMALL_JOBS
from odcd.records.job import MAX_BATCH_JOBS, JobSpec, Submitted
from odcd.slurm.directives import refuse_directives
from odcd.slurm.parse import ScriptNeeded, parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.sbatch_options import OPTIONS
from odcd.slurm.sync_script import Sync

MAX_ALTERNATIVES = 64


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Either all of the jobs are accepted, or none."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(min_length=1, max_length=MAX_BATCH_JOBS)]


class _Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Batch whose jobs are not decoded yet."""

    jobs: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_BATCH_JOBS)]


class Alternatives(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each job is planned as if it alone were submitted."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []
    argv: Annotated[list[list[str]], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []
    """Instead of jobs: the options of each job, in sbatch's language."""


class _Alternatives(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    jobs: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []
    argv: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_ALTERNATIVES)] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The jobs that were submitted, in order. warnings, specs: of the site's submit filter."""

    ids: list[int]
    warnings: Sequence[str]
    specs: Sequence[JobSpec]


class SubmitRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._previews = Previews(api)
        self._job = msgspec.json.Decoder(JobSpec)
        self._batch = msgspec.json.Decoder(_Batch)
        self._alternatives = msgspec.json.Decoder(_Alternatives)
        self._command_line = msgspec.json.Decoder(list[str])
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
                summary="Predict when each job would start if it alone were submitted now",
            ),
            Operation(
                method="GET",
                path="/v1/submit-options",
                tag="submit",
                serve=self.options,
                answers={200: (SubmitOptions,)},
                summary="List the options that submit-argv accepts",
            ),
        )

    async def submit(self, call: Call) -> Response:
        spec = await call.body(self._job)
        refuse_directives(spec.script)
        done = await self.submit_specs(call, [spec])
        answer = SubmittedJob(id=done.ids[0], warnings=await self._warnings(done))
        return Response(msgspec.json.encode(answer), 201, media_type=JSON)

    async def submit_batch(self, call: Call) -> Response:
        batch = await call.body(self._batch, max_values=MAX_PARTS)
        counter = JobCounter()
        specs = await decode_parts(batch.jobs, self._job, "jobs", call.turns(), counter.add)
        for spec in specs:
            refuse_directives(spec.script)
            if call.turns().are_due():
                await call.turns().take()
        done = await self.submit_specs(call, specs)
        answer = SubmittedBatch(ids=done.ids, warnings=await self._warnings(done))
        return Response(msgspec.json.encode(answer), 201, media_type=JSON)

    async def submit_argv(self, call: Call) -> Response:
        request = await call.body(self._argv)
        try:
            parsed = parse_submit(request, self._api.clock.now(), self._api.mail_to(call.who))
        except ScriptNeeded as needed:
            return problem_of(needed, script_path=needed.script_path)
        if parsed.test_only:
            preview = await self.preview(call, parsed.spec)
            if parsed.preview_preemption:
                preview = msgspec.structs.replace(preview, text=text_with_victims(preview))
            prediction = TestOnly(
                test_only=preview,
                preview_preemption=parsed.preview_preemption,
                json=parsed.json,
                warnings=list(parsed.warnings),
            )
            return Response(msgspec.json.encode(prediction), 200, media_type=JSON)
        if request.sync is not None:
            self._check_sync(request.sync)
        done = await self.submit_specs(call, [parsed.spec])
        answer = SubmittedArgv(
            id=done.ids[0],
            wait=parsed.wait,
            parsable=parsed.parsable,
            quiet=parsed.quiet,
            json=parsed.json,
            pty=parsed.spec.pty,
            warnings=[*parsed.warnings, *await self._warnings(done)],
            folders=self._folders(done.specs[0]),
        )
        return Response(msgspec.json.encode(answer), 201, media_type=JSON)

    def _check_sync(self, sync: Sync) -> None:
        executor = self._api.executor_of()
        if executor is not None and executor.steps is None:
            raise BadRequest("run --sync needs job steps, which this executor has not")
        self._api.fairness.sync(sync.size_bytes)

    async def _warnings(self, done: Accepted) -> list[str]:
        """Also about dependencies that can never be met: Slurm accepts such jobs, too."""
        if not any(spec.dependency for spec in done.specs):
            return list(done.warnings)
        never = await self._api.store.jobs.list_never_met(done.ids)
        return [
            *done.warnings,
            *(f"job {job_id} {why}; it waits until you cancel it or change its dependency"
              for job_id, why in never),
        ]  # fmt: skip

    def _folders(self, spec: JobSpec) -> list[str]:
        """The folders of the job's output, and its working directory. Only the client looks at
        them: it has its user's rights, and a slow file system delays no one else."""
        executor = self._api.executor_of()
        if executor is None or executor.name != "local":
            return []
        files = (posixpath.join(spec.work_dir, name) for name in (spec.stdout, spec.stderr) if name)
        folders = [spec.work_dir, *map(posixpath.dirname, files)]
        return [folder for folder in dict.fromkeys(folders) if "%" not in folder]

    async def options(self, call: Call) -> Response:
        options = [
            SubmitOption(long=o.long, short=o.short, value=o.value or None, help=o.help)
            for o in OPTIONS
            if o.supported
        ]
        answer = SubmitOptions(options=options, sync_max_bytes=self._api.fairness.sync_bytes)
        return Response(msgspec.json.encode(answer), media_type=JSON)

    async def submit_specs(self, call: Call, specs: list[JobSpec]) -> Accepted:
        """Raises the error of the first refused job."""
        self._api.fairness.submit(call.who, sum(spec.job_count for spec in specs))
        passed = await self._prepare(call, specs, key=call.key, dry_run=False)
        answers = await self._ask(call, passed)
        self._api.wake()
        return Accepted(
            ids=[answer.job_id for answer in answers if answer.job_id is not None],
            warnings=passed.filtered.warnings,
            specs=passed.filtered.specs,
        )

    async def _prepare(
        self, call: Call, specs: Sequence[JobSpec], *, key: str | None = None, dry_run: bool
    ) -> Passed:
        return await prepare_filtered(
            call.who, specs, kind="batch", submit_filter=self._api.submit_filter, key=key,
            dry_run=dry_run, check=self._api.check_job, turns=call.turns(),
        )  # fmt: skip

    async def what_if(self, call: Call) -> Response:
        """Predict where and when each job would start. Submits nothing."""
        form = await call.body(self._alternatives, max_values=MAX_PARTS)
        if bool(form.jobs) == bool(form.argv):
            both = "both have" if form.jobs else "have no"
            raise BadRequest(
                f"jobs and argv {both} entries",
                "Exactly one of jobs and argv must have at least one entry.",
            )
        now = self._api.clock.now()
        turns = call.turns()
        specs = await decode_parts(form.jobs, self._job, "jobs", turns)
        for command_line in await decode_parts(form.argv, self._command_line, "argv", turns):
            specs.append(_imagined(command_line, now))
            if turns.are_due():
                await turns.take()
        forecast = WhatIf(at=iso(now), jobs=await self._previews.of(call.who, specs, now, turns))
        return Response(msgspec.json.encode(forecast), 200, media_type=JSON)

    async def preview(self, call: Call, spec: JobSpec) -> Preview:
        """Predict what would happen to the job. Raises its refusal."""
        passed = await self._prepare(call, [spec], dry_run=True)
        await self._ask(call, passed)
        specs = passed.filtered.specs
        return (await self._previews.of(call.who, specs, self._api.clock.now(), call.turns()))[0]

    async def _ask(self, call: Call, passed: Passed) -> list[Submitted]:
        prepared = passed.prepared
        if prepared.job_count > SMALL_JOBS:
            # The batch may wait long for its turn; until then, a client may leave at no cost.
            await call.check_client()
            answers = await unless_gone(self._api.batcher.submit(prepared), call.receive)
        else:
            answers = await self._api.batcher.submit(prepared)
        for index, answer in enumerate(answers):
            if answer.code is not None:
                raise passed.explain(_refusal(answer, index if len(answers) > 1 else None))
        return answers


def _imagined(argv: list[str], now: datetime) -> JobSpec:
    """The job that a command line would submit, with a placeholder for its command."""
    return parse_submit(SubmitArgv(argv=[*argv, "--wrap=true"], work_dir="/"), now).spec


def _refusal(answer: Submitted, index: int | None) -> OdcError:
    message = answer.message or "refused"
    if index is not None and answer.code != KeyReused.code:
        message = f"job {index} of the batch: {message}"
    return refusal(answer.code or "", message, answer.hint)
