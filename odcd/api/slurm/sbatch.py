"""sbatch: the same parser and submission as odcctl submit, with Slurm's answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

from odcd.api.slurm.remote import Finished, Frames, Remote, err, exit_frame, out, resume_frame
from odcd.api.slurm.sinfo import inventory
from odcd.api.slurm.version import version_line
from odcd.api.submit import SubmitRoutes
from odcd.errors import OdcError, Unavailable
from odcd.records.job import JobSpec, Selector
from odcd.slurm.commands import sbatch as words
from odcd.slurm.gangs import with_nodes_for_tasks
from odcd.slurm.hostlists import compress_hosts
from odcd.slurm.parse import STDIN, ParsedSubmit, ScriptNeeded, parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.usage import Usage

WAIT_S = 30.0
USAGE = "Usage: sbatch [OPTIONS(0)...] script [args(0)...]\n"


async def sbatch(remote: Remote) -> Finished | Frames:
    argv = remote.request.argv
    if (job_id := remote.resumed_job()) is not None:
        return _wait(remote, job_id, b"")
    if argv[:1] in (["--version"], ["-V"]):
        return Finished(out=version_line())
    if argv[:1] in (["--help"], ["-h"], ["--usage"]):
        return Finished(out=f"{USAGE}odcctl submit --help describes the options.\n")
    words.check_words(argv)
    parsed = _parse(remote)
    spec, warning = with_nodes_for_tasks("sbatch", parsed.spec)
    if parsed.test_only:
        return await _test(remote, spec)
    try:
        done = await SubmitRoutes(remote.api).submit_specs(remote.call, [spec])
    except Unavailable:
        raise
    except OdcError as error:
        raise words.refused(error) from None
    if parsed.mail_warning and not parsed.parsable:  # Some programs read stderr as the job's id.
        warning += f"sbatch: warning: {parsed.mail_warning}\n"
    job_id, warning = done.ids[0], warning + words.messages(done.warnings)
    text = f"{job_id}\n" if parsed.parsable else f"Submitted batch job {job_id}\n"
    if parsed.quiet:
        text, warning = text if parsed.parsable else "", ""
    if parsed.wait:
        return _wait(remote, job_id, err(warning) + out(text))
    return Finished(out=text, err=warning)


def _parse(remote: Remote) -> ParsedSubmit:
    request, now = remote.request, remote.now()
    path: str | None = None
    script: str | None = None
    while True:
        body = SubmitArgv(
            command="sbatch", argv=request.argv, work_dir=request.work_dir,
            environment=request.environment, umask=request.umask, script=script, script_path=path,
            submit_host=request.host,
        )  # fmt: skip
        try:
            return parse_submit(body, now, remote.api.mail_to(remote.who))
        except ScriptNeeded as needed:
            path = needed.script_path
            script = remote.file(STDIN if path == STDIN else path)
            complaint = words.bad_script(script)
            if complaint is not None:
                raise Usage(complaint) from None
        except OdcError as error:
            raise words.unparsed(error) from None


async def _test(remote: Remote, spec: JobSpec) -> Finished:
    try:
        preview = await SubmitRoutes(remote.api).preview(remote.call, spec)
    except Unavailable:
        raise
    except OdcError as error:
        raise words.refused(error) from None
    if preview.refused is not None:
        return Finished(err=f"allocation failure: {preview.refused.message}\n", code=1)
    if preview.start_at is None:
        return Finished(err=f"sbatch: {preview.text}\n")
    at = datetime.fromisoformat(preview.start_at).astimezone(remote.now().tzinfo)
    job_id = await remote.api.store.jobs.get_next_id()
    starts = f"sbatch: Job {job_id} to start at {at:%Y-%m-%dT%H:%M:%S} using"
    hosts = compress_hosts(preview.node_names)
    if preview.components is not None:  # Slurm names no partition then.
        cpus = sum(one.node_count * one.cpus_per_node for one in preview.components)
        return Finished(err=f"{starts} {cpus} processors on {hosts}\n")
    count = preview.node_count or len(preview.node_names) or 1
    cpus = (preview.cpus_per_node or 1) * count
    partition = await _partition(remote, spec.partitions, preview.node_names)
    return Finished(err=f"{starts} {cpus} processors on nodes {hosts} in partition {partition}\n")


async def _partition(remote: Remote, named: Sequence[str], nodes: Sequence[str]) -> str:
    """The partition in which a job would start: of the named ones, the first with these nodes."""
    _, partitions = await inventory(remote)
    by_name = {one["name"]: one for one in partitions}
    names = [name for name in named if name in by_name]
    names = names or [name for name, one in by_name.items() if one["is_default"]]
    fitting = (name for name in names if set(nodes) <= set(by_name[name]["node_names"]))
    return next(fitting, ",".join(names))


async def _wait(remote: Remote, job_id: int, first: bytes) -> AsyncGenerator[bytes]:
    """Frames until the job, or every task of the array, has ended."""
    yield first + resume_frame(str(job_id))
    while True:
        try:
            ended = await remote.api.events.ended(Selector(job_id=job_id), WAIT_S)
        except OdcError as error:
            yield err(f"sbatch: error: {error.message}\n") + exit_frame(1)
            return
        if ended is not None:
            jobs: list[dict[str, Any]] = json.loads(ended)
            yield exit_frame(max((_code(job) for job in jobs), default=1))
            return


def _code(job: dict[str, Any]) -> int:
    """1: a signal ended it, or it never ran."""
    if job["state"] == "COMPLETED":
        return 0
    return int(job.get("exit_code") or 1)
