"""How fast dev servers with disks become active: python -m benchmarks.dev_servers [--write].

A real API server, scheduler and controllers, KWOK as the kubelet of 1,000 nodes, and moto as AWS,
which answers at once. So everything except the cloud's own latencies is measured. odcd is a
separate process, PostgreSQL writes to the disk, and all of them share the machine.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, percentile
from benchmarks.report import cluster_of, report
from benchmarks.results import DEV_SERVERS
from tests.support.fakes.aws import REGION, FakeAws, running_moto, serving_aws
from tests.support.fakes.github import ED25519
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import many_nodes, until_ready
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.served import Served, Site, a_site

NODES = 1_000
SAMPLES = 20
TOGETHER = 500
CLIENTS = 16
PATIENCE_S = 600.0
POLL_S = 0.01
PODS = "/api/v1/namespaces/gpu-dev/pods"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}


class Bench:
    def __init__(self, plane: ControlPlane, site: Site, daemon: Served, aws: FakeAws) -> None:
        self.plane = plane
        self.daemon = daemon
        self.aws = aws
        self.token = site.token("ann", 5001)

    def call(self, method: str, path: str, body: object = None) -> Any:
        return self.daemon.call(method, path, self.token, body, timeout_s=PATIENCE_S)

    def reserve(self, disk: str | None) -> int:
        body = {"gpu_type": "h100", "gpus": 1, "github_user": "ann", "disk": disk}
        return self.call("POST", "/v1/reservations", body)["id"]

    def active_s(self, disk: str | None) -> float:
        """The time from the request until the answer reports it as active."""
        begin = time.perf_counter()
        reservation = self.reserve(disk)
        while self.call("GET", f"/v1/reservations/{reservation}")["status"] != "active":
            assert time.perf_counter() - begin < PATIENCE_S, reservation
            time.sleep(POLL_S)
        return time.perf_counter() - begin

    def counts(self) -> dict[str, int]:
        return self.call("GET", "/v1/cluster/use")["reservations"]

    def end(self) -> None:
        self.call("POST", "/v1/jobs/cancel", {"all": True})
        wait_until(lambda: not self.plane.api.items(PODS), "no pods", PATIENCE_S)

    def disks(self) -> list[dict[str, Any]]:
        return self.call("GET", "/v1/disks")["disks"]

    def put_away(self) -> None:
        there = ("available",)
        wait_until(
            lambda: all(disk["state"] in there for disk in self.disks()), "snapshots", PATIENCE_S
        )

    def refused(self) -> int:
        """The number of requests that the API server rejected to protect itself."""
        text = self.plane.kubectl("get", "--raw", "/metrics")
        found = re.findall(
            r"^apiserver_flowcontrol_rejected_requests_total\{.*\} (\S+)", text, re.M
        )
        return sum(int(float(one)) for one in found)


def one_by_one(bench: Bench) -> Iterator[Figure]:
    plain = [bench.active_s(None) for _ in range(SAMPLES)]
    bench.call("POST", "/v1/disks", {"name": "home"})
    took: list[float] = []
    again: list[float] = []
    for kept in (took, again):
        for n in range(SAMPLES):
            if kept is took:
                bench.call("POST", "/v1/disks", {"name": f"home-{n}"})
            kept.append(bench.active_s(f"home-{n}"))
        bench.end()
        bench.put_away()
    how = (
        f"{SAMPLES} of them, one after the other, on an idle cluster; the cloud answers at once, "
        "and moto's response time is included"
    )
    yield Figure("reserve to active, a new disk, median", [percentile(took, 0.5)], "s", 2, note=how)
    yield Figure("the same, 95th percentile", [percentile(took, 0.95)], "s", 2)
    yield Figure(
        "reserve to active, a disk from its snapshot, median", [percentile(again, 0.5)], "s", 2
    )
    yield Figure("reserve to active, no disk, median", [percentile(plain, 0.5)], "s")


def together(bench: Bench) -> Iterator[Figure]:
    names = [f"many-{n}" for n in range(TOGETHER)]
    refused = bench.refused()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda name: bench.call("POST", "/v1/disks", {"name": name}), names))
        calls = len(bench.aws.calls)
        begin = time.perf_counter()
        list(pool.map(bench.reserve, names))
        accepted = time.perf_counter() - begin
    wait_until(lambda: bench.counts()["active"] == TOGETHER, "all to be active", PATIENCE_S)
    took = time.perf_counter() - begin
    calls = len(bench.aws.calls) - calls
    begin = time.perf_counter()
    bench.end()
    ended = time.perf_counter() - begin
    bench.put_away()
    away = time.perf_counter() - begin
    yield Figure(
        f"{TOGETHER} reserved together, each with a disk: until all are active",
        [took],
        "s",
        note=f"accepted within {accepted:.1f} s; {calls} calls to the cloud, "
        f"{calls / took:.0f} per second. Kubernetes' own controller, which binds claims to volumes "
        "one after the other with several writes each, dominates: pods run within 2 s of that",
    )
    yield Figure("the same, dev servers per second", [TOGETHER / took], "/s", at_least=True)
    yield Figure(
        "requests that the API server rejected meanwhile", [bench.refused() - refused], "", 0
    )
    yield Figure(
        f"all {TOGETHER} cancelled: until no pod is left",
        [ended],
        "s",
        note=f"{away:.0f} s until every snapshot is complete and every volume gone",
    )


@contextmanager
def keys() -> Iterator[str]:
    """Give every user one SSH key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{ED25519}\n".encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def a_bench(folder: Path) -> Iterator[Bench]:
    os.environ |= CREDENTIALS
    with (
        running_moto(folder) as port,
        serving_aws(port) as aws,
        keys() as github,
        ControlPlane(folder) as plane,
        Kwok(plane, folder / "kwok"),
    ):
        made = plane.api.create_all(many_nodes(h100=NODES))
        until_ready(plane.api, [node["metadata"]["name"] for node in made])
        with a_site(plane, durable=True) as site:
            daemon = site.daemon(
                "odcd", aws_region=REGION, aws_endpoint=aws.url, github_url=github,
                dev_image="registry.test/dev:1.0", disk_gib=10,
            )  # fmt: skip
            try:
                daemon.start()
                bench = Bench(plane, site, daemon, aws)
                wait_until(
                    lambda: bench.call("GET", "/v1/cluster/use")["nodes_up"] == NODES,
                    "nodes",
                    PATIENCE_S,
                )
                yield bench
            finally:
                daemon.stop()


def measured() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="odc-bench-") as folder, a_bench(Path(folder)) as bench:
        yield from one_by_one(bench)
        yield from together(bench)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dev_servers", description=__doc__)
    setting = f"{cluster_of(NODES)}, moto's server simulates AWS and answers at once."
    return report(parser, DEV_SERVERS, setting, lambda _: measured())


if __name__ == "__main__":
    sys.exit(main())
