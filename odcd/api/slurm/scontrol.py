"""scontrol: show things, and change jobs. Administration that odc spells differently is refused
with the command of odcctl."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from odcd.api.job_updates import UpdateJob, changes_of
from odcd.api.slurm.components import is_component, job_of
from odcd.api.slurm.fetch import selectors, with_components_named
from odcd.api.slurm.remote import Finished, Frames, Remote, err, exit_frame, resume_frame
from odcd.api.slurm.scontrol_show import SHOW
from odcd.api.slurm.version import help_text, version_line
from odcd.errors import OdcError, UnknownJob
from odcd.records.job import Selector
from odcd.slurm.commands.getopt import Flag, parse
from odcd.slurm.lists import split_selectors
from odcd.slurm.usage import Usage

NAME = "scontrol"
OPTIONS = (
    Flag("all", "all", "a", ignored=True, help="odc hides no partition"),
    Flag("clusters", "cluster", "M", "required", refused="this server is one cluster"),
    Flag("details", "details", "d", ignored=True, help="has no effect"),
    Flag("future", "future", "F", ignored=True, help="has no effect"),
    Flag("help", "help", "h", help="this text"),
    Flag("hide", "hide", ignored=True, help="odc hides no partition"),
    Flag("oneliner", "oneliner", "o", help="one line for each record"),
    Flag("quiet", "quiet", "Q", help="no messages"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
)
SHORT = (
    ("config", 1), ("hostlist", 5), ("hostnames", 5), ("jobs", 1), ("licenses", 2), ("nodes", 1),
    ("partitions", 2), ("partitionname", 2), ("reservations", 1), ("reservationname", 1),
    ("steps", 2), ("jobid", 1), ("nodename", 1),
)  # fmt: skip
"""Entities of show that may be shortened, and their least number of letters."""
WAIT_S = 30.0
UNKNOWN = "Invalid job id specified"
PART = "Operation not permitted on individual component of heterogeneous job"
ELSEWHERE = {
    "suspend": "odc does not suspend jobs; use odcctl requeue --hold ID",
    "resume": "odc does not suspend jobs; use odcctl release ID",
    "top": "odc orders jobs by policy; use odcctl update --nice N ID",
    "create": "use odcctl booking, odcctl partition or odcctl node",
    "delete": "use odcctl booking, odcctl partition or odcctl node",
    "reconfigure": "odcd reads its settings file when it starts",
    "shutdown": "use odcd down",
    "takeover": "a follower takes over by itself",
    "reboot": "odc does not reboot nodes",
    "token": "use odcd token",
    "listpids": "use ps on the job's nodes, or odcctl top ID",
    "write": "odcd does not write its settings file",
    "setdebug": "restart odcd with another ODC_LOG_LEVEL",
}
"""Verbs that are refused, and the reason or the command to use."""
NO_ENTITY = (
    "No valid entity in update command\n"
    'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or '
    '"SlurmctldDebug"\n'
)
NOT_JOBS = {
    "nodename": "odcctl node drain|resume NAME", "partitionname": "odcctl partition",
    "reservationname": "odcctl booking", "stepid": "srun's own options",
}  # fmt: skip
FIELDS = {
    "timelimit": "time_limit", "nice": "nice", "partition": "partitions", "name": "name",
    "jobname": "name", "comment": "comment", "dependency": "dependency",
    "arraytaskthrottle": "array_throttle", "reservationname": "booking", "reservation": "booking",
    "account": "account", "qos": "qos", "starttime": "begin", "eligibletime": "begin",
    "deadline": "deadline",
}  # fmt: skip
"""Keys of scontrol update, and the fields of a job."""


async def scontrol(remote: Remote) -> Finished | Frames:
    if (job_id := remote.resumed_job()) is not None:
        return _wait(remote, job_id)
    found = parse(NAME, OPTIONS, remote.request.argv)
    words = found.operands
    if found.has("version") or words[:1] == ["version"]:
        return Finished(out=version_line())
    if found.has("help") or not words:
        return Finished(out=help_text(NAME, OPTIONS))
    verb, rest = words[0].lower(), words[1:]
    if verb == "show":
        if not rest:
            raise Usage("too few arguments for keyword:show\n")
        entity, equals, name = rest[0].partition("=")
        show = SHOW.get(_entity(entity.lower()))
        if show is None:
            raise Usage(f"invalid entity:{entity[:60]} for keyword:show \n")
        return await show(remote, [name] if equals else rest[1:], found.has("oneliner"))
    if verb == "ping":
        return Finished(out=f"Slurmctld(primary) at {remote.api.address or 'odcd'} is UP\n")
    if verb in ELSEWHERE:
        raise Usage(f"{NAME}: error: {verb} is not supported: {ELSEWHERE[verb]}\n")
    if verb == "completing":
        return Finished()  # a job that completes holds its nodes for a moment only
    if verb == "wait_job":
        return await _wait_job(remote, rest)
    change = VERBS.get(verb)
    if change is None:
        raise Usage(f"invalid keyword: {words[0][:60]}\n")
    if not rest:
        words_for = "update keyword" if verb == "update" else f"keyword:{verb}"
        raise Usage(f"too few arguments for {words_for}\n")
    answer = await change(remote, rest)
    return Finished(code=answer.code) if found.has("quiet") else answer


def _entity(word: str) -> str:
    """The entity that a word begins, as in Slurm: j, no, part, res."""
    if word in SHOW:
        return word
    found = next((e for e, least in SHORT if len(word) >= least and e.startswith(word)), word)
    return {"jobid": "job", "nodename": "node", "partitionname": "partition",
            "reservationname": "reservation"}.get(found, found)  # fmt: skip


async def _hold(remote: Remote, words: Sequence[str]) -> Finished:
    async def hold(selector: Selector) -> str:
        return await remote.api.store.jobs.hold(
            remote.who, {"ids": [selector]}, remote.api.clock.now(),
            stored_bytes=remote.api.fairness.stored_bytes,
        )  # fmt: skip

    return _suspended(await _each(remote, words, hold))


async def _release(remote: Remote, words: Sequence[str]) -> Finished:
    async def release(selector: Selector) -> str:
        return await remote.api.store.jobs.release(
            remote.who, {"ids": [selector]}, remote.api.clock.now(),
            stored_bytes=remote.api.fairness.stored_bytes,
        )  # fmt: skip

    return _suspended(await _each(remote, words, release))


def _suspended(answer: Finished) -> Finished:
    """Slurm ends a refused hold or release with this line."""
    if UNKNOWN not in answer.err:
        return answer
    return Finished(err=f"{answer.err}slurm_suspend error: {UNKNOWN}\n", code=answer.code)


async def _requeue(remote: Remote, words: Sequence[str], *, hold: bool = False) -> Finished:
    async def requeue(selector: Selector) -> str:
        return await remote.api.store.jobs.requeue(
            remote.who, {"ids": [selector]}, remote.api.clock.now(), hold=hold,
            stored_bytes=remote.api.fairness.stored_bytes,
        )  # fmt: skip

    return await _each(remote, _ids(words), requeue)


async def _update(remote: Remote, words: Sequence[str]) -> Finished:
    given: dict[str, str] = {}
    if len(words) > 1 and words[0].lower() in ("job", "jobid"):
        words = [f"jobid={words[1]}", *words[2:]]
    for word in words:
        key, equals, value = word.partition("=")
        key = key.rstrip("+-").lower()
        if not equals:
            raise _unsupported(word)
        given[key] = value
    for key, instead in NOT_JOBS.items():
        if key in given and "jobid" not in given and "job" not in given:
            raise Usage(f"{NAME}: error: update {key} is not supported: use {instead}\n")
    ids = given.pop("jobid", None) or given.pop("job", None)
    if ids is None:
        raise Usage(NO_ENTITY)
    fields: dict[str, Any] = {"time_zone": remote.request.environment.get("TZ")}
    for key, value in given.items():
        field = FIELDS.get(key)
        if field is None:
            raise _unsupported(f"{key}={value}")
        fields[field] = _field(field, value)
    try:
        form = msgspec.convert(fields, UpdateJob)
    except msgspec.ValidationError:
        raise Usage("Invalid value for job\nRequest aborted\n") from None
    changes = changes_of(form, remote.who.operator, remote.now())

    async def update(selector: Selector) -> str:
        return await remote.api.store.jobs.update(
            remote.who, {"ids": [selector]}, remote.api.clock.now(), changes,
            stored_bytes=remote.api.fairness.stored_bytes,
        )  # fmt: skip

    return await _each(remote, [ids], update)


def _field(name: str, value: str) -> object:
    if name == "partitions":
        return value.split(",")
    if name in ("nice", "array_throttle") and re.fullmatch("-?[0-9]{1,9}", value):
        return int(value)
    return value or None


def _unsupported(word: str) -> Usage:
    return Usage(f"Update of this parameter is not supported: {word[:60]}\nRequest aborted\n")


def _ids(words: Sequence[str]) -> Sequence[str]:
    """The words without requeue's options."""
    return [word for word in words if not word.lower().startswith(("incomplete", "specialexit="))]


