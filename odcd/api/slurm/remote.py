"""A call of a Slurm command: the request, and the frames of its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from odcd.api.http.context import Api
from odcd.api.http.routing import Call
from odcd.api.slurm.large_lists import Place, bounded
from odcd.errors import BadRequest
from odcd.jobs.submission import MAX_KEY_CHARS
from odcd.records.fields import PRINTABLE
from odcd.records.job import Identity
from odcd.slurm.lists import parse_job_id
from odcd.slurm.times import zone_of


class RemoteCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/slurm/{command}. argv: the words after the command's name.
    environment: sbatch, srun and salloc send all variables, other commands those that they read.
    terminals: whether standard input, output and error are terminals. files: the texts of files
    that an earlier answer asked for, by their path in argv; "-" is standard input. no_input:
    standard input is /dev/null. token: of an answer whose connection broke."""

    argv: list[str] = []
    work_dir: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)] = "/"
    environment: dict[str, str] = {}
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    terminals: Annotated[list[bool], msgspec.Meta(max_length=3)] = []
    host: Annotated[str, msgspec.Meta(max_length=255, pattern=PRINTABLE)] | None = None
    files: dict[str, str] = {}
    no_input: bool = False
    token: Annotated[str, msgspec.Meta(max_length=1 << 22, pattern=PRINTABLE)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """name: the command."""

    name: str
    request: RemoteCall
    call: Call
    api: Api
    inside: int | None = None
    """The job whose process has called the command, if that is known."""
    place: Place | None = None
    """Among the large lists."""

    @property
    def who(self) -> Identity:
        return self.call.who

    def now(self) -> datetime:
        """The time, in the caller's zone."""
        zone = zone_of(self.request.environment.get("TZ"))
        return self.api.clock.now().astimezone(zone)

    def key(self) -> str:
        """The request's idempotency key. Raises BadRequest."""
        key = self.call.key or ""
        if not 0 < len(key) <= MAX_KEY_CHARS:
            raise BadRequest(
                f"{self.name} needs an Idempotency-Key of 1 to {MAX_KEY_CHARS} characters",
                f"Use odc's {self.name}.",
            )
        return key

    def resumed_job(self) -> int | None:
        """The job that the token names. Raises BadRequest."""
        token = self.request.token
        return None if token is None else parse_job_id(token)

    async def lines(self, lines: Iterable[str]) -> str:
        """The text of a list, whose lines are made in turns with other requests. Raises Usage."""
        return "".join(await bounded(self.name, self.call.turns(), (f"{line}\n" for line in lines)))

    async def json_list(self, key: str, items: Iterable[str]) -> str:
        """items: as JSON. Raises Usage."""
        listed = ", ".join(await bounded(self.name, self.call.turns(), items))
        return f'{{"{key}": [{listed}], "warnings": [], "errors": []}}\n'

    def is_terminal(self, number: int) -> bool:
        return number < len(self.request.terminals) and self.request.terminals[number]

    def file(self, path: str) -> str:
        """The text of a file that argv names; "-" is standard input. Raises NeedFile: the client
        sends the request again with it."""
        text = self.request.files.get(path)
        if text is None:
            raise NeedFile(path)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The whole output of a command, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0

    def frames(self) -> bytes:
        parts = [frame(b"o", self.out.encode())] if self.out else []
        if self.err:
            parts.append(frame(b"e", self.err.encode()))
        return b"".join([*parts, exit_frame(self.code)])


Frames = AsyncGenerator[bytes]
"""Whole frames; the last one is exit_frame()."""
Run = Callable[[Remote], Awaitable[Finished | Frames]]


class NeedFile(Exception):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4) + content


def split_frames(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kinds and contents of whole frames."""
    at = 0
    while at < len(data):
        end = at + 5 + int.from_bytes(data[at + 1 : at + 5])
        yield data[at : at + 1], data[at + 5 : end]
        at = end


def out(text: str) -> bytes:
    return frame(b"o", text.encode())


def err(text: str) -> bytes:
    return frame(b"e", text.encode())


def exit_frame(code: int) -> bytes:
    return frame(b"x", str(code).encode())


def resume_frame(token: str) -> bytes:
    """If the connection breaks from now on, the client sends its request again with this token."""
    return frame(b"r", token.encode())
