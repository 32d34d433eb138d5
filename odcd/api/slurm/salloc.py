"""salloc: hold nodes while a command or a shell runs; sattach: see the output of a running step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from odcd.api.slurm.allocations import Allocation
from odcd.api.slurm.remote import Finished, Frames, Remote, err, exit_frame, frame
from odcd.api.slurm.srun import steps_of
from odcd.api.slurm.step_output import StepOutput
from odcd.errors import NotOwner, UnknownJob
from odcd.executor.base import StepStream
from odcd.records.job import Selector
from odcd.runner.steps.journal import ERR, OUT
from odcd.slurm.commands.salloc import (
    AllocationCall,
    AttachCall,
    parse_salloc,
    parse_sattach,
)
from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.hostlists import compress_hosts


async def salloc(remote: Remote) -> Finished | Frames:
    call = parse_salloc(remote.request.argv, remote.request.environment)
    steps_of(remote.api.executor(), "salloc")
    return _allocate(remote, call, remote.key())


async def _allocate(remote: Remote, call: AllocationCall, key: str) -> AsyncGenerator[bytes]:
    made = Allocation(remote, key, call.options, name=call.name, quiet=call.quiet)
    done = False
    try:
        async for part in made.wait(talks=True):
            yield part
        assert made.dispatch is not None
        nodes = compress_hosts(member.node for member in made.dispatch.members)
        if not call.quiet:
            yield err(f"salloc: Granted job allocation {made.job_id}\n"
                      f"salloc: Nodes {nodes} are ready for job\n")  # fmt: skip
        if not call.no_shell:
            steps = steps_of(remote.api.executor(), "salloc")
            # In a thread: the user database may be slow.
            variables = await asyncio.to_thread(
                steps.variables, made.dispatch, remote.request.environment
            )
            yield frame(b"c", json.dumps({
                "argv": list(call.command), "chdir": call.chdir, "job": made.job_id,
                "env": variables,
                "release": f"/v1/slurm-allocations/{made.job_id}/release", "quiet": call.quiet,
            }).encode())  # fmt: skip
            await remote.api.events.ended(Selector(job_id=made.job_id), 10.0**9)
            if remote.api.events.closing.is_set():
                return
        done = True
        yield exit_frame(0)
    except Usage as usage:
        done = True
        yield err(usage.text)
        yield exit_frame(usage.code)
    finally:
        made.leave(gone=not done)


async def sattach(remote: Remote) -> Finished | Frames:
    call = parse_sattach(remote.request.argv)
    api = remote.api
    steps = steps_of(api.executor(), "sattach")
    try:
        job_id = await api.own_job(remote.who, Selector(job_id=call.job_id))
    except (UnknownJob, NotOwner):
        raise _unknown(call) from None
    rows = [r for r in await api.store.steps.list([job_id]) if r["step"] == call.step]
    if not rows:
        raise _unknown(call)
    row = rows[-1]
    if call.layout:
        lines = [f"Job step layout:\n\t{sum(row['tasks'])} tasks, {len(row['tasks'])} nodes "
                 f"({compress_hosts(row['node_names'])})\n\n"]  # fmt: skip
        first = 0
        for at, (name, tasks) in enumerate(zip(row["node_names"], row["tasks"], strict=True)):
            numbers = ", ".join(str(first + n) for n in range(tasks))
            lines.append(f"\tNode {at} ({name}), {tasks} task(s): {numbers}\n")
            first += tasks
        return Finished(out="".join(lines))
    if row["state"] != "RUNNING":
        raise _unknown(call)
    key = job_id, row["attempt"], row["step"]
    stream = await steps.open(key, row["uid"], owner=False)
    return _attach(call, sum(row["tasks"]), stream)


async def _attach(call: AttachCall, tasks: int, stream: StepStream) -> AsyncGenerator[bytes]:
    output = StepOutput(tasks, label=call.label, has_marks=stream.has_marks)
    output.offset = stream.begin
    try:
        while frames := await stream.read(output.offset, output.marks):
            # A frame that is left out still counts for the position.
            shown = [
                (b"-" if (kind == OUT and call.output not in (None, task))
                 or (kind == ERR and call.error not in (None, task)) else kind, task, data)
                for kind, task, data in frames
            ]  # fmt: skip
            parts, end = output.convert(shown)
            yield parts
            if end is not None:
                yield exit_frame(int(end["code"]))
                return
        yield exit_frame(1)
    finally:
        stream.close()


def _unknown(call: AttachCall) -> Usage:
    return fail("sattach", f"Could not get job step info: Invalid job id specified "
                           f"({call.job_id}.{call.step})")  # fmt: skip
