"""The connection to a Kubernetes API server. Configuration, TLS and tokens come from
kubernetes_asyncio. JSON is passed as bytes, because the library's models take ten times as long to
parse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from odcd.call_metrics import NOBODY, Calls
from odcd.errors import BadRequest, RunnerDown, WrongState
from odcd.executor.kubernetes.api_operations import operation_of
from odcd.executor.kubernetes.bodies import read_body
from odcd.executor.kubernetes.command_output import MAX_STDERR_BYTES, CommandOutput, hang_up
from odcd.executor.kubernetes.exec_stream import ExecStream
from odcd.executor.kubernetes.forward import PROTOCOL, Forward
from odcd.executor.kubernetes.kubeconfig import describe_error, load_configuration
from odcd.executor.kubernetes.pod_texts import plain

if TYPE_CHECKING:
    import aiohttp
    from kubernetes_asyncio.client import ApiClient

log = logging.getLogger(__name__)

CONNECTIONS, UNLIMITED = 64, 0
ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S = 30.0, 5.0
HEARTBEAT_S = 30.0
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes that do not answer the request itself: try again."""
ANSWERS = frozenset({404, 409, 410})
Query = Sequence[tuple[str, str | int]]


class Status(msgspec.Struct, frozen=True):
    """The API server's explanation of a rejected request."""

    message: str = ""
    reason: str = ""
    code: int = 0


class ApiRefused(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, details: Status, retry_after_s: float | None) -> None:
        super().__init__(f"{status} {details.reason}: {details.message}")
        self.status = status
        self.reason = details.reason
        self.message = plain(details.message or details.reason or f"HTTP {status}")
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in RETRIED


