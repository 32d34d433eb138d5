"""The context of an image build: a Dockerfile's folder, as it was sent, and packed again by odc.

A build only receives files that odc packed itself. So the same files give the same bytes and the
same build, whichever user and tool packed them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from odcd.errors import BadRequest, TooLarge

MAX_SENT_BYTES = 700 * 1024
MAX_DOCKERFILE_BYTES = 512 * 1024
MAX_PLAIN_BYTES = 32 * 1024 * 1024
MAX_ENTRIES = 10_000
MAX_PACKED_BYTES = 900_000
"""A ConfigMap, which carries it to the build, is limited to 1 MiB."""
MAX_PATH_BYTES = 1024
MAX_PART_BYTES = 255
DOCKERFILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
IGNORE = "List unneeded files in a .dockerignore, or fetch them in a RUN step."
AGAIN = "Send it with odcctl reserve --dockerfile PATH."
_SCHEME = b"odc-build-1"
_GZIP = 31
_EXECUTABLE, _PLAIN = 0o755, 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """digest: of the files, their paths and executable bits, and the Dockerfile's name. packed:
    tar, gzip."""

    digest: str
    packed: bytes


def read_context(sent: bytes, dockerfile: str) -> Context:
    """sent: tar, gzip. Raises BadRequest, TooLarge."""
    if not DOCKERFILE.fullmatch(dockerfile):
        raise bad_name(dockerfile)
    entries = _entries(_unzip(sent))
    _check_dockerfile(entries.get(dockerfile), dockerfile)
    plain = _pack(entries)
    packed = gzip.compress(plain, mtime=0)
    if len(packed) > MAX_PACKED_BYTES:
        raise TooLarge(
            f"the context has {len(packed)} bytes when compressed, more than {MAX_PACKED_BYTES}",
            IGNORE,
        )
    digest = hashlib.sha256(b"\0".join((_SCHEME, dockerfile.encode(), plain))).hexdigest()
    return Context(digest=digest, packed=packed)


def own_digest(uid: int, digest: str) -> str:
    """The digest of one user's build of a context. Users share no builds: an image built with one
    user's cache is not given to another."""
    return hashlib.sha256(f"{uid} {digest}".encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A file has content, a symbolic link has link; a folder has neither."""

    content: bytes | None = None
    executable: bool = False
    link: str | None = None


def _unzip(sent: bytes) -> bytes:
    if len(sent) > MAX_SENT_BYTES:
        raise too_large(len(sent))
    unpacker = zlib.decompressobj(_GZIP)
    try:
        plain = unpacker.decompress(sent, MAX_PLAIN_BYTES + 1)
    except zlib.error as error:
        raise BadRequest(f"the context is not a gzip file: {error}", AGAIN) from None
    if len(plain) > MAX_PLAIN_BYTES:
        raise TooLarge(
            f"the context has more than {MAX_PLAIN_BYTES >> 20} MiB when it is unpacked", IGNORE
        )
    if not unpacker.eof or unpacker.unused_data:
        raise BadRequest("the context is not one complete gzip stream", AGAIN)
    return plain


def _entries(plain: bytes) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:", encoding="utf-8") as archive:
            for path, entry in _read(archive):
                if path == ".":
                    continue
                if path in found:
                    raise BadRequest(f'the context has "{path[:100]}" twice', AGAIN)
                found[path] = entry
                if len(found) > MAX_ENTRIES:
                    raise TooLarge(
                        f"the context has more than {MAX_ENTRIES} files and folders", IGNORE
                    )
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise BadRequest(f"the context is not a tar archive: {error}", AGAIN) from None
    for path in found:
        for parent in PurePosixPath(path).parents:
            above = found.get(str(parent))
            if above is not None and (above.link is not None or above.content is not None):
                raise BadRequest(
                    f'the context has "{path[:100]}" below something that is not a folder', AGAIN
                )
    return found


def _read(archive: tarfile.TarFile) -> Iterator[tuple[str, _Entry]]:
    for member in archive:
        path = _path(member.name)
        if member.isdir():
            yield path, _Entry()
        elif member.issym():
            yield path, _Entry(link=_link(path, member.linkname))
        elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
            if not 0 <= member.size <= MAX_PLAIN_BYTES:
                raise BadRequest("the context ends in the middle of a file", AGAIN)
            file = archive.extractfile(member)
            assert file is not None
            content = file.read()
            if len(content) != member.size:
                raise BadRequest("the context ends in the middle of a file", AGAIN)
            yield path, _Entry(content=content, executable=bool(member.mode & 0o100))
        else:
            raise BadRequest(
                f'"{path[:100]}" is neither a file, a folder nor a symbolic link',
                "Remove it from the folder, or list it in a .dockerignore.",
            )


def _path(name: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise BadRequest("a path of the context is not UTF-8", "Rename the file.") from None
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise BadRequest(f"{name[:100]!r} is not a path below the folder", AGAIN)
    if len(data) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise BadRequest(f'"{name[:100]}…" is too long for a path', "Rename the file.")
    return "/".join(parts) or "."


def _link(path: str, target: str) -> str:
    """Check a link's target: it may go up as far as the folder, and then only down. It then ends
    inside the folder, whatever other links exist."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    depth = path.count("/")
    out = target.startswith("/") or not target or "\0" in target or up > depth
    if out or ".." in parts[up:] or len(target.encode(errors="replace")) > MAX_PATH_BYTES:
        raise BadRequest(
            f'the link "{path[:100]}" points to "{target[:100]}", out of the folder',
            "A build sees only the Dockerfile's folder: copy needed files into it.",
        )
    try:
        target.encode()
    except UnicodeEncodeError:
        raise BadRequest("a link of the context is not UTF-8", "Rename its target.") from None
    return target


def _check_dockerfile(entry: _Entry | None, name: str) -> None:
    if entry is None or entry.content is None:
        raise BadRequest(f'the context has no file "{name}"', AGAIN)
    if len(entry.content) > MAX_DOCKERFILE_BYTES:
        raise TooLarge(
            f"{name} has {len(entry.content)} bytes, more than {MAX_DOCKERFILE_BYTES}",
            "Put long parts into files that it copies.",
        )
    if not entry.content.strip():
        raise BadRequest(
            f"{name} is empty",
            "Its first instruction is FROM IMAGE; only ARG and comments may come before.",
        )


def _pack(entries: dict[str, _Entry]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in sorted(entries.items()):
            member = tarfile.TarInfo(path)
            member.mode = _EXECUTABLE
            if entry.content is not None:
                member.size = len(entry.content)
                member.mode = _EXECUTABLE if entry.executable else _PLAIN
                archive.addfile(member, io.BytesIO(entry.content))
            elif entry.link is not None:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
                archive.addfile(member)
            else:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
    return made.getvalue()


def bad_name(dockerfile: str) -> BadRequest:
    return BadRequest(
        f'"{dockerfile[:60]}" is not a valid name of a Dockerfile',
        "It must be in the folder itself, and have only letters, digits, ., - and _.",
    )


def too_large(size: int) -> TooLarge:
    return TooLarge(
        f"the context has {size} bytes when compressed, more than {MAX_SENT_BYTES}", IGNORE
    )
