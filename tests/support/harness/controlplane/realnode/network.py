"""The network of real nodes, apart from this machine's: a bridge for pods, names, and a registry.

python -m tests.support.harness.controlplane.realnode.network CONFIG

CONFIG is JSON: inward and outward (ports of the loopback), kubeconfig. The program makes a network
namespace that is linked to nothing, and relays connections: to `inward` ports from the namespace to
this machine's loopback, to `outward` ports the other way. So the nodes reach the API server, it
reaches them, and neither pods nor addresses are seen outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane.api import Api
from tests.support.harness.controlplane.children import Child, module
from tests.support.harness.controlplane.realnode import names, registry

BRIDGE = "cni0"
GATEWAY = "10.244.0.1"
NAMES = "169.254.20.10"
"""Of the DNS server: the address of Kubernetes' node-local DNS cache, which policies allow."""
SUBNET = "10.244.0.0/16"
_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Network(Child):
    """The program; nodes enter its namespace by `path`."""

    def __init__(
        self, folder: Path, kubeconfig: Path, *, inward: list[int], outward: list[int]
    ) -> None:
        self._ready = folder / "network.ready"
        config = folder / "network.json"
        config.write_text(
            json.dumps(
                {
                    "inward": inward, "outward": outward, "kubeconfig": str(kubeconfig),
                    "ready": str(self._ready),
                }
            )
        )  # fmt: skip
        argv, env = module("tests.support.harness.controlplane.realnode.network", str(config))
        super().__init__(argv, folder / "network.log", env)

    @property
    def path(self) -> str:
        return f"/proc/{self.pid}/fd/{self._ready.read_text()}"

    def start(self) -> None:
        self._ready.unlink(missing_ok=True)
        super().start()
        self.wait_until(self._ready.exists, "the network of the nodes", 30)


class Namespace:
    """A new network namespace, in which this process makes sockets and otherwise does nothing."""

    def __init__(self) -> None:
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
        _check(_libc.unshare(_NEWNET))
        self.fd = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            for words in (
                ["link", "set", "lo", "up"],
                ["link", "add", BRIDGE, "type", "bridge"],
                ["address", "add", f"{GATEWAY}/16", "dev", BRIDGE],
                ["address", "add", f"{NAMES}/32", "dev", BRIDGE],
                ["link", "set", BRIDGE, "up"],
            ):
                subprocess.run(["ip", *words], check=True)
        finally:
            _check(_libc.setns(self._home, _NEWNET))

    def inside(self, make: Callable[[], socket.socket]) -> socket.socket:
        """A socket made there stays there."""
        _check(_libc.setns(self.fd, _NEWNET))
        try:
            return make()
        finally:
            _check(_libc.setns(self._home, _NEWNET))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: socket.socket, port: int
) -> None:
    far.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(far, ("127.0.0.1", port))
    except OSError:
        far.close()
        writer.close()
        return
    far_reader, far_writer = await asyncio.open_connection(sock=far)
    try:
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
    finally:
        writer.close()
        far_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


async def _serve(config: dict[str, Any]) -> None:
    apart = Namespace()

    def listen(port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port))

    async def start(listener: socket.socket, far: Callable[[], socket.socket], port: int) -> None:
        await asyncio.start_server(lambda r, w: _relay(r, w, far(), port), sock=listener)

    for port in config["inward"]:
        await start(apart.inside(lambda port=port: listen(port)), socket.socket, port)
    for port in config["outward"]:
        await start(listen(port), lambda: apart.inside(socket.socket), port)
    api = Api(Path(config["kubeconfig"]))
    await names.serve(apart.inside(lambda: names.listen(NAMES)), api)
    await registry.serve(apart.inside(lambda: listen(registry.PORT)))
    written = Path(config["ready"])
    written.with_suffix(".new").write_text(str(apart.fd))
    written.with_suffix(".new").rename(written)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_text())))
