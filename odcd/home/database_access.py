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
"""A replay of a million jobs takes several hundred megabytes."""


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of the child, which is not root: decoded as a known type, never as arbitrary
    objects."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    refused: tuple[str, str, str | None] | None = None


def with_database(
    home: Path, dsn: str | None, work: Callable[[str], Awaitable[T]], *,
    of: Any = None, begin: bool = False, version: int | None = None,
) -> T:  # fmt: skip
    """Call work with a DSN: the given one, or that of the home's server, which is started if
    necessary.

    of: the type that work returns, as in as_account. begin: create the database if the home has
    none, with that PostgreSQL version.
    """
    if dsn is not None:
        return asyncio.run(_await(work, dsn))
    if not begin and not (home / "data").exists():
        raise OdcError(f"{home} has no queue", "Name the home with --home, or create one: odcd up")
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
    """Call work as the account that may log in. Root may not log in and must remain root, so a
    child process becomes the account.

    of: the type that work returns. It is passed as JSON, so that a compromised child can only
    choose values of that type. Raises OdcError when the value has another type.
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
        # Interrupted: the child must end too, because the signal may have reached only this
        # process.
        os.kill(pid, signal.SIGTERM)
        raise
    finally:
        os.waitpid(pid, 0)
    if not data:
        raise OdcError("the work on the database was interrupted", "Try again.")
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
            f"the work on the database returned an invalid answer: {error}", "Try again."
        ) from error
    raise refusal(*answer.refused)


def _answer(postgres: EmbeddedPostgres, work: Callable[[], T], writing: int) -> NoReturn:
    """Run in the child. Never returns, because the code after the call belongs to the parent."""
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
        # Also when the parent is gone and no one reads the answer.
        os._exit(0)
