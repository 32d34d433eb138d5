"""Types of request fields: counts, times, and texts that a terminal can show safely."""

from __future__ import annotations

from typing import Annotated

import msgspec

UNLIMITED_S = 2_147_483_647
"""The value for no time limit, in seconds, as the database stores it."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=2_000_000_000)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=UNLIMITED_S)]
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Characters that would move a terminal's cursor or reverse the text direction."""
PRINTABLE = rf"^[^{CONTROLS}]*(?![\s\S])"
"""One line of text without escapes, safe to show on a terminal. The pattern works in Python and
JSON Schema."""
WORD = r"^[A-Za-z0-9._-]+$"
NODE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PRINTABLE)]
Comment = Annotated[str, msgspec.Meta(max_length=4096, pattern=PRINTABLE)]
Image = Annotated[str, msgspec.Meta(min_length=1, max_length=1000, pattern=PRINTABLE)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=PRINTABLE)]


def shown(text: str) -> str:
    """Make text from elsewhere, such as a database, safe for a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
