"""The daemon's log: one event name and its fields per line, as key=value or JSON."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from odcd.home.account import Account, current

MAX_BYTES = 10 * 1024 * 1024

# The fields of every LogRecord; all others were passed with extra=.
OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def configure(
    style: Literal["text", "json"], file: Path | None = None, owner: Account | None = None
) -> None:
    """Send all loggers to standard error, or to a file of the owner's that is rotated at 10 MB."""
    handler = FileHandler(file, owner) if file else logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # A full disk must not stop the daemon or fill standard error with tracebacks.
    logging.raiseExceptions = False
    # Requests are counted in the metrics.
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    for name in ("botocore", "aiobotocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # The pool logs every failed connection; we log once that the database is unreachable.
    logging.getLogger("asyncpg").setLevel(logging.ERROR)


def facts(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in OWN_FIELDS}


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    """`2026-01-02T03:04:05.678Z INFO plan.done dispatches=3`"""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_quoted(value)}" for name, value in facts(record).items())
        if record.exc_info:
            fields += f" traceback={json.dumps(self.formatException(record.exc_info))}"
        return f"{_moment(record)} {record.levelname} {record.getMessage()}{fields}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _moment(record),
            "level": record.levelname,
            "event": record.getMessage(),
            "logger": record.name,
            **facts(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _quoted(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if plain else json.dumps(text)


class FileHandler(logging.Handler):
    """Writes to descriptors 1 and 2, which both point to the file, so that no other output is
    lost."""

    def __init__(self, path: Path, owner: Account | None = None) -> None:
        super().__init__()
        self._path = path
        self._owner = owner or current()
        self._open()

    def _open(self) -> None:
        # Open as the owner of the folder: then a link there cannot redirect root's writes.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        with self._owner.acting():
            descriptor = os.open(self._path, flags | os.O_CLOEXEC, 0o640)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, "is not a regular file", str(self._path))
        os.set_blocking(descriptor, True)
        self._size = os.fstat(descriptor).st_size
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._size += os.write(
                2, (self.format(record) + "\n").encode(errors="backslashreplace")
            )
            if self._size > MAX_BYTES:
                with self._owner.acting():
                    self._path.replace(self._path.with_suffix(".log.1"))
                self._open()
        except OSError:
            self.handleError(record)
