"""Answers about bookings and licences."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class Booking(Answer):
    """starts_at, ends_at: of the current or next occurrence; of an ended booking, as it was
    created. node_list, gpu_type, partition, node_count, all_nodes: the nodes requested;
    node_names: the nodes assigned. reason: what is missing. jobs: the live jobs that name this
    booking, at most 1000. zone: in which it repeats at the same time of day; null: UTC."""

    id: int
    name: str
    kind: Literal["maintenance", "use"]
    state: Literal["PLANNED", "ACTIVE", "ENDED", "DELETED"]
    state_at: str
    starts_at: str
    ends_at: str
    duration_s: int
    repeats: Literal["none", "daily", "weekly", "weekdays"]
    until: str | None
    zone: str | None
    node_list: list[str]
    gpu_type: str | None
    partition: str | None
    all_nodes: bool
    node_count: int | None
    node_names: list[str]
    users: list[str]
    accounts: list[str]
    jobs: list[int]
    ignore_running: bool
    comment: str | None
    reason: str | None
    created_by: str
    created_at: str


class BookingList(Answer):
    bookings: list[Booking]


class Licence(Answer):
    """jobs: the jobs that use it, at most 1000."""

    name: str
    total: int
    used: int
    free: int
    jobs: list[int]


class LicenceList(Answer):
    licences: list[Licence]