class Cluster:
    def __init__(
        self, client: ApiClient, streams: ApiClient | None = None, calls: Calls = NOBODY
    ) -> None:
        """streams: the client for long-lived connections; None: the same. If such a connection had
        to wait for another, it would delay all requests, including the one that would end it."""
        self._client = client
        self._streams = streams or client
        self._calls = calls
        self.host = str(client.configuration.host)

    @classmethod
    async def connect(
        cls, kubeconfig: Path | None, context: str | None = None, calls: Calls = NOBODY
    ) -> Cluster:
        """Connect with a kubeconfig; without one, use the service account of this pod. Raises
        BadRequest when neither can be read. Nothing is sent yet."""
        try:
            from kubernetes_asyncio.client import ApiClient
        except ImportError as error:
            raise BadRequest(
                f"the Kubernetes executor needs a library: {error}",
                'Install it: pip install "odc[k8s]"',
            ) from error
        configuration = await load_configuration(kubeconfig, context)
        configuration.connection_pool_maxsize = CONNECTIONS
        client = ApiClient(configuration)
        configuration.connection_pool_maxsize = UNLIMITED
        return cls(client, ApiClient(configuration), calls)

    async def close(self) -> None:
        await self._client.close()
        await self._streams.close()

    # -- requests -------------------------------------------------------------------------------

    async def get(
        self, path: str, query: Query = (), *, timeout_s: float | None = None,
        max_bytes: int | None = None,
    ) -> bytes:  # fmt: skip
        """Raises BodyTooLong if the answer has more than max_bytes."""
        return await self._ask("GET", path, query, timeout_s=timeout_s, max_bytes=max_bytes)

    async def post(self, path: str, body: Mapping[str, Any], query: Query = ()) -> bytes:
        return await self._ask("POST", path, query, body)

    async def patch(self, path: str, body: Any, *, kind: str = MERGE_PATCH) -> bytes:
        return await self._ask("PATCH", path, (), body, kind=kind)

    async def delete(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        return await self._ask("DELETE", path, (), body)

    async def _ask(
        self, method: str, path: str, query: Query = (), body: Any = None, *,
        kind: str = "application/json", timeout_s: float | None = None,
        max_bytes: int | None = None,
    ) -> bytes:  # fmt: skip
        """Send a request and return the body of the response. Raises ApiRefused, or RunnerDown when
        there was no response: then the request may have been carried out."""
        with self._calls.asking(operation_of(method, path, query), fails=is_trouble):
            async with self._sent(
                self._client, method, path, query, body, kind=kind,
                total_s=timeout_s or ANSWER_TIMEOUT_S,
            ) as response:  # fmt: skip
                return await read_body(response, max_bytes)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query = (), *, silence_s: float | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Stream a response; silence_s: the maximum time between two pieces of it."""
        operation = operation_of("GET", path, query)
        with self._calls.asking(operation, timed=False, fails=is_trouble):
            async with self._sent(
                self._streams, "GET", path, query, silence_s=silence_s
            ) as response:  # fmt: skip
                yield response

    @asynccontextmanager
    async def _sent(
        self, client: Any, method: str, path: str, query: Query, body: Any = None, *,
        kind: str = "application/json", total_s: float | None = None,
        silence_s: float | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:  # fmt: skip
        import aiohttp

        headers = {"Accept": "application/json", "Content-Type": kind, **client.default_headers}
        session: aiohttp.ClientSession = client.rest_client.pool_manager
        timeout = aiohttp.ClientTimeout(
            total=total_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=silence_s
        )
        more = _transport(client)
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
                f"the Kubernetes API server at {self.host} cannot be reached: "
                f"{describe_error(error)}",
                "Running pods continue. Check the address, and that this host may reach it.",
            ) from error

    async def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout_s: float,
        *, into: bytearray | None = None, max_bytes: int = MAX_STDERR_BYTES,
    ) -> str | None:  # fmt: skip
        """Run a command in a container. Return its error, or None if it succeeded. Raises
        ApiRefused, RunnerDown. into: receives its output, also if it is cut off."""
        import aiohttp

        output = CommandOutput(bytearray() if into is None else into, max_bytes)
        with self._calls.asking("exec pods", fails=is_trouble):
            try:
                async with asyncio.timeout(timeout_s):
                    socket = await self._open_exec(namespace, pod, container, command)
                    try:
                        async for message in socket:
                            if message.type is aiohttp.WSMsgType.BINARY and not output.take(
                                message.data
                            ):
                                break
                    finally:
                        await hang_up(socket)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise RunnerDown(f"pod {pod} cannot be reached: {describe_error(error)}") from error
        return output.error()

    async def ask(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout_s: float
    ) -> bytes:
        """Run a command in a container and return its output, which must be short. Raises
        ApiRefused, RunnerDown, and WrongState when it fails."""
        output = bytearray()
        trouble = await self.execute(namespace, pod, container, command, timeout_s, into=output)
        if trouble is not None:
            raise WrongState(f"pod {pod}: {trouble}")
        return bytes(output)

    async def open_exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], timeout_s: float
    ) -> ExecStream:
        """A command with its input; timeout_s: to start it. Raises ApiRefused, RunnerDown."""
        import aiohttp

        try:
            async with asyncio.timeout(timeout_s):
                socket = await self._open_exec(namespace, pod, container, command, has_input=True)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RunnerDown(f"pod {pod} cannot be reached: {describe_error(error)}") from error
        return ExecStream(socket, pod)

    async def _open_exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *,
        has_input: bool = False,
    ) -> aiohttp.ClientWebSocketResponse:  # fmt: skip
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("stdin", "true")] if has_input else []
        query += [("command", word) for word in command]
        return await self._connect(
            f"/api/v1/namespaces/{namespace}/pods/{pod}/exec", query, "v5.channel.k8s.io",
            heartbeat=HEARTBEAT_S if has_input else None,
        )  # fmt: skip

    async def _connect(
        self, path: str, query: Query, protocol: str, *, heartbeat: float | None
    ) -> aiohttp.ClientWebSocketResponse:
        """Raises ApiRefused, and aiohttp's errors. heartbeat: the cluster's side may vanish
        silently, and what is idle only sends data when asked."""
        import aiohttp

        client: Any = self._streams
        headers: dict[str, str] = {}
        await client.update_params_for_auth(headers, [], ["BearerToken"])
        session: aiohttp.ClientSession = client.rest_client.pool_manager
        try:
            return await session.ws_connect(
                self.host.replace("http", "ws", 1) + path,
                params=[(name, str(value)) for name, value in query],
                headers=headers,
                protocols=(protocol,),
                heartbeat=heartbeat,
                **_transport(client),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise ApiRefused(error.status, Status(message=error.message), None) from error

    async def forward(self, namespace: str, pod: str, port: int, timeout_s: float) -> Forward:
        """A stream to a port of a pod; timeout_s: to open it. Raises ApiRefused, RunnerDown."""
        import aiohttp

        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
        try:
            async with asyncio.timeout(timeout_s):
                socket = await self._connect(
                    path, [("ports", str(port))], PROTOCOL, heartbeat=HEARTBEAT_S
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RunnerDown(f"pod {pod} cannot be reached: {describe_error(error)}") from error
        return Forward(socket, pod)


def is_trouble(error: Exception) -> bool:
    """Whether the API server failed. That an object is gone, or exists already, is an answer."""
    if isinstance(error, ApiRefused):
        return error.status not in ANSWERS
    return isinstance(error, RunnerDown)


def _transport(client: Any) -> dict[str, Any]:
    """The settings of the kubeconfig that are passed with each request."""
    rest = client.rest_client
    settings = {"proxy": rest.proxy, "server_hostname": rest.server_hostname}
    return {name: value for name, value in settings.items() if value}


def _refusal(status: int, body: bytes, headers: Mapping[str, str]) -> ApiRefused:
    try:
        details = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        details = Status(message=body.decode(errors="replace")[:500].strip())
    after = headers.get("Retry-After", "")
    return ApiRefused(status, details, float(after) if after.isdigit() else None)
