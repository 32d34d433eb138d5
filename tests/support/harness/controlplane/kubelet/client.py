"""The node's client of the API server: requests are repeated until they are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.harness.controlplane.api import credentials

_FAULTS = (aiohttp.ClientError, OSError, asyncio.TimeoutError)
_RETRY_S = 0.3


class Client:
    """One connection pool; `async with`."""

    def __init__(self, kubeconfig: Path) -> None:
        self._url, self._headers, self._tls = credentials(kubeconfig)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=32)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def request(
        self, method: str, path: str, body: object = None, content: str = "application/json"
    ) -> tuple[int, Any]:
        """The status code and the object; retries forever after faults, 429 and 5xx."""
        assert self._session is not None
        while True:
            try:
                async with self._session.request(
                    method,
                    self._url + path,
                    data=None if body is None else json.dumps(body),
                    headers={"Content-Type": content},
                    timeout=aiohttp.ClientTimeout(total=10),
                ) as answer:
                    if answer.status != 429 and answer.status < 500:
                        return answer.status, await answer.json()
            except _FAULTS:
                pass
            await asyncio.sleep(_RETRY_S)

    async def get(self, path: str) -> Any | None:
        """The object, or None when there is none."""
        code, found = await self.request("GET", path)
        return found if code == 200 else None

    async def patch_status(self, path: str, status: object, uid: str) -> int:
        body = {"metadata": {"uid": uid}, "status": status}
        code, _ = await self.request(
            "PATCH", f"{path}/status", body, "application/strategic-merge-patch+json"
        )
        return code

    async def watch(self, path: str) -> AsyncIterator[tuple[str, Any]]:
        """The existing objects and their changes: first SYNC with all of them, and again after
        every gap."""
        assert self._session is not None
        while True:
            code, listed = await self.request("GET", path)
            if code != 200:
                await asyncio.sleep(_RETRY_S)
                continue
            yield "SYNC", listed["items"]
            version = listed["metadata"]["resourceVersion"]
            query = f"{path}?watch=true&resourceVersion={version}"
            try:
                async with self._session.get(
                    self._url + query,
                    timeout=aiohttp.ClientTimeout(total=None),
                    read_bufsize=1 << 23,
                ) as answer:
                    async for line in answer.content:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        yield event["type"], event["object"]
            except (*_FAULTS, ValueError):
                pass
            await asyncio.sleep(_RETRY_S)
