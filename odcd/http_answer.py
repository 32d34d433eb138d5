"""Reads one HTTP response with a size limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httptools

CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes


class BadAnswer(Exception):
    """The response is invalid. str() completes a sentence whose subject is the server."""


class TooMuch(BadAnswer):
    """The response exceeds the size limit."""


class HungUp(BadAnswer):
    """The response ends too early."""


async def read_answer(reader: asyncio.StreamReader, most: int) -> Answer:
    """most: the limit in bytes, for head and body together. Raises BadAnswer, OSError."""
    incoming = _Incoming()
    parser = httptools.HttpResponseParser(incoming)
    size = 0
    try:
        while not incoming.whole:
            data = await reader.read(CHUNK)
            size += len(data)
            if size > most:
                raise TooMuch(f"answered with more than {most} bytes")
            if data:
                parser.feed_data(data)
            elif incoming.ends_with_connection:
                break
            else:
                raise HungUp("hung up in the middle of its answer")
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        raise BadAnswer("answered with something else than HTTP") from error
    return Answer(status=parser.get_status_code(), body=b"".join(incoming.pieces))


class _Incoming:
    """Callbacks of the HTTP parser."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.whole = False
        self._head = False
        self._framed = False

    @property
    def ends_with_connection(self) -> bool:
        return self._head and not self._framed

    def on_header(self, name: bytes, _: bytes) -> None:
        self._framed |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self._head = True

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        self.whole = True
