"""How fast jobs become pods: python -m benchmarks.kubernetes [--write].

A real API server, scheduler and controllers, and KWOK as the kubelet of 1,000 nodes. odcd is a
separate process, PostgreSQL writes to the disk, and all of them share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cluster import Seen, all_cpu_s, burst, cpu_s, listing, rss_mib, whole_cpu_s
from benchmarks.figures import Figure, percentile
from benchmarks.report import cluster_of, report
from benchmarks.results import KUBERNETES
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import many_nodes, until_ready
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.served import Site, a_site

NODES = 1_000
STARTS = 2_000
SAMPLES = 40
RUNNING = 2_500
STEADY_S = 60.0
WORKERS = 8
"""The number of attempts that odcd creates at once; the plain creates use as many clients."""
PATIENCE_S = 300.0
OTHERS = "this benchmark and other processes"


class Bench:
    """One daemon on one cluster of 1,000 nodes."""

    def __init__(self, plane: ControlPlane, kwok: Kwok, site: Site) -> None:
        self.plane = plane
        self.kwok = kwok
        self.site = site
        self.daemon = site.daemon("odcd")
        self.token = ""

    def start(self) -> tuple[float, float]:
        """The seconds from exec, and from leading, until all nodes are registered."""
        written = self.daemon.log.stat().st_size if self.daemon.log.exists() else 0
        begin = time.perf_counter()
        self.daemon.start()
        leads = self._logged("leader.leads", written)
        ready = self._logged("executor.ready", written)
        self.token = self.token or self.site.token("ann", 5001)
        return ready - begin, ready - leads

    def _logged(self, event: str, written: int) -> float:
        """The time of the event by perf_counter(), to a millisecond, as precise as log lines."""

        def line() -> str:
            text = self.daemon.log.read_bytes()[written:].decode()
            return next((found for found in text.splitlines() if event in found), "")

        wait_until(line, event)
        at = time.mktime(time.strptime(line()[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        return at + float(line()[19:23]) - time.time() + time.perf_counter()

    def submit(self, count: int = 1, **fields: Any) -> float:
        """Submit this many jobs in one request; returns the time of the answer."""
        body = a_job(**fields)
        if count == 1:
            self.daemon.call("POST", "/v1/jobs", self.token, body)
        else:
            self.daemon.call("POST", "/v1/jobs/batch", self.token, {"jobs": [body] * count})
        return time.perf_counter()

    def idle(self) -> None:
        wait_until(lambda: not any(self.jobs().values()), "no jobs to be left", PATIENCE_S)

    def jobs(self) -> dict[str, int]:
        return self.daemon.call("GET", "/v1/cluster", self.token)["jobs"]

    def processes(self) -> dict[str, int]:
        running = self.site.postgres.postmaster()
        assert running is not None
        own = {"odcd": self.daemon.pid} if self.daemon.running else {}
        return own | {
            "PostgreSQL": running.pid, "API server": self.plane.apiserver.pid,
            "etcd": self.plane.etcd.pid, "scheduler": self.plane.scheduler.pid,
            "controllers": self.plane.controllers.pid, "KWOK": self.kwok.pid,
        }  # fmt: skip

    def shares(self, before: dict[str, float], took_s: float) -> str:
        """The share of a core that each process used meanwhile."""
        used = {
            name: (whole_cpu_s(pid) - before[name]) / took_s
            for name, pid in self.processes().items()
        }
        used[OTHERS] = (all_cpu_s() - before[OTHERS]) / took_s - sum(used.values())
        return ", ".join(
            f"{name} {100 * share:.0f} %"
            for name, share in sorted(used.items(), key=lambda one: -one[1])
        )

    def used(self) -> dict[str, float]:
        own = {name: whole_cpu_s(pid) for name, pid in self.processes().items()}
        return own | {OTHERS: all_cpu_s()}


def a_job(run_s: int | None = None, **fields: Any) -> dict[str, Any]:
    """A job with 2 KB of environment and a script of 300 bytes, like real ones; without run_s it
    never ends."""
    environment = {
        f"SETTING_OF_THE_USER_{n:02}": f"/home/ann/project/{n:03}" * 2 for n in range(28)
    }
    if run_s is not None:
        environment["TEST_RUN_S"] = str(run_s)
    return {
        "script": "#!/bin/bash\n" + "# what the job does\n" * 14 + "srun true\n",
        "work_dir": "/tmp", "name": "bench", "gpus": 1, "time_limit_s": 36_000,
        "environment": environment,
    } | fields  # fmt: skip


def resyncs(bench: Bench, runs: int, what: str) -> list[Figure]:
    whole: list[float] = []
    leading: list[float] = []
    for _ in range(runs):
        bench.daemon.stop()
        from_exec, from_lead = bench.start()
        whole.append(from_exec)
        leading.append(from_lead)
    return [
        Figure(
            f"daemon start to {NODES:,} nodes registered{what}", whole, "s", 3,
            note=f"{percentile(leading, 0.5):.2f} s of it after taking the lead: nodes and pods "
                 "listed, the "
            "inventory written, the jobs compared. Before that: Python's imports, and the check of "
            "the schema",
        )
    ]  # fmt: skip


def starts(bench: Bench, seen: Seen) -> list[Figure]:
    """One at a time on an idle cluster; then one after the other on the same node."""
    took: list[float] = []
    for number in range(SAMPLES + 3):
        since = bench.submit(run_s=0)
        took.append((seen.created(number + 1) - since) * 1000)
        time.sleep(0.25)
    bench.idle()
    freed: list[float] = []
    before = seen.count()
    chain = {"gpus": 5, "node_list": ["h100-0000"], "run_s": 0}
    bench.submit(SAMPLES, **chain)
    for number in range(1, SAMPLES):
        created = seen.created(before + number + 1)
        freed.append((created - seen.ended(before + number)) * 1000)
    bench.idle()
    how = (
        "by the watch of the benchmark, so the watch's delay is included. The transactions of "
        "pass, "
        "dispatch and texts, then the API server's create dominate"
    )
    after = (
        "the pod's end to the next pod, as the benchmark's watch saw both. The transaction of the "
        "end comes before the pass"
    )
    return [
        Figure("idle cluster: submit answered to pod created, median", [percentile(took[3:], 0.5)],
               "ms", 50, note=f"{SAMPLES} jobs, {how}"),
        Figure("the same, 95th percentile", [percentile(took[3:], 0.95)], "ms"),
        Figure("a job's end to the pod of the next job on its node, median",
               [percentile(freed, 0.5)], "ms", 50, note=f"{SAMPLES - 1} times; {after}"),
        Figure("from end to pod, 95th percentile", [percentile(freed, 0.95)], "ms"),
    ]  # fmt: skip


def sustained(bench: Bench, seen: Seen) -> list[Figure]:
    """Both measured by the API server's times of creation: the rate of odcd, and that of plain
    creates."""
    before = seen.count()
    used, begin = bench.used(), time.perf_counter()
    bench.submit(STARTS)
    first = seen.created(before + 1)
    last = seen.created(before + STARTS)
    note = bench.shares(used, last - begin)
    wait_until(lambda: bench.jobs()["RUNNING"] == STARTS, "all to run", PATIENCE_S)
    running = time.perf_counter() - begin
    rate = (STARTS - 1) / (last - first)
    bench.daemon.stop()
    sample = seen.sample()
    used, begin = bench.used(), time.perf_counter()
    plain_s = asyncio.run(burst(bench.site.kubeconfig(), sample, STARTS, WORKERS))
    plain = STARTS / plain_s
    plain_note = bench.shares(used, plain_s)
    both_s = asyncio.run(burst(bench.site.kubeconfig(), sample, STARTS, WORKERS, scripts=True))
    bench.start()
    who = "The API server and its etcd" if rate > 0.7 * plain else "odcd, with its PostgreSQL,"
    return [
        Figure(f"{STARTS:,} one-GPU jobs: pods created per second", [rate], "/s", 60, at_least=True,
               note=f"from the first to the last; {running:.0f} s until odcd reported all as "
                    "RUNNING. "
               f"{who} limit it, with the other processes on the same cores: {note}"),
        Figure(f"{STARTS:,} plain creates of the same pod", [plain], "/s",
               note=f"the API server's limit for as many writes: by the same client, {WORKERS} at "
               f"once, with odcd stopped: {plain_note}"),
        Figure("the same with a ConfigMap for each pod", [STARTS / both_s], "/s",
               note="the limit if the script of a job is an object of its own, as that of a gang "
               "is"),
    ]  # fmt: skip


def steady(bench: Bench) -> list[Figure]:
    bench.submit(RUNNING - bench.jobs()["RUNNING"])
    wait_until(lambda: bench.jobs()["RUNNING"] == RUNNING, "all to run", PATIENCE_S)
    time.sleep(10)
    before, begin = cpu_s(bench.daemon.pid), time.perf_counter()
    used = bench.used()
    time.sleep(STEADY_S)
    took_s = time.perf_counter() - begin
    share = 100 * (cpu_s(bench.daemon.pid) - before) / took_s
    what = f"{NODES:,} nodes and {RUNNING:,} running pods"
    return [
        Figure(f"odcd's CPU with {what}, of one core", [share], "%", 10,
               note=f"over {STEADY_S:.0f} s in which no job started or ended; all processes: "
               f"{bench.shares(used, took_s)}"),
        Figure(f"odcd's resident memory with {what}", [rss_mib(bench.daemon.pid)], "MiB", 286),
    ]  # fmt: skip


def relists(bench: Bench, runs: int) -> list[Figure]:
    took = asyncio.run(listing(bench.site.kubeconfig(), runs))
    return [
        Figure(f"all {NODES:,} nodes and {RUNNING:,} pods listed again and counted", took, "s", 3,
               note="by the executor's own code in a separate process, as after a watch that "
               "the server cannot resume"),
    ]  # fmt: skip


@contextmanager
def a_bench(folder: Path) -> Iterator[Bench]:
    with ControlPlane(folder) as plane, Kwok(plane, folder / "kwok") as kwok:
        made = plane.api.create_all(many_nodes(h100=NODES))
        until_ready(plane.api, [node["metadata"]["name"] for node in made])
        with a_site(plane, durable=True) as site:
            bench = Bench(plane, kwok, site)
            try:
                bench.start()
                yield bench
            finally:
                bench.daemon.stop()


def measured(runs: int) -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="odc-bench-") as folder,
        a_bench(Path(folder)) as bench,
        Seen(bench.plane.api) as seen,
    ):
        yield from resyncs(bench, runs, ", no jobs")
        yield from starts(bench, seen)
        yield from sustained(bench, seen)
        yield from steady(bench)
        yield from resyncs(bench, runs, f", {RUNNING:,} pods run")
        yield from relists(bench, runs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kubernetes", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=3, help="of what is repeated; the median counts"
    )
    setting = (
        f"{cluster_of(NODES)}. Of the load at the end 3 to 5 are theirs; the notes name the other "
        "processes."
    )
    return report(parser, KUBERNETES, setting, lambda options: measured(options.runs))


if __name__ == "__main__":
    sys.exit(main())
