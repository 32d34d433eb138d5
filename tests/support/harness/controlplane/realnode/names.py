"""A DNS server for pods: the names of a headless service, HOST.SERVICE.NAMESPACE.svc.cluster.local,
and no others."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import cast

from tests.support.harness.controlplane.api import Api

DOMAIN = ["svc", "cluster", "local"]
_HEADER = struct.Struct("!6H")
_A, _IN = 1, 1
_NO_SUCH_NAME, _SERVER_FAILED = 3, 2


def listen(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, 53))
    return made


class _Server(asyncio.DatagramProtocol):
    def __init__(self, api: Api) -> None:
        self._api = api
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.create_task(self._reply(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            found = await asyncio.to_thread(self._find, _labels(data))
            self._transport.sendto(reply(data, found), addr)
        except Exception as error:
            print(f"{addr}: {error!r}", flush=True)
            self._transport.sendto(reply(data, None, _SERVER_FAILED), addr)

    def _find(self, labels: list[str]) -> str | None:
        """Pods are listed each time, so that an answer is never old."""
        if len(labels) != 6 or labels[3:] != DOMAIN:
            return None
        host, service, namespace = labels[:3]
        for pod in self._api.items(f"/api/v1/namespaces/{namespace}/pods"):
            spec, status = pod["spec"], pod["status"]
            named = (spec.get("hostname"), spec.get("subdomain")) == (host, service)
            if named and status.get("podIP") and status["phase"] in ("Pending", "Running"):
                return status["podIP"]
        return None


async def serve(listener: socket.socket, api: Api) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Server(api), sock=listener)


def _labels(query: bytes) -> list[str]:
    labels: list[str] = []
    at = _HEADER.size
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode().lower())
        at += 1 + size
    return labels


def reply(query: bytes, address: str | None, failure: int = _NO_SUCH_NAME) -> bytes:
    """An address if one was asked for; without one, the failure."""
    number, flags, *_ = _HEADER.unpack_from(query)
    end = _HEADER.size
    while size := query[end]:
        end += 1 + size
    end += 5
    kind = struct.unpack_from("!H", query, end - 4)[0]
    answers = b""
    if address is not None and kind == _A:
        # The name is that of the question.
        answers = struct.pack("!HHHIH", 0xC00C, _A, _IN, 1, 4) + socket.inet_aton(address)
    code = 0 if address is not None else failure
    header = _HEADER.pack(number, 0x8480 | flags & 0x0100 | code, 1, 1 if answers else 0, 0, 0)
    return header + query[_HEADER.size : end] + answers
