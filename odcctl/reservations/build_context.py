"""Pack a Dockerfile's folder for the daemon: the same files give the same bytes."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from odcctl.exits import Failure, Refused
from odcctl.http.client import Client
from odcctl.reservations.dockerignore import Ignore
from odcctl.text import render
from odcctl.text.sizes import size_text

MAX_BYTES = 700 * 1024
MAX_DOCKERFILE_BYTES = 512 * 1024
MAX_PLAIN_BYTES = 32 * 1024 * 1024
MAX_ENTRIES = 10_000
"""The daemon's limits, checked before anything is sent."""
IGNORE = ".dockerignore"
UNKNOWN_BUILD = "OD038"
NO_DIGEST = "0" * 64
_SHOWN_ENTRIES = 3
_HINT = (
    f"List files that the build does not need in a {IGNORE} in that folder, move the Dockerfile to "
    "a folder of its own, or fetch large files in a RUN step."
)


class Context(NamedTuple):
    dockerfile: str
    """Its name in the folder."""
    packed: bytes


def check_builds(client: Client) -> None:
    """Raises Refused if the server builds no images, which it answers for any build id."""
    try:
        client.get(f"/v1/builds/{NO_DIGEST}")
    except Refused as refused:
        if refused.code != UNKNOWN_BUILD:
            raise


def pack(dockerfile: str) -> Context:
    """Pack the folder of a Dockerfile. Raises Failure."""
    path = Path(dockerfile)
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise Failure(
                f"{dockerfile} is a folder", f"Name the file, for example {path / 'Dockerfile'}."
            )
        if size > MAX_DOCKERFILE_BYTES:
            raise Failure(
                f"{dockerfile} has {size_text(size)}, but a Dockerfile may have at most "
                f"{size_text(MAX_DOCKERFILE_BYTES)}",
                "Move long parts into files that it copies.",
            )
        folder = path.parent
        ignore = _ignore(folder, path.name)
        always = {path.name, IGNORE, f"{path.name}{IGNORE}"}
        found = dict(_walk(folder, "", ignore, always))
        if path.name not in found or not stat.S_ISREG(found[path.name].st_mode):
            raise Failure(
                f"{dockerfile} is not a regular file in its folder",
                "Name the file itself, not a link.",
            )
        _check_amount(folder, found)
        packed = _pack(folder, found)
    except OSError as error:
        raise Failure(f"{error.filename or dockerfile} cannot be read: {error.strerror}") from None
    if len(packed) > MAX_BYTES:
        raise Failure(
            f"the folder of {dockerfile} has {size_text(len(packed))} when compressed, and a build "
            f"may have {size_text(MAX_BYTES)}; the largest are {_largest(found)}",
            _HINT,
        )
    return Context(path.name, packed)


def send(client: Client, context: Context, *, rebuild: bool) -> str:
    """Send the context; return its digest, by which a reservation names the build.

    rebuild: build the image even if it exists.
    """
    params = {"dockerfile": context.dockerfile, **({"anew": "true"} if rebuild else {})}
    build = client.upload("/v1/builds", params, context.packed, "application/octet-stream").json()
    state_texts = {
        "completed": "its image already exists",
        "building": "its image is being built",
        "queued": "its image will be built",
    }
    render.note(
        f"odcctl: build {build['digest'][:12]}: {context.dockerfile} and its folder, "
        f"{size_text(len(context.packed))}: {state_texts.get(build['state'], build['state'])}"
    )
    return str(build["digest"])


def _ignore(folder: Path, name: str) -> Ignore:
    """The rules of NAME.dockerignore, if it exists, and otherwise of .dockerignore."""
    for file in (folder / f"{name}{IGNORE}", folder / IGNORE):
        if file.is_file():
            try:
                return Ignore(file.read_text("utf-8-sig").splitlines())
            except ValueError as error:
                raise Failure(f"{file} cannot be used: {error}") from None
    return Ignore(())


def _walk(
    folder: Path, above: str, ignore: Ignore, always: set[str]
) -> Iterator[tuple[str, os.stat_result]]:
    count = 0
    waiting = [above]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                excluded = path not in always and ignore.leaves_out(path)
                status = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_folder and (not excluded or ignore.takes_back):
                    waiting.append(path)
                if excluded or stat.S_ISSOCK(status.st_mode):
                    continue
                count += 1
                if count > MAX_ENTRIES:
                    raise Failure(
                        f"{folder} has more than {MAX_ENTRIES} files and folders, all of which "
                        "would be sent to the build",
                        _HINT,
                    )
                yield path, status


def _check_amount(folder: Path, found: Mapping[str, os.stat_result]) -> None:
    plain = sum(status.st_size for status in found.values() if stat.S_ISREG(status.st_mode))
    if plain > MAX_PLAIN_BYTES:
        raise Failure(
            f"{folder} has {size_text(plain)}, and a build may have {size_text(MAX_PLAIN_BYTES)} "
            f"before and {size_text(MAX_BYTES)} after compression; the largest are "
            f"{_largest(found)}",
            _HINT,
        )


def _pack(folder: Path, found: Mapping[str, os.stat_result]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, status in sorted(found.items()):
            member = tarfile.TarInfo(_text(path))
            member.mode = 0o755
            if stat.S_ISLNK(status.st_mode):
                member.type, member.linkname = tarfile.SYMTYPE, _text(os.readlink(folder / path))
                archive.addfile(member)
            elif stat.S_ISDIR(status.st_mode):
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            elif stat.S_ISREG(status.st_mode):
                content = (folder / path).read_bytes()
                member.size = len(content)
                member.mode = 0o755 if status.st_mode & 0o100 else 0o644
                archive.addfile(member, io.BytesIO(content))
            else:
                raise Failure(
                    f"{folder / path} is neither a file, a folder nor a link",
                    f"List it in {IGNORE}.",
                )
    return gzip.compress(made.getvalue(), mtime=0)


def _text(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        raise Failure(
            f"{shown} is not valid UTF-8", f"Rename it, or list it in {IGNORE}."
        ) from None
    return path


def _largest(found: Mapping[str, os.stat_result]) -> str:
    """The largest entries of the folder, with their sizes."""
    sums: dict[str, int] = {}
    for path, status in found.items():
        if stat.S_ISREG(status.st_mode):
            first, slash, _ = path.partition("/")
            sums[first + slash] = sums.get(first + slash, 0) + status.st_size
    largest = sorted(sums.items(), key=lambda one: -one[1])[:_SHOWN_ENTRIES]
    return ", ".join(f"{name} ({size_text(size)})" for name, size in largest)
