"""The rules by which the leader submits the jobs of recurring jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from odcd.jobs.submission import Check
from odcd.jobs.submit_filter.filtering import SubmitFilter
from odcd.records.job import Identity
from odcd.slurm.mail import MailTo


@dataclass(frozen=True, slots=True, kw_only=True)
class CronRules:
    """The rules for submits of this daemon. limits: of users who are no operators.

    check_disk: raises DiskAlmostFull. mail_to: None: this daemon sends no mail."""

    check: Check
    submit_filter: SubmitFilter | None
    limits: Mapping[str, int]
    is_operator: Callable[[str, int], bool]
    check_disk: Callable[[], None]
    mail_to: Callable[[Identity], MailTo | None]
