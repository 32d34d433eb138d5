"""Reject versions of odcctl that are too old for this daemon."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from odcd.errors import BadRequest, ClientTooOld

Version = tuple[int, ...]
_AGENT = re.compile(rb"odcctl(?:/(\d{1,6}(?:\.\d{1,6}){0,3}))?(?:\.?[^\d.].*)?")
"""0.2.dev5 is a build on the way to 0.2, and counts as 0.2."""
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")


def version_of(text: str) -> Version:
    """Raises BadRequest."""
    if not _VERSION.fullmatch(text):
        raise BadRequest(f'ODC_OLDEST_CLIENT="{text[:60]}" is not a version', "For example 0.2.0.")
    return tuple(map(int, text.split(".")))


def check_client(scope: Mapping[str, Any], oldest: Version | None) -> None:
    """Raises ClientTooOld, whatever the request was. Other clients pass."""
    if oldest is None:
        return
    agent = next((value for name, value in scope["headers"] if name == b"user-agent"), b"")
    theirs = _version(bytes(agent[:200]))
    if theirs is not None and theirs < oldest:
        version = ".".join(map(str, theirs)) or "of an unknown version"
        minimum = ".".join(map(str, oldest))
        raise ClientTooOld(
            f"this odcctl is {version}, and the server needs {minimum} or newer",
            f'Upgrade it: pip install --upgrade "odc>={minimum}"',
        )


@functools.lru_cache(maxsize=64)
def _version(agent: bytes) -> Version | None:
    """None: the client is not odcctl. (): an odcctl that sends no version."""
    found = _AGENT.fullmatch(agent)
    if found is None:
        return None
    return tuple(map(int, found[1].split(b"."))) if found[1] else ()
