"""Dispatches and facts in the format of the runner's protocol; see odcd.runner.orders."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from odcd.executor.environment import job_variables, member_variables, path_with
from odcd.executor.output import OutputFile, PathTooLong, Streams, streams_of_all
from odcd.executor.starts import refusal_of
from odcd.records.dispatch import Dispatch, Fact, Member

log = logging.getLogger(__name__)

MASTER_ADDR = "127.0.0.1"
"""All nodes of the local executor, declared or not, are this machine."""
KEPT_ENVIRONMENTS = 64
UNREADABLE = (KeyError, TypeError, ValueError, OverflowError, OSError)


class Encoder:
    """Converts dispatches into the runner's format."""

    def __init__(
        self,
        cluster: str,
        gpu_ids_of: Callable[[Member], Sequence[int]],
        commands: str | None = None,
    ) -> None:
        """commands: a folder with Slurm's commands, which comes first on the PATH of jobs."""
        self._commands = commands
        self._cluster = cluster
        self._gpu_ids_of = gpu_ids_of
        self._environments: OrderedDict[str, dict[str, str]] = OrderedDict()

    def dispatch(self, d: Dispatch, texts: Mapping[str, str], grace_s: float) -> dict[str, Any]:
        """A dispatch for the runner; one that cannot start makes the runner report the reason."""
        try:
            return self._dispatch(d, texts, grace_s)
        except PathTooLong as error:
            base = {
                "job": d.job_id, "attempt": d.attempt, "uid": d.uid, "gid": d.gid,
                "umask": d.umask, "started_at": d.started_at.timestamp(),
            }  # fmt: skip
            ranks = [member.rank for member in d.members if member.state == "starting"]
            return refusal_of(base, ranks, error.message, grace_s=grace_s)

    def _dispatch(self, d: Dispatch, texts: Mapping[str, str], grace_s: float) -> dict[str, Any]:
        files = streams_of_all(d)
        base = self._environment(d.environment_digest, texts)
        warned = d.signal_number is not None
        return {
            "job": d.job_id, "attempt": d.attempt, "uid": d.uid, "gid": d.gid, "umask": d.umask,
            "work_dir": d.work_dir, "script": d.script_digest, "environment": d.environment_digest,
            "env": {
                **job_variables(d, base, cluster=self._cluster, master_addr=MASTER_ADDR),
                **path_with(self._commands, base),
            },
            "args": list(d.args), "started_at": d.started_at.timestamp(),
            "ends_at": d.ends_at.timestamp() if d.ends_at else None, "grace_s": grace_s,
            "signal": [d.signal_number, d.signal_before_s or 0, d.signal_batch] if warned else None,
            "spool": bool(d.options.get("spool_output")), "pty": bool(d.options.get("pty")),
            "members": [
                self._member(d, member, its)
                for member, its in zip(d.members, files, strict=True)
                if member.state == "starting"
            ],
        }  # fmt: skip

    def _member(self, d: Dispatch, member: Member, files: Streams) -> dict[str, Any]:
        return {
            "rank": member.rank,
            "hold": d.holds(member.rank),
            "env": member_variables(d, member, self._gpu_ids_of(member)),
            "stdin": files.stdin,
            "stdout": _file(files.stdout),
            "stderr": _file(files.stderr) if files.stderr else None,
            "shared": files.stdout.shared or bool(files.stderr and files.stderr.shared),
            "limits": None if member.virtual else {"cpus": member.cpus, "mem_mib": member.mem_mib},
        }

    def _environment(self, digest: str, texts: Mapping[str, str]) -> dict[str, str]:
        known = self._environments.get(digest)
        if known is None:
            known = self._environments[digest] = json.loads(texts[digest])
            if len(self._environments) > KEPT_ENVIRONMENTS:
                self._environments.popitem(last=False)
        return known


def _file(output: OutputFile) -> dict[str, Any]:
    return {"path": output.path, "truncate": output.truncate, "append": output.append}


def facts_of(messages: Iterable[Mapping[str, Any]], now: datetime) -> list[Fact]:
    """The facts in the runner's messages. One that cannot be read is replaced by a plain one, so
    that its job ends and the runner does not send it forever; now: its time."""
    facts: list[Fact] = []
    for fields in (fields for message in messages for fields in message.get("facts", ())):
        try:
            facts.append(fact_of(fields))
        except UNREADABLE as error:
            log.error("runner.unread_fact", extra={"fact": repr(fields)[:500], "why": repr(error)})
            with suppress(*UNREADABLE):
                facts.append(
                    Fact(
                        job_id=int(fields["job"]), attempt=int(fields["attempt"]),
                        rank=int(fields["rank"]), kind=fields["kind"], at=now,
                        exit_code=1 if fields["kind"] == "exited" else None,
                        detail="odc could not read the runner's report about it",
                    )
                )  # fmt: skip
    return facts


def fact_of(fields: Mapping[str, Any]) -> Fact:
    """Ignores fields added by a newer runner."""
    return Fact(
        job_id=fields["job"],
        attempt=fields["attempt"],
        rank=fields["rank"],
        kind=fields["kind"],
        at=datetime.fromtimestamp(fields["at"], UTC),
        exit_code=fields.get("exit_code"),
        signal=fields.get("signal"),
        cause=fields.get("cause"),
        detail=fields.get("detail"),
        used=_used_of(fields.get("used")),
        drains=_drains_of(fields.get("drains")),
    )


def _used_of(used: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if used is None else tuple(int(number) for number in used)


def _drains_of(drains: Mapping[str, str] | None) -> str | None:
    if not drains:
        return None
    return json.dumps({int(rank): str(reason) for rank, reason in drains.items()})
