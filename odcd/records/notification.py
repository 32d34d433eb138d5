"""Notifications to users by mail and webhook: their kinds, addresses, and those to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec

Channel = Literal["mail", "webhook"]
CHANNELS: tuple[Channel, ...] = ("mail", "webhook")

MailType = Literal[
    "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT",
    "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
]  # fmt: skip
"""Slurm's. STAGE_OUT is accepted and never happens: odc has no burst buffers."""
MAIL_TYPES: tuple[MailType, ...] = get_args(MailType)
_ALL = ("BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND", "STAGE_OUT")

Event = Literal[
    "begin", "end", "fail", "requeue", "invalid_depend", "time_limit", "time_limit_90",
    "time_limit_80", "time_limit_50", "array_tasks", "expiry", "drain",
]  # fmt: skip
"""The events of webhooks; array_tasks: each task of an array instead of the whole."""
EVENTS: tuple[Event, ...] = get_args(Event)
DEFAULT_EVENTS: tuple[Event, ...] = ("begin", "end", "fail", "expiry", "drain")

MAX_ADDRESS_CHARS = 254
ADDRESS = (
    r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@"
    r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(?![\s\S])"
)
"""One address, without a name, quotes, blanks or line breaks."""
MailAddress = Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS_CHARS, pattern=ADDRESS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One that is due. key: identifies it to its receiver. url: None: the webhook was removed.
    tries: with this one."""

    id: int
    key: str
    user_name: str
    address: str | None
    url: str | None
    kind: str
    job_id: int | None
    facts: Mapping[str, Any]
    tries: int
    created_at: datetime


def kinds_of(types: list[MailType]) -> list[str]:
    """The kinds of notifications that Slurm's mail types ask for. NONE withdraws the others."""
    if "NONE" in types:
        return []
    names = [*(_ALL if "ALL" in types else ()), *(name for name in types if name != "ALL")]
    return [name.lower() for name in dict.fromkeys(names)]
