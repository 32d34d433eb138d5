"""scancel: cancel jobs, or send them a signal."""

from __future__ import annotations

import json
from typing import Any

from odcd.api.slurm.accounting import listed
from odcd.api.slurm.components import is_component, job_of
from odcd.api.slurm.fetch import is_unknown, selectors, with_components_named
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.step_rows import cancel_step, is_step
from odcd.api.slurm.version import answer_about
from odcd.errors import NotImplementedYet, NotOwner, OdcError, UnknownJob, WrongState
from odcd.slurm.commands import scancel as command
from odcd.slurm.commands.scancel import Scancel, parse_scancel
from odcd.slurm.usage import fail

MOST_USERS = 20
"""Each takes a look at the user database, which may be slow."""
DENIED = "Access/permission denied"
UNKNOWN = "Invalid job id specified"


async def scancel(remote: Remote) -> Finished:
    about = answer_about(remote, command.OPTIONS)
    if about is not None:
        return about
    wanted = parse_scancel(remote.request.argv)
    filters: dict[str, object] = dict(wanted.filters)
    if wanted.me:
        filters["user"] = [remote.who.user]
    said: list[str] = []
    failed = False
    outcomes = await _cancel(remote, wanted, filters)
    if wanted.cron and wanted.signal is None:
        ended = [one["job_id"] for _, one in outcomes if one.get("code") is None]
        numbers = [one for one in ended if isinstance(one, int)]
        await remote.api.store.cron.disable(remote.who, numbers, remote.api.clock.now())
    users = wanted.filters.get("user", [])
    if all(outcome.get("code") == UnknownJob.code for _, outcome in outcomes):
        known = {remote.who.user}
        if users:
            known |= {one["user"] for one in listed(await remote.api.store.users.list(), "users")}
        for user in users[:MOST_USERS]:
            if user not in known and await is_unknown(user):
                raise fail(command.NAME, f"Invalid user name: {user[:60]}")
    for text, outcome in outcomes:
        shown = text or str(outcome["job_id"])
        if outcome.get("code") in (None, UnknownJob.code, WrongState.code):
            # An unknown or ended job is not an error, as in Slurm.
            if wanted.verbose:
                said.append(_done(shown, wanted))
            if wanted.verbose and outcome.get("code") == UnknownJob.code:
                said.append(f"scancel: error: Kill job error on job id {shown}: {UNKNOWN}\n")
            continue
        failed = True
        why = DENIED if outcome["code"] == NotOwner.code else outcome.get("message") or "refused"
        said.append(f"scancel: error: Kill job error on job id {shown}: {why}\n")
    remote.api.wake()
    quiet = wanted.quiet and not wanted.verbose
    return Finished(err="" if quiet else "".join(said), code=1 if failed else 0)


def _done(shown: str, wanted: Scancel) -> str:
    if wanted.signal is None:
        return f"scancel: Terminating job {shown}\n"
    return f"scancel: Signal {wanted.signal} to batch job {shown}\n"


async def _cancel(
    remote: Remote, wanted: Scancel, filters: dict[str, object]
) -> list[tuple[str, dict[str, Any]]]:
    """The outcomes, each with the id that named the job, if any."""
    if not wanted.ids:
        return [("", outcome) for outcome in await _one(remote, wanted, filters)]
    outcomes: list[tuple[str, dict[str, Any]]] = []
    for text in dict.fromkeys(await with_components_named(remote, wanted.ids)):
        if is_component(text) and "." not in text:
            outcomes.append((text, _alone(text)))
            continue
        if is_step(job_of(text)):
            why = await cancel_step(remote, job_of(text), wanted.signal)
            code = None if why is None else NotOwner.code
            outcomes.append((text, {"job_id": text, "code": code, "message": why}))
            continue
        ids = await selectors(remote, "scancel", [text])
        for outcome in await _one(remote, wanted, {**filters, "ids": ids}):
            outcomes.append((text, outcome))
    return outcomes


async def _one(remote: Remote, wanted: Scancel, filters: dict[str, object]) -> list[dict[str, Any]]:
    store, now = remote.api.store.jobs, remote.api.clock.now()
    executor = None if wanted.signal is None else remote.api.executor()
    try:
        rows: list[dict[str, Any]] = json.loads(
            await store.cancel(remote.who, filters, now, signal=wanted.signal)
        )
    except (UnknownJob, WrongState, NotOwner) as error:
        return [_outcome(error)]
    except OdcError as error:
        if error.code in ("OD001", "OD002", "OD004"):
            return []  # no job can be there
        raise
    for outcome in rows:
        if outcome["outcome"] == "signal" and executor is not None and wanted.signal is not None:
            # --full: the processes that the batch shell started, and then the shell itself.
            for batch_only in (False, True) if wanted.full else (wanted.batch,):
                await executor.signal(
                    outcome["job_id"], outcome["attempt"], signal=wanted.signal,
                    batch_only=batch_only,
                )  # fmt: skip
    return rows or [{"job_id": 0, "outcome": "none", "code": UnknownJob.code}]


def _alone(text: str) -> dict[str, Any]:
    """The refusal of a component."""
    why = f"a component cannot be cancelled alone; to cancel all of them: scancel {job_of(text)}"
    return {"job_id": text, "code": NotImplementedYet.code, "message": why}


def _outcome(error: OdcError) -> dict[str, Any]:
    return {"job_id": 0, "outcome": "refused", "code": error.code, "message": error.message}
