"""What answers about bookings and licences look like."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class Booking(Answer):
    """starts_at, ends_at: of the occurrence that is on or comes next; of a booking that is over as
    it was made. node_list, gpu_type, partition, node_count, all_nodes: which nodes were asked for;
    node_names: those it has. reason: what it lacks. jobs: those that live and name it, at most
    1000."""

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
    """jobs: those that hold it, at most 1000."""

    name: str
    total: int
    used: int
    free: int
    jobs: list[int]


class LicenceList(Answer):
    licences: list[Licence]
