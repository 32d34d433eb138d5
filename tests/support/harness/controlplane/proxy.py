"""A proxy before the API server that disturbs a seeded share of the traffic."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.support.harness.controlplane.children import Child, free_port, module
from tests.support.harness.controlplane.kubeconfig import write_kubeconfig
from tests.support.harness.controlplane.pki import Pki
from tests.support.harness.controlplane.plane import Cluster


class FaultProxy(Child):
    """On the loopback; clients come by `kubeconfig(...)`, with a token.

    Rules, all 0 at first:
      share_409, share_429, share_500   of requests answered so and not passed on (409: of writes)
      share_lost      of writes that are done, and whose answer is lost with the connection
      drop_watch_s    a watch is cut after 0 to twice this time
      stall_watch_s   a watch says nothing more after 0 to twice this time, and stays open
      delay_s         every request waits 0 to twice this time
    """

    def __init__(self, cluster: Cluster, folder: Path, seed: int = 1) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._control = free_port()
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        pki = Pki(folder / "pki")
        self._ca = pki.ca.read_bytes()
        config = folder / "proxy.json"
        config.write_text(
            json.dumps(
                {
                    "kubeconfig": str(cluster.admin),
                    "port": port,
                    "control_port": self._control,
                    "cert": str(pki.server_cert),
                    "key": str(pki.server_key),
                    "seed": seed,
                }
            )
        )
        argv, env = module("tests.support.harness.controlplane.faults", str(config))
        super().__init__(argv, folder / "proxy.log", env)

    def start(self) -> None:
        super().start()
        self.wait_until(self._listens, "the proxy to listen")

    def _listens(self) -> bool:
        with contextlib.suppress(OSError):
            return self.counts() is not None
        return False

    def kubeconfig(self, like: Path) -> Path:
        """The same user as in another kubeconfig, by token and through the proxy."""
        config = yaml.safe_load(like.read_text())
        token = config["users"][0]["user"].get("token")
        assert token, f"{like} has no token, and a certificate does not pass the proxy"
        path = self._folder / f"proxied-{like.name}"
        namespace = config["contexts"][0]["context"].get("namespace", "default")
        return write_kubeconfig(path, self.url, self._ca, token=token, namespace=namespace)

    def rules(self, **shares: float) -> None:
        """These rules from now on; rules that are not named are off."""
        self._ask({"rules": shares})

    @contextlib.contextmanager
    def spoiling(self, **shares: float) -> Iterator[None]:
        """These rules within the block; afterwards none."""
        self.rules(**shares)
        yield
        self.rules()

    def cut(self) -> None:
        """Breaks every open connection."""
        self._ask({"cut": True})

    def refuse(self, for_s: float) -> None:
        """Refuses every connection for that time, then returns."""
        self._ask({"refuse": for_s})

    def counts(self) -> dict[str, int]:
        """The numbers of passed requests and watches, and of faults by rule."""
        return self._ask({})

    def _ask(self, what: object) -> dict[str, int]:
        with socket.create_connection(("127.0.0.1", self._control), timeout=300) as connection:
            connection.sendall(json.dumps(what).encode() + b"\n")
            with connection.makefile() as answer:
                return json.loads(answer.readline())

    def __enter__(self) -> FaultProxy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
