"""The page with a long queue on many nodes: the time until it is drawn, and until it shows a
change.

python -m benchmarks.page [--runs N] [--write]. A cluster of 1,000 nodes with 8,000 GPUs in use and
10,000 pending jobs, without an executor; a real Chromium, and 200 viewers over real sockets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from benchmarks.figures import HEAD, Figure, explained, percentile
from benchmarks.results import PAGE, RESULTS, git, machine, with_section
from odcd.records.node import NodeReport
from tests.support.builders.scene import Scene, scene
from tests.support.harness.browser import CHROMIUM, Tab, chromium
from tests.support.harness.database import shared_server

VIEWERS = 200
BATCH = 500
VIEWS = {"overview": "/", "queue": "/page/queue", "nodes": "/page/nodes", "plan": "/page/plan"}


async def furnish(it: Scene, nodes: int, pending: int) -> None:
    """Every GPU is in use by jobs of two GPUs; the pending jobs wait for them."""
    it.clock.ago = timedelta(minutes=30)
    await it.store.nodes.register(
        0,
        [NodeReport(name=f"gpu-{n:04}", gpu_type="h100", gpus=8, cpus=192, mem_mib=2_000_000,
                    declared=True) for n in range(nodes)],
        it.clock.now(), whole=True,
    )  # fmt: skip
    await _submit(it, nodes * 4, "runs", 2)
    while await it.plan():
        pass
    it.clock.ago = timedelta(0)
    await _submit(it, pending, "waits", 4)
    await it.plan()
    await it.foresee()
    await it.database.execute("analyze")


async def _submit(it: Scene, count: int, name: str, gpus: int) -> None:
    for first in range(0, count, BATCH):
        jobs = [
            {"script": "#!/bin/sh\ntrue\n", "work_dir": "/tmp", "name": f"{name}-{n}",
             "gpus_per_node": gpus, "gpu_type": "h100", "time_limit_s": 3600 * (2 + n % 7)}
            for n in range(first, min(first + BATCH, count))
        ]  # fmt: skip
        await it.ask("POST", "/v1/jobs/batch", {"jobs": jobs})


@contextmanager
def cluster(nodes: int, pending: int) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory() as folder, shared_server(Path(folder)) as server:
        dsn = server.clone()
        with scene(dsn, Path(folder)) as it:
            asyncio.run_coroutine_threadsafe(furnish(it, nodes, pending), it.loop).result(900)
            yield it
        server.drop(dsn)


def served(it: Scene, runs: int) -> list[Figure]:
    """How long the daemon needs for a page, and how many bytes it sends."""
    figures: list[Figure] = []
    cookies = it.call(it.cookies(None))
    with httpx.Client(base_url=it.url, headers={"accept": "text/html"}, cookies=cookies) as client:
        for name, path in VIEWS.items():
            took: list[float] = []
            answer = client.get(path)
            for _ in range(runs):
                time.sleep(0.5)  # longer than rendered pages are cached
                begin = time.perf_counter()
                answer = client.get(path)
                took.append((time.perf_counter() - begin) * 1000)
                assert answer.status_code == 200
            size = int(answer.headers["content-length"]) / 1024
            figures.append(Figure(f"{name}: served", took, "ms", note=f"{size:.0f} KiB, packed"))
    return figures


def painted(it: Scene, runs: int) -> list[Figure]:
    """First contentful paint as Chromium reports it, from the start of the navigation."""
    figures: list[Figure] = []
    with chromium() as browser, Tab(browser) as tab:
        tab.enter(it.call(it.ticket(None)))
        for name, path in VIEWS.items():
            took: list[float] = []
            for _ in range(runs):
                # From another page of the same server, as by a click: no browser process is started
                # for it.
                tab.page.goto(it.url + "/health")
                time.sleep(0.5)
                tab.page.goto(it.url + path)
                paint = None
                while paint is None:
                    paint = tab.page.evaluate(
                        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
                    )
                took.append(paint)
            figures.append(Figure(f"{name}: first paint", took, "ms", 300))
    return figures


class Viewers:
    """Streams of the overview, each on a separate connection, and the time when each received a
    job."""

    def __init__(self, it: Scene, cookies: dict[str, str]) -> None:
        self._it = it
        self._cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._word = b""
        self._received: list[float] = []
        self._open = 0
        self._all_open = asyncio.Event()

    def __enter__(self) -> Viewers:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start(self) -> None:
        self._tasks = [asyncio.create_task(self._look()) for _ in range(VIEWERS)]
        opened = asyncio.create_task(self._all_open.wait())
        done, _ = await asyncio.wait({opened, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # raises here if the viewer was refused
        await asyncio.sleep(3)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._it.port, limit=2**24)
        writer.write(
            b"GET /page/live?of=%%2F&zoom=24h HTTP/1.1\r\n"
            b"Host: 127.0.0.1:%d\r\nCookie: %b\r\n\r\n" % (self._it.port, self._cookie.encode())
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        self._open += 1
        if self._open == VIEWERS:
            self._all_open.set()
        try:
            while piece := await reader.read(65536):
                if self._word and self._word in piece:
                    self._received.append(time.perf_counter())
        finally:
            writer.close()

    def change(self, number: int, waiting: int) -> list[float]:
        """The milliseconds until each viewer shows this many waiting jobs, after one more
        submit."""
        self._word, self._received = f"<b>{waiting:,}</b><span>waiting".encode(), []
        begin = time.perf_counter()
        self._it.call(self._it.ask(
            "POST", "/v1/jobs",
            {"script": "#!/bin/sh\n", "work_dir": "/tmp", "name": f"later-{number}",
             "gpus_per_node": 0, "time_limit_s": 60},
        ))  # fmt: skip
        until = time.monotonic() + 10
        while len(self._received) < VIEWERS and time.monotonic() < until:
            time.sleep(0.005)
        assert len(self._received) == VIEWERS, f"{len(self._received)} of {VIEWERS} received it"
        return [(at - begin) * 1000 for at in self._received]


def changed(it: Scene, runs: int, pending: int) -> list[Figure]:
    cookies = it.call(it.cookies(None))
    firsts: list[float] = []
    lasts: list[float] = []
    with Viewers(it, cookies) as viewers:
        for number in range(runs):
            took = viewers.change(number, pending + number + 1)
            firsts.append(statistics.median(took))
            lasts.append(percentile(took, 1.0))
            time.sleep(2.5)
    return [
        Figure(f"a submit until the median of {VIEWERS} viewers has it", firsts, "ms"),
        Figure(f"a submit until the last of {VIEWERS} viewers has it", lasts, "ms", 500),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    figures: list[Figure] = []
    with cluster(options.nodes, options.pending) as it:
        figures += served(it, options.runs)
        if CHROMIUM is not None:
            figures += painted(it, options.runs)
        figures += changed(it, options.runs, options.pending)
    rows = [HEAD, *(figure.row() for figure in figures), "", *explained(figures)]
    print("\n".join(rows))
    if options.write:
        new = "\n".join([
            PAGE, "",
            f"`python -m benchmarks.page`, commit {git('log', '-1', '--format=%h')}: "
            f"{options.nodes:,} nodes with all {options.nodes * 8:,} GPUs in use, "
            f"{options.pending:,} pending jobs; Chromium, {VIEWERS} viewers, daemon and PostgreSQL "
            f"on one machine: {machine()}.", "", *rows, "",
        ])  # fmt: skip
        RESULTS.write_text(with_section(RESULTS.read_text("utf-8"), PAGE, new))
    print(json.dumps({figure.what: figure.value for figure in figures}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
