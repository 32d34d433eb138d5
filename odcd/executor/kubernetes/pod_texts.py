"""Texts that programs in pods and registries of images choose."""

from __future__ import annotations


def plain(text: str) -> str:
    """Replace control characters, except newlines and tabs: PostgreSQL cannot store a NUL, and
    others could move a cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
