"""Answers about recurring jobs."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class CronEntry(Answer):
    """first_line, line: in the table; first_line is that of the entry's first #SCRON line.
    schedule: as it is written. next_at: null: the entry is disabled. last_at: when the last
    occurrence was due; last_why: why it started no job. last_job_id: the last job, also after
    occurrences that started none. skipped: occurrences that were skipped because the job before had
    not ended."""

    first_line: int
    line: int
    schedule: str
    zone: str
    command: str
    next_at: str | None
    last_at: str | None
    last_result: Literal["submitted", "skipped", "refused"] | None
    last_why: str | None
    last_job_id: int | None
    last_job_state: str | None
    skipped: int
    disabled_at: str | None
    disabled_by: str | None
    disabled_why: str | None


class CronTable(Answer):
    """text, zone, set_at: null: the user has no table."""

    user: str
    text: str | None
    zone: str | None
    set_at: str | None
    entries: list[CronEntry]


class CronSet(CronTable):
    """warnings: lines without an effect."""

    warnings: list[str]
