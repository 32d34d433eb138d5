"""Records of recurring jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCron:
    """An occurrence of an entry. request: a CronRequest as
    JSON; None: it is to be skipped."""

    id: int
    due_at: datetime
    uid: int
    gid: int
    user_name: str
    line: int
    zone: str
    request: str | None


class CronOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """disabled: the entry will not occur again, because its user may not use the account."""

    result: Literal["submitted", "skipped", "refused"]
    job_id: int | None
    why: str | None
    disabled: bool
