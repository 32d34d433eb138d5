"""A server with logins by AWS identity, and the requests of a client."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
from botocore.credentials import Credentials

from odcd.clock import SystemClock
from odcd.login.logins import Logins
from odcd.login.settings import read_login
from tests.odcd.api.service import Service, serving
from tests.support.fakes.sts import ROLE, Sts, presign
from tests.support.harness.warm import run

SERVER = "https://odc.example:8443"


class House:
    def __init__(self, service: Service, sts: Sts) -> None:
        self.service = service
        self.sts = sts

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        client = self.service.client(None)
        if key is not None:
            client.headers["authorization"] = f"Bearer {key}"
        return client

    async def send(self, url: str, headers: Any = None, **more: Any) -> httpx.Response:
        body = {"url": url, "headers": headers or {"X-Odc-Server-Id": SERVER}, **more}
        async with self.client() as client:
            return await client.post("/v1/auth/login", json=body)

    async def log_in(self, credentials: Credentials, **more: Any) -> httpx.Response:
        return await self.send(presign(credentials, self.sts.url, SERVER), **more)

    async def key_of(self, credentials: Credentials) -> str:
        answer = await self.log_in(credentials)
        assert answer.status_code == 201, answer.text
        return answer.json()["key"]

    async def audit_events(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind in the audit log: detail and actor."""
        rows = await self.service.database.fetch(
            "select actor, detail from odc.event where kind = $1 order by id", kind
        )
        return [{"actor": row["actor"], **json.loads(row["detail"])} for row in rows]


def live(
    url: str,
    sts: Sts,
    work: Callable[[House], Coroutine[Any, Any, None]],
    *,
    environment: dict[str, str] | None = None,
    timeout_s: float = 30.0,
    clock: Any = None,
    operators: frozenset[str] = frozenset(),
    **fields: Any,
) -> None:
    """Run a test's work with a house. environment: settings in addition to the usual ones."""
    settings = read_login(
        {
            "ODC_URL": SERVER, "ODC_AWS_ROLES": ROLE, "ODC_STS_ENDPOINT": sts.url,
            **(environment or {}),
        }
    )  # fmt: skip

    async def work_in() -> None:
        async with serving(url, operators=operators, **fields) as service:
            logins = Logins(
                settings, service.store.logins, clock or SystemClock(), own_uid=os.getuid(),
                operators=operators, context=sts.trust(), timeout_s=timeout_s,
            )  # fmt: skip
            object.__setattr__(service.api, "logins", logins)
            try:
                await work(House(service, sts))
            finally:
                await logins.close()

    run(work_in())
