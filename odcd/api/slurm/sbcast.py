"""sbcast: copy a file to the nodes of a job."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator

from odcd.api.slurm.remote import Finished, Frames, Remote, frame, split_frames
from odcd.api.slurm.srun import run_step, steps_of
from odcd.errors import NotOwner, UnknownJob
from odcd.records.dispatch import Dispatch
from odcd.records.job import Selector
from odcd.slurm.commands.sbcast import FAILED, CopyCall, parse_sbcast, step_of
from odcd.slurm.commands.srun import parse_srun
from odcd.slurm.commands.usage import Usage, fail
from odcd.slurm.lists import is_number

_OF_SRUN = re.compile(rb"^srun: error: \S+ tasks? \S+ Exited with exit code [0-9]+\n", re.MULTILINE)


async def sbcast(remote: Remote) -> Finished | Frames:
    call = parse_sbcast(remote.request.argv, remote.request.environment)
    steps = steps_of(remote.api.executor(), "sbcast")
    dispatch = await _find_job(remote, call)
    if steps.shares_files:
        return _copy_here(call, dispatch)
    return _upload(remote, call, dispatch)


async def _find_job(remote: Remote, call: CopyCall) -> Dispatch:
    """Raises Usage."""
    api = remote.api
    if call.job is None:
        raise fail("sbcast", "Need a job id to run this command.  Run from within a Slurm job or "
                   "use the --jobid option.")  # fmt: skip
    try:
        if not is_number(call.job, 18):
            raise UnknownJob(call.job)
        job_id = await api.own_job(remote.who, Selector(job_id=int(call.job)))
    except UnknownJob:
        raise _not_found(call.job, "Invalid job id specified") from None
    except NotOwner:
        raise _not_found(call.job, "Access/permission denied") from None
    dispatch = await api.store.dispatches.get(job_id)
    if dispatch is None:
        raise _not_found(call.job, "Job is pending execution")
    if all(member.state == "ended" for member in dispatch.members):
        raise _not_found(call.job, "Job/step already completing or completed")
    return dispatch


def _not_found(job: str, why: str) -> Usage:
    return fail("sbcast", f"Slurm job {job[:30]} lookup error: {why}", FAILED)


async def _copy_here(call: CopyCall, dispatch: Dispatch) -> AsyncGenerator[bytes]:
    """All nodes of the local executor are this machine, so the client copies the file once."""
    yield frame(b"k", json.dumps({
        "source": call.source, "target": call.target, "force": call.force,
        "preserve": call.preserve, "node": dispatch.members[0].node,
    }).encode())  # fmt: skip


async def _upload(remote: Remote, call: CopyCall, dispatch: Dispatch) -> AsyncGenerator[bytes]:
    """A step writes the file; the client sends it as the step's input, piece by piece."""
    yield frame(b"u", call.source.encode())
    nodes = dispatch.component_nodes or (len(dispatch.members),)
    step = parse_srun(step_of(call, dispatch.job_id, nodes), {}, remote.file)
    async for part in run_step(remote, step):
        yield b"".join(
            frame(kind, _as_sbcast(content) if kind == b"e" else content)
            for kind, content in split_frames(part)
        )


def _as_sbcast(text: bytes) -> bytes:
    """A message of the step. Tasks that fail report that themselves."""
    return re.sub(rb"^srun: ", b"sbcast: ", _OF_SRUN.sub(b"", text), flags=re.MULTILINE)
