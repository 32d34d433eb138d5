"""Find the files of a folder that a job gets, and pack them."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

from odcctl.exits import Failure
from odcctl.reservations.folders import Amount, link_stays
from odcctl.sync.gitignore import OWN, Ignore, is_never_sent
from odcctl.sync.programs import COMPLETE, DATA

MAX_ENTRIES = 200_000
TRIES = 3
"""How often a file is read that shrinks meanwhile."""
_SHOWN = 3
_CHUNK = 1 << 20


class Found(NamedTuple):
    """paths: relative to the folder, each folder before its content. unsent: why others are not
    sent, one per line."""

    folder: str
    paths: list[str]
    amount: Amount
    unsent: list[str]


class Packed(NamedTuple):
    """digests: of what was sent, by path. changed: files that changed while they were read."""

    digests: dict[str, str]
    changed: list[str]


def find(folder: str, max_bytes: int | None) -> Found:
    """Raises Failure: it cannot be read, or is too large."""
    if not os.path.isdir(folder):
        raise Failure(f"{folder} is not a folder")
    root = os.path.realpath(folder)
    found = Found(root, [], Amount(0, 0), [])
    sizes: dict[str, int] = {}
    try:
        for path, status in _walk(root, found.unsent):
            found.paths.append(path)
            if stat.S_ISREG(status.st_mode):
                sizes[path] = status.st_size
            if len(found.paths) > MAX_ENTRIES:
                raise Failure(f"{folder} has more than {MAX_ENTRIES} files and folders", _hint())
    except OSError as error:
        raise Failure(f"{error.filename or folder} cannot be read: {error.strerror}") from None
    amount = Amount(len(sizes), sum(sizes.values()))
    if max_bytes is not None and amount.size > max_bytes:
        raise Failure(
            f"{folder} has {amount}, and at most {Amount(0, max_bytes).size_text} can be sent; the "
            f"largest are {_largest(sizes)}",
            _hint(),
        )
    return found._replace(amount=amount)


def _walk(root: str, unsent: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    ignore = Ignore(root)
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        ignore.enter(folder)
        with os.scandir(os.path.join(root, folder)) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        below: list[str] = []
        for entry in listed:
            path = folder + entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if is_never_sent(entry.name) or ignore.excludes(path, is_folder=is_folder):
                continue
            if stat.S_ISLNK(status.st_mode):
                if not link_stays(path.split("/"), os.readlink(os.path.join(root, path))):
                    unsent.append(f"{path}: it is a link that leads out of the folder")
                    continue
            elif is_folder:
                below.append(f"{path}/")
            elif not stat.S_ISREG(status.st_mode):
                unsent.append(f"{path}: it is neither a file, a folder nor a link")
                continue
            yield path, status
        # Depth first, so that the rules of the folders above stay.
        waiting += reversed(below)


def _hint() -> str:
    return (
        f"List files that the job does not need in a {OWN} in that folder, and keep large data on "
        "storage that the job reaches."
    )


def _largest(sizes: dict[str, int]) -> str:
    sums: dict[str, int] = {}
    for path, size in sizes.items():
        first, slash, _ = path.partition("/")
        sums[first + slash] = sums.get(first + slash, 0) + size
    largest = sorted(sums.items(), key=lambda one: -one[1])[:_SHOWN]
    return ", ".join(f"{name} ({Amount(1, size).size_text})" for name, size in largest)


def pack(found: Found, out: IO[bytes]) -> Packed:
    """Write the archive for a job. out: a new file that can seek. Raises Failure for a file that
    cannot be read, OSError when out cannot be written."""
    packed = Packed({}, [])
    # busybox's tar does not read PAX headers.
    with tarfile.open(
        fileobj=out, mode="w:", format=tarfile.GNU_FORMAT, encoding="utf-8",
        errors="surrogateescape",
    ) as tar:  # fmt: skip
        tar.addfile(_member(DATA, tarfile.DIRTYPE, 0o755))
        for path in found.paths:
            with suppress(FileNotFoundError):
                _add(tar, found.folder, path, packed)
        tar.addfile(_member(COMPLETE, tarfile.REGTYPE, 0o600))
    return packed


def _add(tar: tarfile.TarFile, root: str, path: str, packed: Packed) -> None:
    full, name = os.path.join(root, path), f"{DATA}/{path}"
    status = os.lstat(full)
    if stat.S_ISDIR(status.st_mode):
        tar.addfile(_member(name, tarfile.DIRTYPE, 0o755))
    elif stat.S_ISLNK(status.st_mode):
        member = _member(name, tarfile.SYMTYPE, 0o777)
        member.linkname = os.readlink(full)
        if link_stays(path.split("/"), member.linkname):
            tar.addfile(member)
            packed.digests[path] = digest_of_link(member.linkname)
    elif stat.S_ISREG(status.st_mode):
        for _ in range(TRIES):
            if _add_file(tar, full, path, packed):
                return
        raise Failure(f"{full} keeps changing while it is read", "Try again when it is complete.")


def _add_file(tar: tarfile.TarFile, full: str, path: str, packed: Packed) -> bool:
    """False: it shrank meanwhile, and nothing was added."""
    try:
        number = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Failure(f"{full} cannot be read: {error.strerror}") from None
    out: Any = tar.fileobj
    with os.fdopen(number, "rb") as file:
        before = os.fstat(number)
        if not stat.S_ISREG(before.st_mode):
            return False
        member = _member(f"{DATA}/{path}", tarfile.REGTYPE, before.st_mode & 0o777 | 0o600)
        member.size, member.mtime = before.st_size, int(before.st_mtime)
        reading = Reading(file)
        at, members = tar.offset, len(tar.getmembers())
        try:
            tar.addfile(member, reading)  # pyright: ignore[reportArgumentType]
        except EndedEarly:
            out.seek(at)
            out.truncate()
            tar.offset = at
            del cast("Any", tar).members[members:]
            return False
        except OSError as error:
            if error is reading.failure:
                raise Failure(f"{full} cannot be read: {error.strerror}") from None
            raise
        after = os.fstat(number)
    packed.digests[path] = reading.digest.hexdigest()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        packed.changed.append(path)
    return True


class EndedEarly(Exception):
    pass


class Reading:
    """A file, and the digest of what was read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.failure: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self.failure = error
            raise
        if len(data) < size:
            raise EndedEarly
        self.digest.update(data)
        return data


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, mode
    return member


def digest_of_link(goal: str) -> str:
    return f"link {goal}"


def digest_of(path: str) -> str | None:
    """Of a file or a link that exists, in the form of Packed.digests; None: it is neither, or
    cannot be read."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return digest_of_link(os.readlink(path))
        if not stat.S_ISREG(status.st_mode):
            return None
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
    except OSError:
        return None
    return digest.hexdigest()
