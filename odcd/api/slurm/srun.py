"""srun: run a step of a job, and print what its tasks print."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from typing import Any, cast

from odcd.api.slurm.allocations import Allocation
from odcd.api.slurm.remote import Finished, Frames, Remote, err, exit_frame, frame
from odcd.api.slurm.srun_words import (
    NO_TERMINAL,
    WORDS,
    explained,
    output_of,
    refused_step,
    window_of,
)
from odcd.errors import BadRequest, NotOwner, OdcError, Unavailable, UnknownJob, WrongState
from odcd.executor.base import Executor, Steps, StepStream
from odcd.executor.step_tasks import StepOrder
from odcd.records.dispatch import Dispatch
from odcd.records.fields import shown
from odcd.records.job import Selector
from odcd.records.step import Placement, StepEnd
from odcd.slurm.commands.srun import KILL_WAIT_S, StepCall, parse_srun
from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.lists import is_number

BUSY_LOOK_S = 1.0
ACKNOWLEDGE_BYTES = 1024 * 1024
NOT_HERE = "srun is not available: this executor runs no job steps"


def steps_of(executor: Executor, name: str = "srun") -> Steps:
    if executor.steps is None:
        raise fail(name, NOT_HERE.replace("srun", name, 1))
    return executor.steps


async def srun(remote: Remote) -> Finished | Frames:
    request = remote.request
    call = parse_srun(request.argv, request.environment, remote.file)
    executor = remote.api.executor()
    steps = steps_of(executor)
    if call.pty and not steps.has_terminals:
        # Before it waits for an allocation.
        raise fail("srun", NO_TERMINAL)
    return _Session(remote, call, steps).run()


def run_step(remote: Remote, call: StepCall) -> Frames:
    """Run a step as srun does."""
    return _Session(remote, call, steps_of(remote.api.executor(), remote.name)).run()


class _Session:
    def __init__(self, remote: Remote, call: StepCall, steps: Steps) -> None:
        self._remote = remote
        self._api = remote.api
        self._call = call
        self._steps = steps
        self._key = remote.key()

    async def run(self) -> AsyncGenerator[bytes]:
        """All frames for the client."""
        allocation: Allocation | None = None
        code: int | None = None
        try:
            if self._call.job is None:
                allocation = Allocation(
                    self._remote, self._key, self._call.allocation, name=self._call.name,
                    quiet=self._call.quiet,
                )  # fmt: skip
                async for part in allocation.wait():
                    yield part
                job_id = allocation.job_id
            else:
                job_id = await self._find_job(self._call.job)
                call = self._call
                if call.warning and not call.quiet and self._remote.request.token is None:
                    yield err(call.warning)
            async for part in self._step(job_id):
                if isinstance(part, int):
                    code = part
                else:
                    yield part
        except Usage as usage:
            # The job that this client made may be over although its exit code never arrived.
            code = await self._known(allocation.job_id) if allocation is not None else None
            if code is None:
                code = usage.code
                yield err(usage.text)
        except Unavailable:
            raise
        except OdcError as error:
            code = 1
            yield err(explained("srun", error))
        finally:
            if allocation is not None and code is None:
                allocation.leave(gone=True)
        code = 1 if code is None else code
        if allocation is not None and allocation.job_id:
            await allocation.release(min(code, 255))
        yield exit_frame(code)

    async def _find_job(self, text: str) -> int:
        try:
            if not is_number(text, 18):
                raise UnknownJob(text)
            return await self._api.own_job(self._remote.who, Selector(job_id=int(text)))
        except (UnknownJob, NotOwner) as error:
            why = "Invalid job id specified" if isinstance(error, UnknownJob) else (
                "Access/permission denied"
            )  # fmt: skip
            raise Usage(
                f"srun: error: Unable to confirm allocation for job {text[:30]}: {why}\n"
                "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job "
                f"{text[:30]}\n"
            ) from None

    async def _step(self, job_id: int) -> AsyncGenerator[bytes | int]:
        dispatch = await self._api.store.dispatches.get(job_id)
        if dispatch is None or all(member.state == "ended" for member in dispatch.members):
            why = "Job is pending execution" if dispatch is None else WORDS["ended"]
            known = await self._known(job_id)
            if known is None:
                raise Usage(f"srun: error: Unable to confirm allocation for job {job_id}: {why}\n"
                            "srun: Check SLURM_JOB_ID environment variable. Expired or invalid "
                            f"job {job_id}\n")  # fmt: skip
            yield known
            return
        placement: Placement | None = None
        async for part in self._create(job_id, self._wants(dispatch)):
            if isinstance(part, Placement):
                placement = part
            else:
                yield part
        assert placement is not None
        if placement.attempt != dispatch.attempt:
            raise fail("srun", f"job {job_id} was requeued meanwhile")
        sessions = self._api.steps
        sessions.attach(placement.key)
        over = False
        try:
            async for part in self._follow(dispatch, placement):
                over = over or isinstance(part, int)
                yield part
        finally:
            leaves = not over and not self._api.events.closing.is_set()
            sessions.leave(placement.key, self._end(placement) if leaves else None)

    async def _known(self, job_id: int) -> int | None:
        """The exit code of the step that this client started before, although its job is over."""
        if not job_id:
            return None
        for row in await self._api.store.steps.list([job_id]):
            if row.get("key") == self._key and row["exit_code"] is not None:
                return int(row["exit_code"])
        return None

    def _wants(self, dispatch: Dispatch) -> dict[str, object]:
        counts = dispatch.component_nodes
        last = len(counts or (1,)) - 1
        if max(self._call.parts) > last:
            raise fail(
                "srun", f"Attempt to run a job step with het group value of "
                f"{max(self._call.parts)}, but the job allocation has maximum value of {last}",
            )  # fmt: skip
        if counts is None:
            return self._part(dispatch, self._call)
        parts = [
            self._part(dispatch, call)
            | {"first_rank": sum(counts[:group]), "node_count": counts[group]}
            for group, call in sorted(self._call.parts.items())
        ]
        return {"parts": parts, "overlap": any(part["overlap"] for part in parts)}

    def _part(self, dispatch: Dispatch, call: StepCall) -> dict[str, object]:
        wants = dict(call.wants)
        for name in ("node_list", "exclude"):
            hosts = wants[name]
            if isinstance(hosts, list | tuple):
                wants[name] = self._steps.nodes_of(dispatch, cast("list[str]", hosts))
        return wants

    async def _create(
        self, job_id: int, wants: dict[str, object]
    ) -> AsyncGenerator[bytes | Placement]:
        """Create the step, and wait while others use its CPUs. Raises Usage."""
        call, told = self._call, False
        command = shown(" ".join(call.command)[:4096])
        while True:
            made = await self._api.store.steps.create(
                self._steps.term, job_id, self._key, name=call.name[:200], command=command,
                wants=wants, now=self._api.clock.now(),
            )  # fmt: skip
            if isinstance(made, Placement):
                if told and not call.quiet:
                    yield err(f"srun: Step created for StepId={job_id}.{made.step}\n")
                yield made
                return
            if made.why not in ("busy", "starting"):
                raise refused_step(job_id, made, call)
            if call.immediate:
                raise fail(
                    "srun", f"Unable to create step for job {job_id}: Requested nodes are busy"
                )
            if not told and made.why == "busy":
                yield frame(b"r", b"")
                if not call.quiet:
                    yield err(f"srun: Job {job_id} step creation temporarily disabled, retrying "
                              "(Requested nodes are busy)\n")  # fmt: skip
                told = True
            await self._api.steps.changed(job_id, BUSY_LOOK_S if made.why == "busy" else 0.05)

    async def _follow(
        self, dispatch: Dispatch, placement: Placement
    ) -> AsyncGenerator[bytes | int]:
        """Start the step, and send what happens until it is over; then its exit code."""
        call, request = self._call, self._remote.request
        takes_input = call.pty or (
            not request.no_input and (call.stdin == "all" or is_number(call.stdin))
        )
        if placement.state == "RUNNING":
            now = self._api.clock.now().timestamp()
            environment, window = window_of(request.environment, call)
            try:
                await self._steps.start(StepOrder(
                    dispatch=dispatch, placement=placement, call=call,
                    environment=environment, work_dir=request.work_dir, window=window,
                    umask=request.umask,
                    ends_at=now + call.time_s if call.time_s is not None else None,
                    has_input=takes_input,
                    inside=self._remote.inside == placement.job_id,
                ))  # fmt: skip
            except (WrongState, BadRequest) as error:
                await self._record(placement, {"e": "failed", "detail": error.message})
                raise fail("srun", error.message) from None
        try:
            stream = await self._steps.open(placement.key, dispatch.uid, owner=True)
        except WrongState:
            yield await self._end_of(placement)
            return
        try:
            path = f"/v1/slurm-steps/{placement.job_id}/{placement.attempt}/{placement.step}"
            flags = ("i" if takes_input else "") + ("p" if call.pty else "")
            name = f"{placement.job_id}.{placement.step}"
            lines = [path, name, str(placement.task_count), flags]
            yield frame(b"s", "\n".join(lines).encode())
            async for part in self._copy(placement, stream):
                yield part
        finally:
            stream.close()

    async def _copy(self, placement: Placement, stream: StepStream) -> AsyncGenerator[bytes | int]:
        output = output_of(self._remote, placement, self._call, has_marks=stream.has_marks)
        while True:
            if self._api.steps.turns.are_due():
                await self._api.steps.turns.take()
            frames = await stream.read(output.offset, output.marks)
            parts, end = output.convert(frames) if frames else (b"", None)
            if frames and end is None:
                yield parts
                continue
            if parts:
                yield parts
            if end is not None:
                await self._record(placement, end)
                if end.get("broken"):
                    yield err(f"srun: error: output of the step was lost: {end['broken']}\n")
                yield int(end["code"])
            else:
                yield await self._end_of(placement)
            return

    async def _end_of(self, placement: Placement) -> int:
        """The exit code of a step whose journal has no end."""
        if placement.exit_code is not None:
            return placement.exit_code
        _, end = await self._steps.find(placement.key)
        end = end or {"e": "lost", "detail": "the step is not known any longer"}
        await self._record(placement, end)
        return int(end.get("code", 1))

    async def _record(self, placement: Placement, end: dict[str, Any]) -> None:
        now = self._api.clock.now()
        await self._api.store.steps.end(self._steps.term, [StepEnd.of(placement.key, end)], now)
        self._api.steps.wake(placement.job_id)
        await self._steps.acknowledge(placement.key, forget=False)

    def _end(self, placement: Placement) -> Any:
        async def end() -> None:
            await self._steps.stop(placement.key, signal.SIGTERM, KILL_WAIT_S)

        return end
