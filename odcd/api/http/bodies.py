"""Decode JSON from clients without blocking the event loop for long, whatever it contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from odcd.api.http.problems import malformed
from odcd.api.http.times import check_moments
from odcd.api.http.validation import misfit
from odcd.clock import Turns
from odcd.errors import BadRequest, TooLarge

MAX_VALUES = 200_000
"""Maximum number of values decoded at once: a value takes up to 1.5 us, and msgspec checks the
length of a list only after reading all of it."""
MAX_PARTS = 2_500_000
"""Maximum number of values in a body whose parts are decoded one by one."""
MAX_SEARCHED = 64 * 1024
"""Maximum size in bytes of a body in which the value that does not fit is searched for."""
_ROOT = re.compile(r"(?<= - at `)\$|(?<= - at `key` in `)\$")

T = TypeVar("T")
Place = tuple[str, int]
"""A list's name, and the index of one of its entries."""


def decode(raw: bytes, decoder: msgspec.json.Decoder[T], max_values: int = MAX_VALUES) -> T:
    """Raises BadRequest, TooLarge."""
    return _decode(raw, decoder, None, max_values)


async def decode_parts(
    parts: Sequence[msgspec.Raw], decoder: msgspec.json.Decoder[T], name: str, turns: Turns,
    check: Callable[[T], None] = lambda _: None,
) -> list[T]:  # fmt: skip
    """Decode the entries of the list `name` one by one; other requests are served in between.
    turns: of the request. check: of each entry, before the next one takes memory. Raises
    BadRequest, TooLarge, and what check raises."""
    found: list[T] = []
    for index, part in enumerate(parts):
        found.append(_decode(bytes(part), decoder, (name, index)))
        check(found[-1])
        if turns.are_due():
            await turns.take()
    return found


def _decode(
    raw: bytes, decoder: msgspec.json.Decoder[T], place: Place | None, max_values: int = MAX_VALUES
) -> T:
    if len(raw) > max_values:
        check_values(raw, max_values)
    try:
        form = decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise _misfit(error, raw, decoder.type, place) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise malformed(error, "body") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply", "Send one flat JSON object.") from None
    check_moments(form)
    return form


def check_values(raw: bytes, max_values: int = MAX_VALUES) -> None:
    """Raises TooLarge when JSON has more than this many values (and field names)."""
    # Each value but the first follows one of these characters.
    if sum(map(raw.count, (b",", b":", b"[", b"{"))) < max_values:
        return
    # Those in strings do not count. Once escapes are removed, quotes only delimit strings.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') <= 2 * max_values:
        between = b"".join(plain.split(b'"')[::2])
        if sum(map(between.count, (b",", b":", b"[", b"{"))) < max_values:
            return
    raise TooLarge(
        f"the body, or one of its jobs, has more than {max_values} values",
        "Send several requests, or keep data in files.",
    )


def _misfit(
    error: msgspec.ValidationError, raw: bytes, form: Any, place: Place | None
) -> BadRequest:
    """place: where the decoded part was; None: it is the whole body."""
    where = "{}[{}]".format(*place) if place else ""
    if len(raw) <= MAX_SEARCHED:
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = None
        found = misfit(error, value, form, partial(msgspec.convert, type=form))
        if found is not None:
            return BadRequest(f"{where}.{found.message}" if place else found.message, found.hint)
    if place:
        text = str(error)
        moved = _ROOT.sub(f"$.{where}", text)
        error = msgspec.ValidationError(text + f" - at `$.{where}`" if moved == text else moved)
    return malformed(error, "body")
