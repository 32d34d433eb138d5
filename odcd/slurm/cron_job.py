"""The job of an entry of a table of recurring jobs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from odcd.records.job import JobSpec
from odcd.slurm.argv import parse_argv
from odcd.slurm.mail import MailTo
from odcd.slurm.parse import parse_submit
from odcd.slurm.request import SubmitArgv

SCRIPT = "#!/bin/sh\n# A recurring job: odcctl cron -l shows its table.\n\n"


class CronRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The job of an entry. It is parsed again for each occurrence, so --begin=now+1hour counts from
    there."""

    argv: list[str]
    command: str
    environment: dict[str, str]
    work_dir: str
    umask: int
    submit_host: str | None = None


def cron_job(
    request: CronRequest, zone: str, now: datetime, mail_to: MailTo | None = None
) -> JobSpec:
    """The job of one occurrence. Raises as parse_submit."""
    parsed = parse_submit(
        SubmitArgv(
            command="sbatch", argv=[*request.argv, f"--wrap={request.command}"],
            work_dir=request.work_dir, environment={"TZ": zone, **request.environment},
            umask=request.umask, submit_host=request.submit_host,
        ),
        now, mail_to,
    )  # fmt: skip
    spec = parsed.spec
    environment = dict(spec.environment)
    if "TZ" not in request.environment:
        environment.pop("TZ", None)
    named = any(one.option.long == "job-name" for one in parse_argv(request.argv).options)
    name = spec.name if named else _name_of(request.command)
    script = f"{SCRIPT}{request.command}\n"
    return msgspec.structs.replace(spec, script=script, name=name, environment=environment)


def request_of(stored: str) -> CronRequest:
    return msgspec.json.decode(stored, type=CronRequest)


def _name_of(command: str) -> str:
    """As cron users name a job: its program, without the folder."""
    words = command.split()
    return (words[0].rstrip("/").rpartition("/")[2] or "cron")[:200] if words else "cron"
