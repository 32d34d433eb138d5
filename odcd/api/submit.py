"""Submits: a job, a batch, a command line in sbatch's language."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers import (
    SubmitOption,
    SubmitOptions,
    SubmittedArgv,
    SubmittedBatch,
    SubmittedJob,
    TestOnly,
    TestOnlyText,
)
from odcd.api.context import Api
from odcd.api.problems import problem_of
from odcd.api.routing import JSON, Call, Operation
from odcd.errors import KeyReused, refusal
from odcd.model import MAX_BATCH_JOBS, JobSpec, Submitted
from odcd.slurm.parse import ScriptNeeded, SubmitArgv, parse_submit
from odcd.slurm.table import OPTIONS
from odcd.submission import prepare


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of the jobs are taken, or none."""

    jobs: Annotated[list[JobSpec], msgspec.Meta(min_length=1, max_length=MAX_BATCH_JOBS)]


class SubmitRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._job = msgspec.json.Decoder(JobSpec)
        self._batch = msgspec.json.Decoder(Batch)
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
        ids = await self._submit(call, [parsed.spec], dry_run=parsed.test_only)
        if parsed.test_only:
            text = f'job "{parsed.spec.name}" would be accepted'
            told = TestOnly(
                test_only=TestOnlyText(text=text),
                json=parsed.json,
                warnings=list(parsed.warnings),
            )
            return Response(msgspec.json.encode(told), 200, media_type=JSON)
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

    async def _submit(
        self, call: Call, specs: list[JobSpec], *, dry_run: bool = False
    ) -> list[int]:
        """The ids, in order; none of a dry run. Raises the refusal of the first job refused."""
        prepared = prepare(call.who, specs, key=call.key, dry_run=dry_run)
        answers = await self._api.batcher.submit(prepared)
        for index, answer in enumerate(answers):
            if answer.code is not None:
                raise _refusal(answer, index if len(specs) > 1 else None)
        if dry_run:
            return []
        self._api.metrics.submitted(len(specs))
        self._api.wake()
        return [answer.job_id for answer in answers if answer.job_id is not None]


def _refusal(answer: Submitted, index: int | None) -> Exception:
    message = answer.message or "refused"
    if index is not None and answer.code != KeyReused.code:
        message = f"job {index} of the batch: {message}"
    return refusal(answer.code or "", message, answer.hint)
