"""A job that only holds its nodes: for srun outside of a job, and for salloc."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from odcd.api.http.context import Api
from odcd.api.slurm.remote import Remote, err, frame
from odcd.errors import OdcError, WrongState, refusal
from odcd.jobs.filtered import prepare_filtered
from odcd.records.dispatch import Dispatch
from odcd.records.job import Selector
from odcd.slurm.commands.sbatch import messages, refused, unparsed
from odcd.slurm.commands.usage import Usage
from odcd.slurm.gangs import with_nodes_for_tasks
from odcd.slurm.parse import parse_submit
from odcd.slurm.request import SubmitArgv
from odcd.slurm.spec import MAX_SUBMIT_LINE

HOLD = """\
#!/bin/sh
# Holds the nodes of an allocation until its user releases them. In pods, that is a signal.
trap 'if read -r code </odc/run/release; then exit "$code"; fi 2>/dev/null' USR1
while :; do sleep 86400 & wait "$!"; done
"""
QUIET_S = 0.3
"""Nothing is printed about an allocation that is made within this time."""
LOOK_S = (0.005, 0.25, 2.0)
"""Pauses between two looks at the job: the first; the longest, at the beginning and later."""


class Allocation:
    """One allocation, made by one command; a repeated request with its key finds the same job."""

    def __init__(
        self, remote: Remote, key: str, options: Sequence[str], *, name: str, quiet: bool = False
    ) -> None:
        """options: in sbatch's language. name: of the job."""
        self._remote = remote
        self._api = remote.api
        self._key = key
        self._options = list(options)
        self._name = name
        self._quiet = quiet
        self._attached = False
        self._warning = ""
        self.job_id = 0
        self.dispatch: Dispatch | None = None

    async def wait(self, *, talks: bool = False) -> AsyncGenerator[bytes]:
        """Submit the job, and wait until it runs. talks: report each step, as salloc does. Raises
        Usage."""
        command = self._remote.name
        revoked = f"{command}: error: Job allocation has been revoked\n"
        self.job_id = await self._submit()
        self._api.steps.attach(("job", self.job_id))
        self._attached = True
        if self._warning and not self._quiet and self._remote.request.token is None:
            yield err(self._warning)
        yield frame(b"r", b"")
        told = False
        begun, pause_s = self._api.clock.monotonic(), LOOK_S[0]
        while True:
            dispatch = await self._api.store.dispatches.get(self.job_id)
            if dispatch is not None and any(m.rank == 0 for m in dispatch.members):
                state = next(m.state for m in dispatch.members if m.rank == 0)
                if state == "running":
                    break
                if state == "ended":
                    raise Usage(revoked)
            elif await self._is_over():
                raise Usage(revoked)
            if not told and self._api.clock.monotonic() - begun > QUIET_S and not self._quiet:
                told = True
                if talks:
                    yield err(f"{command}: Pending job allocation {self.job_id}\n")
                yield err(f"{command}: job {self.job_id} queued and waiting for resources\n")
            await self._api.clock.sleep(pause_s)
            waited_s = self._api.clock.monotonic() - begun
            pause_s = min(2 * pause_s, max(LOOK_S[1], waited_s / 20), LOOK_S[2])
        self.dispatch = dispatch
        if told:
            yield err(f"{command}: job {self.job_id} has been allocated resources\n")

    async def _submit(self) -> int:
        request = self._remote.request
        argv = [
            f"--job-name={self._name}", "--output=/dev/null", "--no-requeue", *self._options,
            "hold",
        ]  # fmt: skip
        submit = SubmitArgv(
            argv=argv, work_dir=request.work_dir, umask=request.umask, script=HOLD,
            script_path="hold", submit_host=request.host,
            environment={"TZ": request.environment["TZ"]} if "TZ" in request.environment else {},
        )  # fmt: skip
        command = self._remote.name
        who = self._remote.who
        try:
            try:
                mail_to = self._api.mail_to(who)
                parsed = parse_submit(submit, self._api.clock.now(), mail_to)
            except OdcError as error:
                raise unparsed(error, command) from None
            line = shlex.join([command, *request.argv])[:MAX_SUBMIT_LINE]
            asked = replace(parsed.spec, submit_line=line)
            spec, self._warning = with_nodes_for_tasks(command, asked)
            if parsed.mail_warning:
                self._warning += f"{command}: warning: {parsed.mail_warning}\n"
            self._api.fairness.submit(who, spec.job_count)
            passed = await prepare_filtered(
                who, [spec], kind="allocation", submit_filter=self._api.submit_filter,
                key=self._key, dry_run=False, check=self._api.check_job,
                turns=self._remote.call.turns(),
            )  # fmt: skip
            self._warning += messages(passed.filtered.warnings, command)
            answer = (await self._api.batcher.submit(passed.prepared))[0]
            if answer.code is not None:
                raise passed.explain(refusal(answer.code, answer.message or "refused", answer.hint))
        except OdcError as error:
            if error.status >= 500:
                raise
            raise refused(error, command) from None
        self._api.wake()
        assert answer.job_id is not None
        return answer.job_id

    async def _is_over(self) -> bool:
        return await self._api.events.ended(Selector(job_id=self.job_id), 0.0) is not None

    def leave(self, *, gone: bool) -> None:
        """gone: the client has disconnected, and may come back; otherwise its job is cancelled."""
        if self._attached:
            self._attached = False
            stays = not gone or self._api.events.closing.is_set()
            self._api.steps.leave(("job", self.job_id), None if stays else self._cancel)

    async def release(self, code: int) -> None:
        """The command is over with this exit code."""
        self.leave(gone=False)
        await release(self._api, self.job_id, code)

    async def _cancel(self) -> None:
        await self._api.store.jobs.cancel(
            self._remote.who, {"ids": [Selector(job_id=self.job_id)]}, self._api.clock.now()
        )


async def release(api: Api, job_id: int, code: int) -> None:
    """End a job that holds nodes with this exit code."""
    dispatch = await api.store.dispatches.get(job_id)
    steps = api.executor().steps
    if steps is None:
        raise WrongState(f"job {job_id} is no allocation of salloc")
    if dispatch is not None:
        await steps.release(job_id, dispatch.attempt, code)
