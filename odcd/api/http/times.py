"""Check the moments in requests: every time zone and the database must be able to express them."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import inspect

from odcd.errors import BadRequest


def check_moments(form: object) -> None:
    """Raises BadRequest unless every moment among a struct's fields is in the years 1 to 9999.

    A moment without a time zone is left to the operation.
    """
    if not isinstance(form, msgspec.Struct):
        return
    for name in _fields(type(form)):
        if (moment := getattr(form, name)) is not None:
            check_moment(name, moment)


def check_moment(name: str, moment: object) -> None:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return
    if not 1 < moment.year < 9999 and not _in_utc(moment):
        raise BadRequest(
            f"{name} is not between the years 1 and 9999",
            "Give a moment like 2026-07-01T12:00:00Z.",
        )


def _in_utc(moment: datetime) -> bool:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return False
    return True


@functools.cache
def _fields(form: type[msgspec.Struct]) -> tuple[str, ...]:
    """Names of the fields that may contain moments."""
    kind = inspect.type_info(form)
    assert isinstance(kind, inspect.StructType)
    return tuple(field.name for field in kind.fields if _is_moment(field.type))


def _is_moment(kind: Any) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(map(_is_moment, kind.types))
    return isinstance(kind, inspect.DateTimeType)
