"""Scripts and environments by their digest: sent once, used by many members."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path

from odcd.runner import access
from odcd.runner.log import Log

MEMORY_BYTES = 32 * 1024 * 1024
"""The limit for texts that no queued job needs. Shims are forks and inherit the texts."""
UNUSED_SCRIPT_S = 3600
LONG_SCRIPT_BYTES = 64 * 1024
"""A longer script is written to its file while its job is still queued."""


class Texts:
    """Keeps texts in memory up to MEMORY_BYTES, and scripts as files that a job's user can execute.

    A script file is for one user. If root runs the runner, root owns the file (see
    odcd.runner.access). Only the runner can write to or list its folder, so no other user can read
    the file. If the user owns the file, the user could change it, so a file that was touched is
    written again.
    """

    def __init__(self, run_dir: Path, log: Log, *, switch_user: bool) -> None:
        self._dir = run_dir / "scripts"
        self._log = log
        self._switch_user = switch_user
        self._means: set[access.Means] = {"acl"}
        """How users may read their scripts; every kind except an ACL is logged once."""
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._environments: dict[str, dict[str, str]] = {}
        self._bytes = 0
        self._held: Counter[str] = Counter()
        self._files: dict[str, tuple[int, int, int]] = {}
        self._used_at: dict[str, float] = {}

    def keep(self, texts: Mapping[str, str]) -> None:
        for digest, text in texts.items():
            if digest not in self._texts:
                self._bytes += sys.getsizeof(text)
            self._texts[digest] = text
            self._texts.move_to_end(digest)
        if self._bytes <= MEMORY_BYTES:
            return
        free = [digest for digest in self._texts if digest not in self._held]
        for digest in free[: max(0, len(free) - len(texts))]:
            if self._bytes <= MEMORY_BYTES:
                break
            self._bytes -= sys.getsizeof(self._texts.pop(digest))
            self._environments.pop(digest, None)

    def hold(self, script: str, environment: str, uid: int, gid: int) -> tuple[str, ...]:
        """Keep the texts of a queued member; returns those to release when it has left the
        queue."""
        held = (environment,)
        try:
            text = self._texts[script]
            if sys.getsizeof(text) > LONG_SCRIPT_BYTES:
                self.script_file(script, uid, gid)
            else:
                held = (script, environment)
        except OSError:
            # The launch of the member tries it again, and reports the error.
            held = (script, environment)
        self._held.update(held)
        return held

    def release(self, held: Iterable[str]) -> None:
        for digest in held:
            self._held[digest] -= 1
            if not self._held[digest]:
                del self._held[digest]

    def missing(self, digests: Iterable[str]) -> list[str]:
        return sorted({digest for digest in digests if digest not in self._texts})

    def environment(self, digest: str) -> dict[str, str]:
        """Raises KeyError when the text is not kept, ValueError when it is not {name: value}."""
        known = self._environments.get(digest)
        if known is None:
            known = json.loads(self._texts[digest])
            if not isinstance(known, dict):
                raise ValueError("an environment is not a JSON object")
            self._environments[digest] = known
        return known

    def script_file(self, digest: str, uid: int, gid: int) -> str:
        """The path of an executable copy. Raises OSError, and KeyError when the text is not
        kept."""
        name = f"{uid}-{digest}"
        path = f"{self._dir}/{name}"
        self._used_at[name] = time.monotonic()
        known = self._files.get(name)
        if known is not None and known == _identity(path):
            return path
        content = self._texts[digest].encode(errors="surrogateescape")
        made = f"{path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o500)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if self._switch_user and uid != 0:
                self._give(fd, uid, gid)
        except OSError:
            os.unlink(made)
            raise
        finally:
            os.close(fd)
        os.rename(made, path)
        identity = _identity(path)
        if identity:
            self._files[name] = identity
        return path

    def _give(self, fd: int, uid: int, gid: int) -> None:
        means = access.give(fd, uid, gid)
        if means not in self._means:
            self._means.add(means)
            self._log.info("scripts.without_acl", readable_by=means, folder=self._dir)

    def sweep(self, in_use: set[str]) -> None:
        """Remove script files that no member runs and that were not used for a while."""
        now = time.monotonic()
        for name in os.listdir(self._dir):
            used_at = self._used_at.setdefault(name, now)
            if name not in in_use and now - used_at > UNUSED_SCRIPT_S:
                with contextlib.suppress(OSError):
                    os.unlink(self._dir / name)
                self._files.pop(name, None)
                del self._used_at[name]


def _identity(path: str) -> tuple[int, int, int] | None:
    """Changes with every write, chmod or replacement; None: no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size
