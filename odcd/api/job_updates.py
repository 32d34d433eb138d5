"""PATCH /v1/jobs/{id}: which fields of a job change."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from odcd.errors import BadRequest, NotOwner
from odcd.jobs.submission import dependency_request
from odcd.records.fields import UNLIMITED_S, Comment, Name, Seconds
from odcd.slurm.times import parse_duration, parse_moment, zone_of

Throttle = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Nice = Annotated[int, msgspec.Meta(ge=-2_147_483_645, le=2_147_483_645)]
Partitions = Annotated[list[Name], msgspec.Meta(min_length=1)]
Dependency = Annotated[str, msgspec.Meta(max_length=200_000)]
Unset = msgspec.UnsetType
UNSET = msgspec.UNSET


class Form(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class UpdateJob(Form):
    """Only the given fields change. null removes the limit, the comment and so on."""

    time_limit_s: Seconds | Unset | None = UNSET
    time_limit: str | Unset = UNSET
    """Instead of time_limit_s, in sbatch's format: 30, 1-12:00:00, UNLIMITED; with a sign, an
    amount to add to each job's time limit or to subtract from it: +30, -1:00:00."""
    nice: Nice | Unset = UNSET
    partitions: Partitions | Unset = UNSET
    name: Name | Unset = UNSET
    comment: Comment | Unset | None = UNSET
    dependency: Dependency | Unset | None = UNSET
    array_throttle: Throttle | Unset | None = UNSET
    booking: Name | Unset | None = UNSET
    """Run inside this booking; null: outside any booking."""
    account: Name | Unset = UNSET
    qos: Name | Unset = UNSET
    begin_at: datetime | Unset | None = UNSET
    deadline_at: datetime | Unset | None = UNSET
    begin: str | Unset = UNSET
    deadline: str | Unset = UNSET
    """Instead of begin_at and deadline_at, in sbatch's format: now+1hour, tomorrow 16:00."""
    time_zone: str | None = None
    """The caller's TZ, which begin and deadline refer to."""


def changes_of(form: UpdateJob, operator: bool, now: datetime) -> dict[str, object]:
    """The changes in the form that odc.update_jobs takes.

    Raises BadRequest, BadDependency, NotOwner.
    """
    changes: dict[str, object] = {
        name: value
        for name in UpdateJob.__struct_fields__
        if name != "time_zone" and (value := getattr(form, name)) is not UNSET
    }
    _read_sbatch_forms(changes, now.astimezone(zone_of(form.time_zone)))
    if not changes:
        raise BadRequest("the request changes nothing", "Give at least one field.")
    if "time_limit_s" in changes and changes["time_limit_s"] is None:
        changes["time_limit_s"] = UNLIMITED_S
    if isinstance(form.nice, int) and form.nice < 0 and not operator:
        raise NotOwner(
            f"nice {form.nice} would put the job before others, which only operators may do",
            "Use a nice value of 0 or more.",
        )
    for name in ("begin_at", "deadline_at"):
        moment = changes.get(name)
        if isinstance(moment, datetime):
            if moment.tzinfo is None:
                raise BadRequest(f"{name} {moment.isoformat()} has no time zone", "End it with Z.")
            changes[name] = moment.isoformat()
    if isinstance(form.dependency, str) and form.dependency:
        changes["dependency"] = dependency_request(form.dependency)
    elif "dependency" in changes:
        changes["dependency"] = None
    return changes


def _read_sbatch_forms(changes: dict[str, object], now: datetime) -> None:
    """Parse sbatch's formats into the fields they stand for. Raises BadRequest on duplicates."""
    for text, name in (
        ("time_limit", "time_limit_s"),
        ("begin", "begin_at"),
        ("deadline", "deadline_at"),
    ):
        given = changes.pop(text, None)
        if not isinstance(given, str):
            continue
        if text == "time_limit" and given.lstrip()[:1] in ("+", "-") and given.strip() != "-1":
            changes["time_limit_add_s"] = _signed_seconds(given.strip())
            continue
        if name in changes:
            raise BadRequest(f"{text} and {name} mean the same", "Use only one of them.")
        changes[name] = parse_duration(given) if text == "time_limit" else parse_moment(given, now)


def _signed_seconds(text: str) -> int:
    seconds = parse_duration(text[1:])
    if seconds == UNLIMITED_S:
        raise BadRequest(
            f'"{text[:60]}" is not an amount of time', "Give minutes or a duration: +30, -1:00:00."
        )
    return -seconds if text[0] == "-" else seconds
