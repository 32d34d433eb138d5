"""The connection to AWS: clients with strict timeouts, and resources that are too new to be visible
everywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from odcd.aws import records as aws_records
from odcd.call_metrics import NOBODY, Calls
from odcd.clock import Clock
from odcd.disks.cloud import MANAGED_BY, ODC, SERVER, CloudBusy
from odcd.disks.settings import DiskSettings

if TYPE_CHECKING:
    from types_aiobotocore_ec2 import EC2Client
    from types_aiobotocore_ec2.type_defs import FilterTypeDef
    from types_aiobotocore_efs import EFSClient

AT_ONCE = 32
MAX_IDS = 200


class _Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """In seconds. tries: attempts for calls that may be repeated. settle_s: after this time, the
    result of an unanswered call is in AWS's lists. new_s: after this time, it is visible
    everywhere."""

    connect_s: float = 5.0
    read_s: float = 30.0
    tries: int = 4
    settle_s: float = 15.0
    new_s: float = 300.0


class CallListener:
    """Listens to the events of the AWS library for each call; `context` belongs to one call."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def begun(self, context: dict[str, Any], **_: object) -> None:
        context["odc_begun"] = perf_counter()

    def answered(
        self, http_response: Any, parsed: dict[str, Any], model: Any, context: dict[str, Any],
        **_: object,
    ) -> None:  # fmt: skip
        self._took(model.name, context)
        # A missing resource is a valid answer.
        code = str(parsed.get("Error", {}).get("Code"))
        if http_response.status_code >= 300 and "NotFound" not in code:
            self._calls.failed(model.name)

    def broken(self, event_name: str, context: dict[str, Any], **_: object) -> None:
        operation = event_name.rpartition(".")[2]
        self._took(operation, context)
        self._calls.failed(operation)

    def _took(self, operation: str, context: dict[str, Any]) -> None:
        self._calls.took(operation, perf_counter() - context.pop("odc_begun", perf_counter()))


class Link:
    def __init__(
        self, settings: DiskSettings, server_id: str, clock: Clock, limits: Limits | None = None,
        calls: Calls = NOBODY,
    ) -> None:  # fmt: skip
        """server_id: of the database, because several servers may share an AWS account."""
        self._settings = settings
        self._server_id = server_id
        self._clock = clock
        self._limits = limits or Limits()
        self._calls = calls
        self._session = get_session()
        self._opened = AsyncExitStack()
        self._new: dict[str, float] = {}

    async def open(self) -> None:
        """Create the clients. Nothing is sent yet."""
        self._ec2: EC2Client = await self._client("ec2", self._limits.tries)
        # A retry by the library could create a second resource if the first answer was lost.
        self._ec2_once: EC2Client = await self._client("ec2", 1)
        self._efs: EFSClient = await self._client("efs", self._limits.tries)
        self._efs_once: EFSClient = await self._client("efs", 1)

    async def close(self) -> None:
        await self._opened.aclose()

    async def _client(self, service: Any, tries: int) -> Any:
        config = AioConfig(
            connect_timeout=self._limits.connect_s,
            read_timeout=self._limits.read_s,
            retries={"mode": "standard", "total_max_attempts": tries},
            max_pool_connections=AT_ONCE,
        )
        client: Any = self._session.create_client(
            service,
            region_name=self._settings.aws_region,
            endpoint_url=self._settings.aws_endpoint,
            config=config,
        )
        opened = await self._opened.enter_async_context(client)
        listener = CallListener(self._calls)
        for event, hear in (
            ("before-call", listener.begun), ("after-call", listener.answered),
            ("after-call-error", listener.broken),
        ):  # fmt: skip
            opened.meta.events.register(f"{event}.{service}", hear)
        return opened

    def _ours(self) -> list[FilterTypeDef]:
        return [
            aws_records.tag_filter(MANAGED_BY, ODC),
            aws_records.tag_filter(SERVER, self._server_id),
        ]

    def _note_new(self, id: str) -> None:
        now = self._clock.monotonic()
        self._new = {k: at for k, at in self._new.items() if now - at < self._limits.new_s}
        self._new[id] = now

    async def _by_id(
        self,
        ids: Sequence[str],
        list_some: Callable[[Sequence[str]], Awaitable[Sequence[T]]],
        find: Callable[[str], Awaitable[T | None]],
    ) -> dict[str, T]:
        """Look up each id. An id missing from a list proves nothing, so it is queried
        individually."""
        found: dict[str, T] = {}
        for at in range(0, len(ids), MAX_IDS):
            found |= {one.id: one for one in await list_some(ids[at : at + MAX_IDS])}
        for id in ids:
            one = found.get(id) or await find(id)
            if one is not None:
                found[id] = one
            elif self._clock.monotonic() - self._new.get(id, -1e9) < self._limits.new_s:
                raise CloudBusy(
                    f"AWS does not show {id} yet, which it has just created", sent=False
                )
        return {id: found[id] for id in ids if id in found}
