"""The connection to a Kubernetes API server: kubernetes_asyncio's configuration, TLS and tokens;
JSON in and out as bytes, because the library's own models take ten times as long to read."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from odcd.errors import BadRequest, RunnerDown

if TYPE_CHECKING:
    import aiohttp
    from kubernetes_asyncio.client import ApiClient, Configuration

log = logging.getLogger(__name__)

CONNECTIONS = 64
ANSWER_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
TOKEN_OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that tell nothing about what was asked: try again."""

Query = Sequence[tuple[str, str | int]]


class Status(msgspec.Struct, frozen=True):
    """What the API server says of a request it refused."""

    message: str = ""
    reason: str = ""
    code: int = 0


class ApiRefused(Exception):
    """The API server answered, and said no."""

    def __init__(self, status: int, told: Status, retry_after_s: float | None) -> None:
        super().__init__(f"{status} {told.reason}: {told.message}")
        self.status = status
        self.reason = told.reason
        self.message = told.message or told.reason or f"HTTP {status}"
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """The same request may be answered otherwise in a while."""
        return self.status in RETRIED


class Cluster:
    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.host = str(client.configuration.host)

    @classmethod
    async def connect(cls, kubeconfig: Path | None, context: str | None = None) -> Cluster:
        """By a kubeconfig; without one, as the pod that this is. Raises BadRequest when neither
        can be read; nothing is sent yet."""
        try:
            from kubernetes_asyncio.client import ApiClient
        except ImportError as error:
            raise BadRequest(
                f"the Kubernetes executor lacks a library: {error}",
                'Install it: pip install "odc[k8s]"',
            ) from error
        configuration = await _configuration(kubeconfig, context)
        configuration.connection_pool_maxsize = CONNECTIONS
        return cls(ApiClient(configuration))

    async def close(self) -> None:
        await self._client.close()

    # -- requests -------------------------------------------------------------------------------

    async def get(self, path: str, query: Query = (), *, timeout_s: float | None = None) -> bytes:
        return await self._ask("GET", path, query, timeout_s=timeout_s)

    async def post(self, path: str, body: Mapping[str, Any], query: Query = ()) -> bytes:
        return await self._ask("POST", path, query, body)

    async def patch(self, path: str, body: Any, *, kind: str = MERGE_PATCH) -> bytes:
        return await self._ask("PATCH", path, (), body, kind=kind)

    async def delete(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        return await self._ask("DELETE", path, (), body)

    async def _ask(
        self, method: str, path: str, query: Query = (), body: Any = None, *,
        kind: str = "application/json", timeout_s: float | None = None,
    ) -> bytes:  # fmt: skip
        """The answer's body. Raises ApiRefused, or RunnerDown when nobody answered: the request
        may have been carried out then."""
        async with self._sent(
            method, path, query, body, kind=kind, total_s=timeout_s or ANSWER_TIMEOUT_S
        ) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query = (), *, silence_s: float | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """An answer read as it comes; silence_s: the longest between two pieces of it."""
        async with self._sent("GET", path, query, silence_s=silence_s) as response:
            yield response

    @asynccontextmanager
    async def _sent(
        self, method: str, path: str, query: Query, body: Any = None, *,
        kind: str = "application/json", total_s: float | None = None,
        silence_s: float | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:  # fmt: skip
        import aiohttp

        client: Any = self._client
        headers = {"Accept": "application/json", "Content-Type": kind, **client.default_headers}
        session: aiohttp.ClientSession = client.rest_client.pool_manager
        timeout = aiohttp.ClientTimeout(
            total=total_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=silence_s
        )
        more: dict[str, Any] = {}
        if client.rest_client.proxy:
            more["proxy"] = client.rest_client.proxy
        if client.rest_client.server_hostname:
            more["server_hostname"] = client.rest_client.server_hostname
        try:
            await client.update_params_for_auth(headers, [], ["BearerToken"])
            async with session.request(
                method,
                self.host + path,
                params=[(name, str(value)) for name, value in query],
                data=None if body is None else msgspec.json.encode(body),
                headers=headers,
                timeout=timeout,
                **more,
            ) as response:
                if response.status >= 300:
                    raise _refusal(response.status, await response.read(), response.headers)
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise RunnerDown(
                f"the Kubernetes API server at {self.host} cannot be reached: {_told(error)}",
                "Running pods go on meanwhile. Is the address right, and may this host reach it?",
            ) from error

    async def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout_s: float
    ) -> None:
        """Run a command in a container, its output dropped. Raises ApiRefused, RunnerDown."""
        import aiohttp

        client: Any = self._client
        headers = {"sec-websocket-protocol": "v5.channel.k8s.io"}
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in command]
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        session: aiohttp.ClientSession = client.rest_client.pool_manager
        try:
            await client.update_params_for_auth(headers, [], ["BearerToken"])
            async with asyncio.timeout(timeout_s):
                async with session.ws_connect(
                    self.host.replace("http", "ws", 1) + path, params=query, headers=headers
                ) as socket:
                    async for _ in socket:
                        pass
        except aiohttp.WSServerHandshakeError as error:
            raise ApiRefused(error.status, Status(message=error.message), None) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RunnerDown(f"pod {pod} cannot be reached: {_told(error)}") from error


def _kubeconfig(given: Path | None) -> Path | None:
    """None: this is a pod of the cluster, and has what it needs."""
    if given is None and TOKEN_OF_POD.exists():
        return None
    named = given or Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not named.is_file():
        raise BadRequest(
            f"the kubeconfig {named} does not exist",
            "Name one with --kubeconfig FILE; inside a pod none is needed.",
        )
    return named


async def _configuration(kubeconfig: Path | None, context: str | None) -> Configuration:
    from kubernetes_asyncio import config
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    named = _kubeconfig(kubeconfig)
    if named is None:
        config.load_incluster_config(client_configuration=configuration)
        return configuration
    try:
        await config.load_kube_config(str(named), context, configuration, persist_config=False)
    except Exception as error:  # whatever a wrong file makes of its readers
        raise BadRequest(
            f"the kubeconfig {named} cannot be used: {_told(error)}",
            "`kubectl --kubeconfig FILE version` shows whether a file is right.",
        ) from error
    if not str(configuration.host).startswith(("http://", "https://")):
        raise BadRequest(
            f'the kubeconfig {named} names no server: "{configuration.host}"',
            "Its cluster needs a line `server: https://…`.",
        )
    return configuration


def _refusal(status: int, body: bytes, headers: Mapping[str, str]) -> ApiRefused:
    try:
        told = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        told = Status(message=body.decode(errors="replace")[:500].strip())
    after = headers.get("Retry-After", "")
    return ApiRefused(status, told, float(after) if after.isdigit() else None)


def _told(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error}"
    return " ".join(str(error).split())[:300] or type(error).__name__
