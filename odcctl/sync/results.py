"""Extract a job's results into the folder that was sent to it.

Nothing in the stream can write outside the folder or through a link. A file of the user that is not
what was sent, or fetched before, is never replaced.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from contextlib import suppress
from typing import IO, Any, cast

from odcctl.reservations.folders import (
    Amount,
    Unsafe,
    content_of,
    link_stays,
    parts_of,
    real_folder,
)
from odcctl.sync.gitignore import is_never_sent
from odcctl.sync.programs import LAST
from odcctl.sync.sending import digest_of, digest_of_link

_CHUNK = 1 << 20


class Results:
    def __init__(self, folder: str, job: str, known: dict[str, list[str]]) -> None:
        """known: by path, the digests of what odcctl itself sent or extracted; grows."""
        self._root = os.path.realpath(folder)
        self._job = job
        self._known = known
        self.count = self.size = 0
        self.beside: list[str] = []
        """Files that were changed on both sides, by the name of the job's version."""
        self.refused: list[str] = []
        """The reason for each file, one per line."""

    @property
    def amount(self) -> Amount:
        return Amount(self.count, self.size)

    def extract(self, source: IO[bytes]) -> None:
        """source: archives, one after the other, with LAST at the end. Raises tarfile.TarError,
        OSError; EOFError if the end is missing."""
        with tarfile.open(
            fileobj=source, mode="r|", ignore_zeros=True, encoding="utf-8",
            errors="surrogateescape",
        ) as tar:  # fmt: skip
            for member in tar:
                # A member of a stream is not needed again, and there may be many.
                cast("Any", tar).members.clear()
                if member.name == LAST:  # The others begin with "./".
                    return
                try:
                    self._take(tar, member)
                except Unsafe as unsafe:
                    self.refused.append(f"{member.name}: {unsafe}")
                except (ValueError, OverflowError) as error:  # a NUL in a name, an impossible time
                    self.refused.append(f"{member.name}: {error}")

        raise EOFError("the results ended too early")

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = parts_of(member.name)
        if any(map(is_never_sent, parts)):
            raise Unsafe("files with this name are never fetched")
        if not parts or member.isdir():
            return
        if not (member.isreg() or member.islnk() or member.issym()):
            raise Unsafe("it is neither a file, a folder nor a link")
        if member.issym() and not link_stays(parts, member.linkname):
            raise Unsafe("it is a link that may lead out of the folder")
        parent = real_folder(self._root, parts[:-1])
        scratch = tempfile.mkdtemp(prefix=".odc-", dir=parent)
        fresh = os.path.join(scratch, "new")
        try:
            if member.issym():
                os.symlink(member.linkname, fresh)
                digest = digest_of_link(member.linkname)
            else:
                digest = self._write(tar, member, fresh)
            self._place(fresh, parent, parts, digest)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh)
            os.rmdir(scratch)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, fresh: str) -> str:
        digest = hashlib.sha256()
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as out, content_of(tar, member, self._root) as content:
            while data := content.read(_CHUNK):
                digest.update(data)
                out.write(data)
            os.fchmod(out.fileno(), member.mode & 0o755 | 0o600)
        os.utime(fresh, (member.mtime, member.mtime))
        return digest.hexdigest()

    def _place(self, fresh: str, parent: str, parts: list[str], digest: str) -> None:
        path, name = os.path.join(parent, parts[-1]), "/".join(parts)
        if os.path.isdir(path) and not os.path.islink(path):
            raise Unsafe("it is a folder here")
        known = self._known.setdefault(name, [])
        if os.path.lexists(path):
            now = digest_of(path)
            if now == digest:
                known.append(digest)
                return
            if now not in known:
                beside = self._free_name(path, digest)
                if beside is None:
                    return
                path = beside
                self.beside.append(f"{name} as {os.path.basename(beside)}")
        size = os.lstat(fresh).st_size
        os.replace(fresh, path)
        known.append(digest)
        self.count, self.size = self.count + 1, self.size + size

    def _free_name(self, path: str, digest: str) -> str | None:
        """A name beside a file that stays as it is; None: the job's version is already there."""
        number = 1
        while True:
            end = "" if number == 1 else f".{number}"
            beside = f"{path}.odc-{self._job}{end}"
            if not os.path.lexists(beside):
                return beside
            if digest_of(beside) == digest:
                return None
            number += 1
