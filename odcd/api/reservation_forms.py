"""The bodies of requests to /v1/reservations."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset

from odcd.records.fields import Comment, Name


class ReserveQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dry_run: bool = False
    """Only preview: answer when and where it would start."""


class ReservationsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user: str | None = None
    """User names separated by commas, or all. Default: the caller."""
    status: str | None = None
    """Statuses separated by commas."""
    all: bool = False
    """Include reservations that ended more than an hour ago."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200


class ExtendReservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hours: float
    """Above 0, at most 24."""
    dry_run: bool = False
    """Only preview: answer which planned starts it would delay."""


class EditReservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Only the given fields change."""

    name: Name | Unset = UNSET
    comment: Comment | Unset | None = UNSET
    jupyter: bool | Unset = UNSET
    """Whether Jupyter Lab runs in it. The field jupyter of Reservation shows the result."""
    add_user: Name | Unset = UNSET
    """A GitHub user whose SSH keys may also connect."""
