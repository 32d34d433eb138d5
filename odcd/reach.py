"""Work on a home's database from the command line, as the only account that may log in there."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn, TypeVar

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
        return as_account(postgres, lambda: asyncio.run(_await(work, dsn)))
    finally:
        if not was_running:
            postgres.stop()


async def _await(work: Callable[[str], Awaitable[T]], dsn: str) -> T:
    return await work(dsn)


def as_account(postgres: EmbeddedPostgres, work: Callable[[], T]) -> T:
    """Call work as the account that may log in: root may not, and must stay root, so a child
    becomes the account."""
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
            data = answer.read()
    except BaseException:
        # Interrupted: whoever only this process was told must hear it too.
        os.kill(pid, signal.SIGTERM)
        raise
    finally:
        os.waitpid(pid, 0)
    if not data:
        raise OdcError("the work on the database was cut short", "Try again.")
    done, value = pickle.loads(data)
    if not done:
        code, message, hint = value
        raise refusal(code, message, hint)
    return value


def _answer(postgres: EmbeddedPostgres, work: Callable[[], T], writing: int) -> NoReturn:
    """The child: never comes back, for what called it is the parent's to finish."""
    try:
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
    finally:
        # Also when the parent is gone and nobody reads the answer.
        os._exit(0)
