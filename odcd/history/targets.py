"""The place for exports: a folder or an S3 bucket. A file there is complete or absent."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol

from odcd.errors import BadRequest, OdcError

BUCKET = re.compile(r"^s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[^\s]*))?$")


class Target(Protocol):
    """Raises OdcError when it cannot be reached, read or written."""

    async def put(self, name: str, file: Path) -> None:
        """Store the file under a name with one slash, replacing an existing one."""
        ...

    async def check(self) -> None:
        """Check without leaving anything behind: a folder can be written, a bucket be listed."""
        ...

    async def get(self, name: str, file: Path) -> bool:
        """Fetch the file with this name; False if there is none."""
        ...

    async def exports(self) -> Sequence[str]:
        """The names before the slash, sorted."""
        ...


def check_target(text: str, by: str = "") -> None:
    """Raises BadRequest when it is neither a folder nor a bucket. by: the setting it comes
    from."""
    named = f'{by} "{text}"' if by else f'"{text}"'
    if text.startswith("s3://"):
        if BUCKET.match(text) is None:
            raise BadRequest(f"{named} is not a bucket", "For example s3://my-bucket/odc.")
    elif not text.startswith("/"):
        raise BadRequest(
            f"{named} is neither an absolute folder nor a bucket",
            "For example /backups/odc-history or s3://my-bucket/odc.",
        )


@asynccontextmanager
async def open_target(text: str, endpoint: str | None = None) -> AsyncGenerator[Target]:
    """Raises BadRequest if check_target does, or if the folder does not exist."""
    check_target(text)
    found = BUCKET.match(text)
    if found is None:
        yield Folder(Path(text))
        return
    try:
        from odcd.aws.bucket import open_bucket
    except ImportError as error:
        raise BadRequest(
            f"exports to a bucket need a library: {error}", 'Install it: pip install "odc[aws]"'
        ) from error
    prefix = (found["prefix"] or "").strip("/")
    async with open_bucket(found["bucket"], f"{prefix}/" if prefix else "", endpoint) as bucket:
        yield bucket


class Folder:
    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise BadRequest(f"folder {path} does not exist", "Create it, or name another one.")
        self._path = path

    async def put(self, name: str, file: Path) -> None:
        await asyncio.to_thread(self._put, name, file)

    def _put(self, name: str, file: Path) -> None:
        target = self._path / name
        partial = target.with_name(f"{target.name}.partial")
        try:
            target.parent.mkdir(exist_ok=True)
            # Never write through a symbolic link that someone left there.
            partial.unlink(missing_ok=True)
            with file.open("rb") as source, partial.open("xb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
            partial.rename(target)
            for folder in (target.parent, self._path):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise OdcError(
                f"{target} cannot be written: {error.strerror}",
                "Check its free space and its owner.",
            ) from error

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    def _check(self) -> None:
        try:
            with NamedTemporaryFile(dir=self._path, prefix=".odc-check-") as file:
                file.write(b"odc")
                file.flush()
        except OSError as error:
            raise OdcError(
                f"{self._path} cannot be written: {error.strerror}",
                "Check its free space and its owner.",
            ) from error

    async def get(self, name: str, file: Path) -> bool:
        try:
            await asyncio.to_thread(shutil.copyfile, self._path / name, file)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise OdcError(
                f"{self._path / name} cannot be read: {error.strerror}", "Check its owner."
            ) from error
        return True

    async def exports(self) -> Sequence[str]:
        return sorted(path.name for path in self._path.iterdir() if path.is_dir())
