"""Files in an S3 bucket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

from odcd.errors import OdcError

CONNECT_S, READ_S = 10.0, 60.0


@asynccontextmanager
async def open_bucket(bucket: str, prefix: str, endpoint: str | None) -> AsyncGenerator[Bucket]:
    """prefix: prepended to every key; empty, or ends with a slash."""
    config = AioConfig(
        connect_timeout=CONNECT_S, read_timeout=READ_S,
        retries={"mode": "standard", "total_max_attempts": 4},
    )  # fmt: skip
    session: Any = get_session()
    async with session.create_client("s3", endpoint_url=endpoint, config=config) as client:
        yield Bucket(client, bucket, prefix)


class Bucket:
    """Implements odcd.history.targets.Target."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    async def put(self, name: str, file: Path) -> None:
        with file.open("rb") as body:
            await self._call("put_object", Key=self._prefix + name, Body=body)

    async def check(self) -> None:
        await self._call("list_objects_v2", Prefix=self._prefix, MaxKeys=1)

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
        """Return None if the object does not exist."""
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
            "Check its name, region and permissions: s3:PutObject, GetObject and ListBucket.",
        )
