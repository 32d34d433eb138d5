"""Send a folder as a tar stream, and unpack such a stream into it safely."""

from __future__ import annotations

import filecmp
import os
import secrets
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from odcctl.exits import Failure
from odcctl.text.sizes import size_text

MAX_SEND_BYTES = 1024**3


class Amount(NamedTuple):
    files: int
    size: int

    @property
    def size_text(self) -> str:
        return size_text(self.size)

    def __str__(self) -> str:
        return f"{self.files} {'file' if self.files == 1 else 'files'}, {self.size_text}"


def measure(folder: str) -> Amount:
    """The amount to send. Raises Failure if it is too large, or cannot be read."""
    if not os.path.isdir(folder):
        raise Failure(f"{folder} is not a folder")

    def fail(error: OSError) -> None:
        raise Failure(f"{error.filename} cannot be read: {error.strerror}")

    count = size = 0
    for parent, _, names in os.walk(folder, onerror=fail):
        for name in names:
            with suppress(FileNotFoundError):
                status = os.lstat(os.path.join(parent, name))
                if stat.S_ISREG(status.st_mode):
                    count, size = count + 1, size + status.st_size
    amount = Amount(count, size)
    if size > MAX_SEND_BYTES:
        raise Failure(
            f"{folder} has {amount}, but at most 1 GiB can be sent",
            "Send a smaller folder. Copy large data once to a disk (--disk NAME) or to "
            "/shared-personal.",
        )
    return amount


def pack(folder: str, out: IO[bytes]) -> None:
    """Raises Failure for a file that cannot be read; OSError when out cannot be written, or when a
    file shrinks while it is read."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path, name in _entries(folder):
            try:
                member = tar.gettarinfo(path, name)
                file = open(path, "rb") if member.isreg() else None  # noqa: SIM115
            except FileNotFoundError:
                continue
            except OSError as error:
                raise Failure(f"{path} cannot be read: {error.strerror}") from error
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            if file is None:
                tar.addfile(member)
                continue
            with file:
                tar.addfile(member, file)


def _entries(folder: str) -> list[tuple[str, str]]:
    """Files, folders and links, each folder before its content."""
    found: list[tuple[str, str]] = []
    for parent, folders, names in os.walk(folder):
        for name in sorted((*folders, *names)):
            path = os.path.join(parent, name)
            with suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode):
                    found.append((path, os.path.relpath(path, folder)))
    return found


class Unpacked(NamedTuple):
    extracted: Amount
    refused: list[str]
    """The reason for each file, one per line."""


class Unsafe(Exception):
    """Extracting it could write outside the folder."""


def unpack(source: IO[bytes], folder: str) -> Unpacked:
    """Extract files that are new, or newer than the existing ones. Nothing in the
    stream can write outside the folder or through a link. Raises tarfile.TarError, OSError."""
    root = os.path.realpath(folder)
    count = size = 0
    refused: list[str] = []
    with tarfile.open(fileobj=source, mode="r|") as tar:
        for member in tar:
            try:
                if _take(tar, member, root):
                    count, size = count + 1, size + member.size
            except Unsafe as unsafe:
                refused.append(f"{member.name}: {unsafe}")
            except (ValueError, OverflowError) as error:  # a NUL in a name, an impossible time
                refused.append(f"{member.name}: {error}")
    while source.read(65_536):  # the padding: its writer would fail otherwise
        pass
    return Unpacked(Amount(count, size), refused)


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, root: str) -> bool:
    parts = parts_of(member.name)
    if not parts:
        return False
    if member.isdir():
        real_folder(root, parts)
        return False
    path = os.path.join(root, *parts)
    if member.issym():
        return _take_link(member, parts, root, path)
    if not (member.isreg() or member.islnk()):
        raise Unsafe("it is neither a file, a folder nor a link")
    parent = real_folder(root, parts[:-1])
    if _is_older(member, path):
        return False
    number, fresh = tempfile.mkstemp(prefix=".odc-", dir=parent)
    try:
        with os.fdopen(number, "wb") as out, content_of(tar, member, root) as content:
            shutil.copyfileobj(content, out)
        if os.path.isfile(path) and filecmp.cmp(fresh, path, shallow=False):
            return False
        os.chmod(fresh, member.mode & 0o755 | 0o600)
        os.utime(fresh, (member.mtime, member.mtime))
        os.replace(fresh, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
    return True


def content_of(tar: tarfile.TarFile, member: tarfile.TarInfo, root: str) -> IO[Any]:
    """The content of a file. A hard link gets a copy of its target, which was extracted earlier."""
    if member.isreg():
        content = tar.extractfile(member)
        assert content is not None
        return content
    named = parts_of(member.linkname)
    there = os.path.join(real_folder(root, named[:-1]), *named[-1:])
    if os.path.islink(there) or not os.path.isfile(there):
        raise Unsafe("it is a hard link to a file that was not sent")
    return open(there, "rb")


def _take_link(member: tarfile.TarInfo, parts: list[str], root: str, path: str) -> bool:
    goal = member.linkname
    if os.path.islink(path) and os.readlink(path) == goal:
        return False
    if not link_stays(parts, goal):
        raise Unsafe("it is a link that may lead out of the folder")
    parent = real_folder(root, parts[:-1])
    if _is_older(member, path):
        return False
    fresh = os.path.join(parent, f".odc-{secrets.token_hex(8)}.link")
    os.symlink(goal, fresh)
    os.replace(fresh, path)
    return True


def link_stays(parts: Sequence[str], goal: str) -> bool:
    """Whether a link at this path leads to something in the folder."""
    up = 0
    steps = [step for step in goal.split("/") if step not in ("", ".")]
    while up < len(steps) and steps[up] == "..":
        up += 1
    # After a name, ".." could mean another folder, since the name may be a link.
    return not (goal.startswith("/") or up > len(parts) - 1 or ".." in steps[up:])


def parts_of(name: str) -> list[str]:
    """Of a member's name. Raises Unsafe."""
    if name.startswith("/") or ".." in name.split("/"):
        raise Unsafe("it would be outside the folder")
    return [part for part in name.split("/") if part not in ("", ".")]


def real_folder(root: str, parts: list[str]) -> str:
    """A folder below root, made if it is missing. Raises Unsafe if there is a link on the way."""
    path = root
    for part in parts:
        path = os.path.join(path, part)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            os.mkdir(path)
            continue
        if not stat.S_ISDIR(mode):
            raise Unsafe(f"{path} is not a folder here")
    return path


def _is_older(member: tarfile.TarInfo, path: str) -> bool:
    """Compares whole seconds, since not every tar has fractions. In the same second, the content
    decides."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(there.st_mode):
        raise Unsafe("it is a folder here")
    return int(member.mtime) < int(there.st_mtime)
