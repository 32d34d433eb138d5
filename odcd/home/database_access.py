"""Work on a home's database from the command line, as the only account that may log in there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from odcd.errors import OdcError, refusal
from odcd.home.account import become
from odcd.home.postgres import EmbeddedPostgres

T = TypeVar("T")

MAX_ANSWER_BYTES = 1024 * 1024 * 1024
"""A replay of a million jobs has some hundred megabytes."""


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the child, which is not root: read as data of a known type, never as objects."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    refused: tuple[str, str, str | None] | None = None


def with_database(
    home: Path, dsn: str | None, work: Callable[[str], Awaitable[T]], *,
    of: Any = None, begin: bool = False, version: int | None = None,
) -> T:  # fmt: skip
    """Call work with the DSN: the one given, or of the home's server, started for it if need be.

    of: the type of what work returns, as as_account. begin: a home without a database gets one, of
    that version.
    """
    if dsn is not None:
        return asyncio.run(_await(work, dsn))
    if not begin and not (home / "data").exists():
        raise OdcError(f"{home} has no queue", "Name the home with --home, or begin one: odcd up")
    postgres = EmbeddedPostgres(home, version)
    was_running = postgres.is_running()
    dsn = postgres.start()
    try:
        postgres.reset_settings()
        return as_account(postgres, lambda: asyncio.run(_await(work, dsn)), of=of)
    finally:
        if not was_running:
            postgres.stop()


async def _await(work: Callable[[str], Awaitable[T]], dsn: str) -> T:
    return await work(dsn)


def as_account(postgres: EmbeddedPostgres, work: Callable[[], T], *, of: Any = None) -> T:
    """Call work as the account that may log in: root may not, and must stay root, so a child
    becomes the account.

    of: the type of what work returns; it comes as JSON, so that whoever controls the child chooses
    only values of that type. Raises OdcError when it is not of that type.
    """
    if os.geteuid() == postgres.account.uid:
        return work()
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _answer(postgres, work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answer:
            data = answer.read(MAX_ANSWER_BYTES + 1)
    except BaseException:
        # Interrupted: whoever only this process was told must hear it too.
        os.kill(pid, signal.SIGTERM)
        raise
    finally:
        os.waitpid(pid, 0)
    if not data:
        raise OdcError("the work on the database was cut short", "Try again.")
    return _read(data, of)


def _read(data: bytes, of: Any) -> Any:
    try:
        if len(data) > MAX_ANSWER_BYTES:
            raise msgspec.ValidationError(f"more than {MAX_ANSWER_BYTES} bytes")
        answer = msgspec.json.decode(data, type=_Answer)
        if answer.refused is None:
            return msgspec.json.decode(answer.value, type=of)
    except msgspec.DecodeError as error:
        raise OdcError(
            f"the work on the database gave an answer that is none: {error}", "Try again."
        ) from error
    raise refusal(*answer.refused)


def _answer(postgres: EmbeddedPostgres, work: Callable[[], T], writing: int) -> NoReturn:
    """The child: never comes back, for what called it is the parent's to finish."""
    try:
        with os.fdopen(writing, "wb") as answer:
            try:
                become(postgres.account, postgres.data.parent.parent)
                outcome = _Answer(value=msgspec.Raw(msgspec.json.encode(work())))
            except OdcError as error:
                outcome = _Answer(refused=(error.code, error.message, error.hint))
            except BaseException as error:
                outcome = _Answer(refused=("OD000", f"{type(error).__name__}: {error}", None))
            answer.write(msgspec.json.encode(outcome))
        sys.stdout.flush()
    finally:
        # Also when the parent is gone and nobody reads the answer.
        os._exit(0)