async def _each(
    remote: Remote, words: Sequence[str], change: Callable[[Selector], Awaitable[str]]
) -> Finished:
    """Change one job after the other; each refusal is one line."""
    said: list[str] = []
    texts = [
        re.sub(r"(?i)^job(?:id)?=", "", one) for word in words for one in split_selectors(word)
    ]
    for plain in await with_components_named(remote, texts):
        if not re.match("[0-9]", plain):
            said.append(f"{UNKNOWN} for job {plain[:60]}\n")
            continue
        if is_component(plain):
            said.append(f"{PART} for job {plain}\n{NAME}: error: odc: the components of a job are "
                        f"changed together: name job {job_of(plain)}\n")  # fmt: skip
            continue
        selector = (await selectors(remote, NAME, [plain]))[0]
        try:
            outcomes: list[dict[str, Any]] = json.loads(await change(selector))
        except OdcError as error:
            said.append(_refusal(plain, error.code, error.message))
            continue
        for outcome in outcomes:
            if outcome.get("code") is not None:
                said.append(_refusal(plain, outcome["code"], outcome.get("message") or ""))
    remote.api.wake()
    return Finished(err="".join(said), code=1 if said else 0)


REFUSALS = {
    "OD006": UNKNOWN, "OD013": "Access/permission denied",
    "OD012": "Job/step already completing or completed",
    "OD001": "Invalid partition name specified", "OD004": "Invalid qos specification",
    "OD002": "Invalid account or account/partition combination specified",
    "OD011": "Job dependency problem",
}  # fmt: skip


