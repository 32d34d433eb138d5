"""The place for exports: a folder or an S3 bucket. A file there is complete or absent."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from odcd.errors import BadRequest, OdcError

BUCKET = re.compile(r"^s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[^\s]*))?$")
CONNECT_S, READ_S = 10.0, 60.0


class Target(Protocol):
    """Raises OdcError when it cannot be reached, read or written."""

    async def put(self, name: str, file: Path) -> None:
        """Store the file under a name with one slash, replacing an existing one."""
        ...

    async def get(self, name: str, file: Path) -> bool:
        """Fetch the file with this name; False if there is none."""
        ...

    async def exports(self) -> Sequence[str]:
        """The names before the slash, sorted."""
        ...


def check_target(text: str) -> None:
    """Raises BadRequest when it is neither a folder nor a bucket."""
    if text.startswith("s3://"):
        if BUCKET.match(text) is None:
            raise BadRequest(f'"{text}" is not a bucket', "For example s3://my-bucket/odc.")
    elif not text.startswith("/"):
        raise BadRequest(
            f'"{text}" is neither an absolute folder nor a bucket',
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
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ImportError as error:
        raise BadRequest(
            f"exports to a bucket need a library: {error}", 'Install it: pip install "odc[aws]"'
        ) from error
    config = AioConfig(
        connect_timeout=CONNECT_S, read_timeout=READ_S,
        retries={"mode": "standard", "total_max_attempts": 4},
    )  # fmt: skip
    session: Any = get_session()
    prefix = (found["prefix"] or "").strip("/")
    async with session.create_client("s3", endpoint_url=endpoint, config=config) as client:
        yield Bucket(client, found["bucket"], f"{prefix}/" if prefix else "")


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
            # Never through a link that somebody left there.
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
                f"{target} cannot be written: {error.strerror}", "Check its space and its owner."
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


class Bucket:
    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    async def put(self, name: str, file: Path) -> None:
        with file.open("rb") as body:
            await self._call("put_object", Key=self._prefix + name, Body=body)

    async def get(self, name: str, file: Path) -> bool:
        answer = await self._call("get_object", Key=self._prefix + name)
        if answer is None:
            return False
        with file.open("wb") as copy:
            async with answer["Body"] as body:
                while chunk := await body.read(1 << 20):
                    copy.write(chunk)
        return True

    async def exports(self) -> Sequence[str]:
        found: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = await self._call("list_objects_v2", Prefix=self._prefix, Delimiter="/", **more)
            found += [p["Prefix"][len(self._prefix) : -1] for p in page.get("CommonPrefixes", ())]
            if not page.get("IsTruncated"):
                return sorted(found)
            more = {"ContinuationToken": page["NextContinuationToken"]}

    async def _call(self, operation: str, **arguments: Any) -> Any:
        """None: there is no such object."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return await getattr(self._client, operation)(Bucket=self._bucket, **arguments)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code == "NoSuchKey":
                return None
            raise self._refused(str(error)) from error
        except (BotoCoreError, OSError, TimeoutError) as error:
            raise self._refused(str(error) or type(error).__name__) from error

    def _refused(self, why: str) -> OdcError:
        return OdcError(
            f"bucket {self._bucket} cannot be used: {why}",
            "Check its name, the region and the rights: s3:PutObject, GetObject and ListBucket.",
        )
