"""References of container images that a job may name."""

from __future__ import annotations

import re

from odcd.errors import BadRequest

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PORT = r":[0-9]{1,5}"
# A name without a dot or a port would be the first part of a path.
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})+(?:{_PORT})?|(?:{_LABEL}|\[[0-9a-fA-F:]+\]){_PORT}|localhost)"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>[a-z0-9]+:[0-9a-f]{32,128}))?",
    re.ASCII,
)
MAX_LENGTH = 1000
MOVING = frozenset({"latest"})


def check_image(image: str, what: str) -> None:
    """Raises BadRequest for an invalid reference, or one whose image can change."""
    found = _REFERENCE.fullmatch(image) if len(image) <= MAX_LENGTH else None
    if found is None:
        raise BadRequest(
            f'{what} "{image[:200]}" is not an image reference',
            "For example pytorch/pytorch:2.9.1-cuda13.0-cudnn9-runtime, or NAME@sha256:….",
        )
    if found["digest"] is None and (found["tag"] is None or found["tag"] in MOVING):
        raise BadRequest(
            f'{what} "{image}" is not a fixed image: its tag may change',
            f"Name a fixed tag or a digest: {found['name']}:1.2.3 or {found['name']}@sha256:….",
        )
