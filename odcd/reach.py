"""Work on a home's database from the command line, as the only account that may log in there."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from odcd.account import become
from odcd.errors import OdcError, refusal
from odcd.postgres import EmbeddedPostgres

T = TypeVar("T")


def with_database(
    home: Path, dsn: str | None, work: Callable[[str], Awaitable[T]], *,
    begin: bool = False, version: int | None = None,
) -> T:  # fmt: skip
    """Call work with the DSN: the one given, or of the home's server, started for it if need be.

    begin: a home without a database gets one, of that version.
    """
    if dsn is not None:
        return asyncio.run(_await(work, dsn))
    if not begin and not (home / "data").exists():
        raise OdcError(f"{home} has no queue", "Name the home with --home, or begin one: odcd up")
    postgres = EmbeddedPostgres(home, version)
    was_running = postgres.is_running()
    dsn = postgres.start()
    try:
        if os.geteuid() == postgres.account.uid:
            return asyncio.run(_await(work, dsn))
        return _in_child(postgres, lambda: asyncio.run(_await(work, dsn)))
    finally:
        if not was_running:
            postgres.stop()


async def _await(work: Callable[[str], Awaitable[T]], dsn: str) -> T:
    return await work(dsn)


def _in_child(postgres: EmbeddedPostgres, work: Callable[[], T]) -> T:
    """Root cannot log in and must stay root, so a child becomes the account."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as answer:
            try:
                become(postgres.account, postgres.data.parent.parent)
                outcome: tuple[bool, object] = (True, work())
            except OdcError as error:
                outcome = (False, (error.code, error.message, error.hint))
            except BaseException as error:
                outcome = (False, ("OD000", f"{type(error).__name__}: {error}", None))
            pickle.dump(outcome, answer)
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    if not data:
        raise OdcError("the work on the database was cut short", "Try again.")
    done, value = pickle.loads(data)
    if not done:
        code, message, hint = value
        raise refusal(code, message, hint)
    return value