def _refusal(text: str, code: str | None, message: str) -> str:
    words = REFUSALS.get(code or "", message)
    more = "" if code == UnknownJob.code or words == message else f"\n{NAME}: error: odc: {message}"
    return f"{words} for job {text}{more}\n"


async def _wait_job(remote: Remote, words: Sequence[str]) -> Frames:
    if len(words) != 1:
        raise Usage("too few arguments for keyword:wait_job\n")
    selector = (await selectors(remote, NAME, list(words)))[0]
    return _wait(remote, await remote.api.one_job(selector))


async def _wait(remote: Remote, job_id: int) -> Frames:
    """Until the job's nodes are ready, which is when it runs; 1 if it ends before."""
    yield resume_frame(str(job_id))
    while True:
        text, _ = await remote.api.store.jobs.list(
            {"ids": [Selector(job_id=job_id)]}, remote.api.clock.now(), ended=True, after=None,
            limit=1, fields=["id", "state"],
        )  # fmt: skip
        rows: list[dict[str, Any]] = json.loads(text)
        if not rows:
            yield err(f"scontrol: Problem running job {job_id}\n") + exit_frame(1)
            return
        if rows[0]["state"] not in ("PENDING", "CONFIGURING"):
            yield exit_frame(0 if rows[0]["state"] in ("RUNNING", "COMPLETING") else 1)
            return
        await remote.api.clock.sleep(0.5)


VERBS: dict[str, Callable[[Remote, Sequence[str]], Awaitable[Finished]]] = {
    "hold": _hold, "uhold": _hold, "release": _release, "requeue": _requeue,
    "requeuehold": partial(_requeue, hold=True), "update": _update,
}  # fmt: skip
