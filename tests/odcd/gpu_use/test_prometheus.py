"""GPU usage from a real Prometheus: both label forms, gaps, resets, MIG instances, old data, and a
Prometheus that is down, slow, or without the data."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import BadRequest
from odcd.executor.kubernetes.naming import Namespaces
from odcd.gpu_use.ended import EndedUse
from odcd.gpu_use.live import LiveUse
from odcd.gpu_use.prometheus import (
    Prometheus,
    PrometheusDown,
    PrometheusFailed,
    PrometheusRefused,
)
from odcd.gpu_use.queries import Labels
from odcd.stores.gpu_use import GpuUseStore
from tests.support.builders.gpus import GpuQueue
from tests.support.builders.prometheus_past import Scraped, make_blocks
from tests.support.fakes.dcgm import Gpu, dcgm_text
from tests.support.harness.database import Sql
from tests.support.harness.prometheus import Exporter, Scrape, needs_prometheus
from tests.support.harness.prometheus import Prometheus as RealPrometheus

LONG_AGO_S = 3 * 86_400
KEPT = timedelta(days=15)


class Site:
    """A database whose jobs ran at times that the test chooses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.now = datetime.fromtimestamp(int(time.time()), UTC)

    def ended(self, *, ago_s: float, held_s: float, gpus: int = 2) -> int:
        """A job that ran this long and ended this long ago."""
        with Sql(self.url) as sql:
            queue = GpuQueue(sql, now=self.now - timedelta(seconds=ago_s + held_s))
            job = queue.run(gpus_per_node=gpus)
            queue.move(held_s)
            queue.end(job)
        return job

    def use(self, job: int, attempt: int = 1) -> dict[str, Any]:
        with Sql(self.url) as sql:
            return sql.row(
                "select * from odc.gpu_use where job_id = $1 and attempt = $2", job, attempt
            )

    def settle(
        self, url: str, *, labels: Labels | None = None, scrape_s: float = 30,
        errors: list[str] | None = None, kept: timedelta = KEPT, **fields: Any,
    ) -> int:  # fmt: skip
        """Once, as the leader; returns the number of stored attempts."""

        async def work(store: GpuUseStore) -> int:
            async with a_client(url, errors, **fields) as prometheus:
                ended = EndedUse(
                    0, store, prometheus, labels or Labels(Namespaces()), SystemClock(),
                    scrape=timedelta(seconds=scrape_s), kept=kept,
                )  # fmt: skip
                return await ended.settle_once()

        return self.run(work)

    def run(self, work: Callable[[GpuUseStore], Awaitable[int]]) -> int:
        async def connected() -> int:
            async with Database(self.url, size=2) as database:
                return await work(GpuUseStore(database))

        return asyncio.run(connected())


class Failures:
    """Implements odcd.call_metrics.Calls: records failed calls."""

    def __init__(self, failed: list[str]) -> None:
        self._failed = failed

    def took(self, operation: str, seconds: float) -> None:
        pass

    def failed(self, operation: str) -> None:
        self._failed.append(operation)

    @contextmanager
    def asking(self, operation: str, **_: object) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.failed(operation)
            raise


@asynccontextmanager
async def a_client(
    url: str, errors: list[str] | None = None, **fields: Any
) -> AsyncGenerator[Prometheus]:
    client = Prometheus(url, calls=Failures(errors if errors is not None else []), **fields)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
def site(database_url: str) -> Site:
    return Site(database_url)


def cards(job: int, util: float = 50, **fields: Any) -> list[Gpu]:
    return [
        Gpu(
            index=index, node="gpu-1", namespace="gpu-batch", pod=f"odc-{job}-1-0", util=util,
            used_mib=1000 * (index + 1), watts=400, **fields,
        )
        for index in (0, 1)
    ]  # fmt: skip


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Callable[..., RealPrometheus]]:
    """Creates a Prometheus with this past, and starts it."""
    running: list[RealPrometheus] = []

    def start(*scraped: Scraped, **fields: Any) -> RealPrometheus:
        server = RealPrometheus(tmp_path / f"prometheus-{len(running)}", **fields)
        if scraped:
            make_blocks(server.data, scraped)
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


pytestmark = needs_prometheus


@pytest.mark.parametrize("honor_labels", [False, True])
def test_gpu_usage_from_days_ago_is_stored(
    site: Site, real: Callable[..., RealPrometheus], honor_labels: bool
) -> None:
    """Two hours, the first at 100 %, the second at 20 %; then another pod has the GPUs."""
    job = site.ended(ago_s=LONG_AGO_S, held_s=7200)
    other = job + 1
    begin_s = (site.now - timedelta(seconds=LONG_AGO_S + 7200)).timestamp()

    def at(passed_s: float) -> list[Gpu]:
        joules = 400 * passed_s
        if passed_s >= 7200:
            return cards(other, 90, energy_mj=int(1e6 + joules * 1000))
        util = 100 if passed_s < 3600 else 20
        return cards(job, util, energy_mj=int(1e6 + joules * 1000))

    server = real(
        Scraped(cards_at=at, begin_s=begin_s, end_s=begin_s + 9000, honor_labels=honor_labels)
    )
    assert site.settle(server.url) == 1
    use = site.use(job)
    assert use["covered_s"] == pytest.approx(7200, rel=0.01)
    assert use["busy_gpu_s"] == pytest.approx(2 * (3600 + 720), rel=0.01)
    assert (use["mem_peak_mib"], use["gave_up"]) == (2000, None)
    assert use["energy_j"] == pytest.approx(2 * 400 * 7200, rel=0.02)
    assert use["gpu_uuids"] == sorted(gpu.uuid for gpu in cards(job))
    # It is stored forever, even if Prometheus returns other values later.
    assert site.settle(server.url) == 0


def test_gaps_are_recognized_and_a_counter_may_reset(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    """One hour of the three has no scrape, and then the driver was loaded again."""
    job = site.ended(ago_s=600, held_s=10_800)
    begin_s = (site.now - timedelta(seconds=11_400)).timestamp()

    def at(passed_s: float) -> list[Gpu] | None:
        if 3600 <= passed_s < 7200:
            return None
        since = passed_s if passed_s < 3600 else passed_s - 7200
        return cards(job, 50, energy_mj=int(400_000 * since))

    server = real(Scraped(cards_at=at, begin_s=begin_s, end_s=begin_s + 10_800))
    site.settle(server.url)
    use = site.use(job)
    assert use["covered_s"] == pytest.approx(7200, abs=120)
    assert use["busy_gpu_s"] == pytest.approx(7200, abs=120)
    assert use["energy_j"] == pytest.approx(2 * 2 * 400 * 3600, rel=0.02)


def test_usage_is_measured_with_few_counters_and_with_slices(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    """For a slice only the usage of its engine is known; energy is computed from the power."""
    job = site.ended(ago_s=600, held_s=3600, gpus=1)
    begin_s = (site.now - timedelta(seconds=4200)).timestamp()
    [card, _] = cards(job, 25, instance="3")
    server = real(
        Scraped(
            cards_at=lambda _: [card], begin_s=begin_s, end_s=begin_s + 3600,
            without=("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_FB_USED"),
        )
    )  # fmt: skip
    site.settle(server.url)
    use = site.use(job)
    assert use["busy_gpu_s"] == pytest.approx(900, rel=0.01)
    assert (use["mem_peak_mib"], use["energy_j"]) == (None, pytest.approx(400 * 3600, rel=0.01))


@pytest.mark.long
def test_many_attempts_share_one_query_with_their_own_times(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    jobs = [site.ended(ago_s=4000 - 100 * n, held_s=600 + n, gpus=1) for n in range(25)]
    begin_s = (site.now - timedelta(seconds=6000)).timestamp()
    scraped = [
        Scraped(
            cards_at=lambda _, job=job, n=n: [
                Gpu(index=n, node="gpu-1", namespace="gpu-dev", pod=f"odc-{job}-1-0", util=4 * n)
            ],
            begin_s=begin_s, end_s=begin_s + 6000,
        )
        for n, job in enumerate(jobs)
    ]  # fmt: skip
    server = real(*scraped)
    assert site.settle(server.url) == 25
    for n, job in enumerate(jobs):
        use = site.use(job)
        assert use["busy_gpu_s"] == pytest.approx((600 + n) * n * 4 / 100, rel=0.01), n
        assert use["covered_s"] == pytest.approx(600 + n, rel=0.01)


def test_series_of_another_cluster_in_the_same_prometheus_are_ignored(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    job = site.ended(ago_s=500, held_s=3600)
    begin_s = (site.now - timedelta(seconds=4100)).timestamp()
    server = real(Scraped(cards_at=lambda _: cards(job), begin_s=begin_s, end_s=begin_s + 3600))
    other = Labels(Namespaces(), [("cluster", "b")])
    elsewhere = Labels(Namespaces(batch="other", dev="places"))
    for labels in (other, elsewhere):
        # It may still appear, so nothing is given up yet.
        assert site.settle(server.url, labels=labels) == 0
        with Sql(site.url) as sql:
            sql.execute("update odc.gpu_use set again_at = null")
    assert site.settle(server.url) == 1


def test_missing_series_are_given_up_with_a_reason(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    unseen = site.ended(ago_s=3600, held_s=3600)
    short = site.ended(ago_s=3600, held_s=20)
    server = real()
    assert site.settle(server.url) == 2
    assert site.use(unseen)["gave_up"] == "Prometheus has no DCGM series of its GPUs"
    assert site.use(short)["gave_up"] == "it ran too briefly to be measured"


def test_a_prometheus_that_is_down_is_retried_until_its_retention_ends(site: Site) -> None:
    old = site.ended(ago_s=20 * 86_400, held_s=3600)
    job = site.ended(ago_s=3600, held_s=3600)
    errors: list[str] = []
    for _ in range(2):
        with pytest.raises(PrometheusDown, match="cannot be reached"):
            site.settle("http://127.0.0.1:1", errors=errors)
    assert errors == ["ended", "ended"]
    assert site.use(job)["stored_at"] is None
    assert site.use(old)["gave_up"] == "Prometheus was not reached in the 15 days it keeps"


@pytest.mark.parametrize(
    "body",
    [
        None,
        '{"status":"error","errorType":"timeout","error":"it is busy"}',
        '{"status":"error","errorType":"execution","error":"a store is away"}',
        '{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["a store"]}',
    ],
    ids=["hangs up", "is busy", "lacks a store", "answers in part"],
)
def test_an_outage_of_prometheus_loses_no_figures(site: Site, body: str | None) -> None:
    """Both ended long ago: odc was down for a while, and queries everything at once."""
    jobs = [site.ended(ago_s=7200, held_s=600), site.ended(ago_s=3600, held_s=600)]

    async def fails(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if body is not None:
            writer.write(http(body, "503 Service Unavailable"))
        await writer.drain()
        writer.transport.close()

    async def work(store: GpuUseStore) -> int:
        async with await asyncio.start_server(fails, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with a_client(url) as client:
                ended = EndedUse(
                    0, store, client, Labels(Namespaces()), SystemClock(),
                    scrape=timedelta(seconds=30), kept=KEPT,
                )  # fmt: skip
                return await ended.settle_once()

    assert site.run(work) == 0
    for job in jobs:
        use = site.use(job)
        assert (use["stored_at"], use["gave_up"]) == (None, None)
        assert use["again_at"] > site.now + timedelta(minutes=30)


@pytest.mark.long
@pytest.mark.parametrize("limit", [4000, 500])
def test_a_query_too_large_for_prometheus_is_sent_with_fewer_samples(
    site: Site, real: Callable[..., RealPrometheus], limit: int
) -> None:
    """One attempt has more samples than Prometheus takes in; the others do not wait for it."""
    dear = site.ended(ago_s=700, held_s=80_000)
    cheap = [site.ended(ago_s=700, held_s=100 + n) for n in range(3)]
    begin_s = (site.now - timedelta(seconds=80_700)).timestamp()

    def at(job: int, passed_s: float) -> list[Gpu]:
        return cards(job, 80 if passed_s < 40_000 else 0, energy_mj=int(4e5 * passed_s))

    server = real(
        Scraped(cards_at=partial(at, dear), begin_s=begin_s, end_s=begin_s + 80_000),
        *(
            Scraped(cards_at=partial(at, job), begin_s=begin_s + 79_000, end_s=begin_s + 80_000)
            for job in cheap
        ),
        options=[f"--query.max-samples={limit}"],
    )
    assert site.settle(server.url) == 4
    use = site.use(dear)
    if limit == 4000:
        assert use["gave_up"] is None
        assert use["covered_s"] == pytest.approx(80_000, rel=0.01)
        assert use["busy_gpu_s"] == pytest.approx(2 * 32_000, rel=0.01)
        assert use["energy_j"] == pytest.approx(2 * 400 * 80_000, rel=0.02)
    else:
        assert "too many samples" in use["gave_up"]
    assert [site.use(job)["gave_up"] for job in cheap] == [None] * 3
    assert all(site.use(job)["covered_s"] > 90 for job in cheap)


@pytest.mark.long
def test_running_jobs_are_sampled_with_one_query(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    """And once, though two scrapes, one of each label form, have it."""
    with Sql(site.url) as sql:
        queue = GpuQueue(sql, now=site.now - timedelta(seconds=60))
        busy, rests = queue.run(), queue.run()
    there = [*cards(busy, 80), *cards(rests, 1)]
    for index, gpu in enumerate(there):
        gpu.index = index
    # For a MIG instance only the usage of the engine is reported.
    there[0].instance = "3"

    with Exporter(lambda: dcgm_text(there)) as exporter:
        own = {"namespace": "monitoring", "pod": "dcgm-exporter-x"}
        scrapes = [
            Scrape(job=f"dcgm-{honor}", targets=[exporter.target], honor_labels=honor, labels=own)
            for honor in (False, True)
        ]
        server = real(scrapes=scrapes)
        server.until(lambda: len(server.query("DCGM_FI_DEV_FB_USED")) == 8, "both have scraped")

        async def work(store: GpuUseStore) -> int:
            async with a_client(server.url) as client:
                live = LiveUse(
                    0, store, client, Labels(Namespaces()), SystemClock(),
                    scrape=timedelta(seconds=1), idle_ratio=0.05,
                )  # fmt: skip
                return await live.look_once()

        assert site.run(work) == 2
    with Sql(site.url) as sql:
        rows = sql.rows("select * from odc.gpu_now order by job_id")
        assert [row["job_id"] for row in rows] == [busy, rests]
        assert [row["util_ratio"] for row in rows] == [pytest.approx(0.8), pytest.approx(0.01)]
        assert [row["mem_used_mib"] for row in rows] == [3000, 3000]
        assert [row["idle_since"] is None for row in rows] == [True, False]
        assert sql.value("select count(*) from odc.gpu") == 4


def test_jobs_of_one_machine_are_queried_by_the_exporter_label(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    """Two attempts have one id: their times distinguish them."""
    job = site.ended(ago_s=600, held_s=1000, gpus=1)
    begin_s = (site.now - timedelta(seconds=4000)).timestamp()

    def at(passed_s: float) -> list[Gpu]:
        util = 90 if passed_s < 2400 else 10
        return [Gpu(index=0, node="box", util=util, hpc_job=str(job))]

    server = real(Scraped(cards_at=at, begin_s=begin_s, end_s=begin_s + 4000))
    assert site.settle(server.url, labels=Labels(None)) == 1
    assert site.use(job)["busy_gpu_s"] == pytest.approx(100, rel=0.02)


def test_an_attempt_does_not_count_the_gpus_of_the_attempt_before(
    site: Site, real: Callable[..., RealPrometheus]
) -> None:
    """It was requeued after half an hour on one GPU, and continues half a minute later on
    another."""
    begin = site.now - timedelta(seconds=4000)
    with Sql(site.url) as sql:
        queue = GpuQueue(sql, now=begin)
        job = queue.run(gpus_per_node=1)
        queue.move(1800)
        queue.requeue(job)
        queue.end(job)
        queue.move(30)
        assert queue.start() == [job]
        queue.began(job)
        queue.move(1000)
        queue.end(job)

    def at(passed_s: float) -> list[Gpu]:
        first = passed_s < 1830
        return [
            Gpu(index=0, node="box", util=90, **({"hpc_job": str(job)} if first else {})),
            Gpu(index=1, node="box", util=20, **({} if first else {"hpc_job": str(job)})),
        ]  # fmt: skip

    begin_s = begin.timestamp()
    server = real(Scraped(cards_at=at, begin_s=begin_s, end_s=begin_s + 3000))
    assert site.settle(server.url, labels=Labels(None)) == 2
    uuids = [card.uuid for card in at(0)]
    assert [site.use(job, n)["gpu_uuids"] for n in (1, 2)] == [uuids[:1], uuids[1:]]
    assert site.use(job, 2)["busy_gpu_s"] == pytest.approx(200, rel=0.1)


# -- the client ----------------------------------------------------------------------------------


class Answers:
    """A server that gives the set answers, and records the requests."""

    def __init__(self, answer: bytes, *, delay_s: float = 0) -> None:
        self.answer = answer
        self.delay_s = delay_s
        self.request = b""
        self.over = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.request = await reader.readuntil(b"\r\n\r\n")
            await SystemClock().sleep(self.delay_s)
            writer.write(self.answer)
            await writer.drain()
            writer.write_eof()
            await reader.read()
        except (OSError, EOFError, NotImplementedError):
            pass
        finally:
            writer.transport.abort()
            self.over.set()

    def ask(self, tls: trustme.CA | None = None, **fields: Any) -> list[Any]:
        async def work() -> list[Any]:
            context = None
            if tls is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                tls.issue_cert("127.0.0.1").configure_cert(context)
            server = await asyncio.start_server(self, "127.0.0.1", 0, ssl=context)
            async with server:
                port = server.sockets[0].getsockname()[1]
                url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/prom"
                try:
                    async with a_client(url, **fields) as client:
                        return await client.query("live", "up", datetime.now(UTC))
                finally:
                    if self.request:
                        await self.over.wait()
                    await SystemClock().sleep(0.05)

        return asyncio.run(work())


def http(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


ONE = (
    '{"status":"success","data":{"resultType":"vector","result":['
    '{"metric":{"pod":"a"},"value":[1,"2.5"]},{"metric":{},"value":[1,"NaN"]}]}'
    ',"warnings":["PromQL warning: odd"],"infos":["PromQL info: metric might not be a counter"]}'
)


def test_a_request_has_the_token_of_now_and_the_path(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    server = Answers(http(ONE))
    [sample] = server.ask(token=token)
    assert (sample.labels, sample.value) == ({"pod": "a"}, 2.5)
    assert server.request.startswith(b"POST /prom/api/v1/query HTTP/1.1\r\n")
    assert b"Authorization: Bearer s3cret\r\n" in server.request
    token.unlink()
    with pytest.raises(PrometheusDown, match="token cannot be read"):
        server.ask(token=token)
    token.write_text("two\nlines")
    with pytest.raises(PrometheusDown, match="no token"):
        server.ask(token=token)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (http('{"status":"error","errorType":"bad_data","error":"parse"}', "400 Bad Request"),
         PrometheusRefused, "refused: parse"),
        (http('{"status":"error","errorType":"timeout","error":"slow"}', "503 Busy"),
         PrometheusFailed, "slow"),
        (http('{"status":"error","errorType":"execution","error":"no store"}', "422 No"),
         PrometheusFailed, "no store"),
        (http('{"status":"error","errorType":"execution","error":"too many samples"}', "422 No"),
         PrometheusRefused, "too many"),
        (http('{"status":"error","errorType":"unavailable","error":"starting"}', "503 Busy"),
         PrometheusDown, "starting"),
        (http("<html>log in</html>"), PrometheusDown, "something other than figures"),
        (http("no", "401 Unauthorized"), PrometheusDown, "HTTP status 401"),
        (b"SSH-2.0-x\r\n\r\n", PrometheusDown, "an answer that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", PrometheusFailed, "in the middle"),
        (b"", PrometheusFailed, "in the middle"),
        (http('{"status":"success","data":{"resultType":"scalar","result":[]}}'),
         PrometheusRefused, "scalar"),
        (http(ONE.replace("PromQL warning: odd", "remote_read: store-1 is\\n away")),
         PrometheusFailed, "is partial: remote_read: store-1 is away"),
        (http("x" * 5000), PrometheusRefused, "more than 1000 bytes"),
    ],
)  # fmt: skip
def test_invalid_answers_are_errors(answer: bytes, error: type[Exception], text: str) -> None:
    errors: list[str] = []
    with pytest.raises(error, match=text) as raised:
        Answers(answer).ask(errors=errors, max_bytes=1000)
    assert raised.type is error
    assert errors == ["live"]


def test_a_warning_of_prometheus_is_logged_once_and_the_answer_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "odcd.gpu_use")
    answers = Answers(http(ONE))

    async def work() -> None:
        async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with a_client(url) as client:
                for _ in range(2):
                    assert len(await client.query("live", "up", datetime.now(UTC))) == 1

    asyncio.run(work())
    records = [r for r in caplog.records if r.message == "gpu_use.remark"]
    assert {(r.levelname, r.__dict__["why"]) for r in records} == {
        ("WARNING", "PromQL warning: odd"), ("DEBUG", "PromQL info: metric might not be a counter"),
    }  # fmt: skip
    assert len(records) == 2


@pytest.mark.long
def test_a_query_has_a_timeout() -> None:
    with pytest.raises(PrometheusDown, match=r"within 0\.2 s"):
        Answers(http(ONE), delay_s=2).ask(timeout_s=0.2)


def test_a_prometheus_with_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    authority = trustme.CA()
    server = Answers(http(ONE))
    with pytest.raises(PrometheusDown, match="cannot be trusted"):
        server.ask(authority)
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    assert len(server.ask(authority, ca=ca)) == 1
    with pytest.raises(PrometheusDown, match="No such file"):
        server.ask(authority, ca=tmp_path / "none")


@pytest.mark.parametrize(
    "text", ["prometheus:9090", "ftp://p", "http://p:0", "http://u:p@h", "http://h/a?b", "http://"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="ODC_PROMETHEUS_URL"):
        Prometheus(text)


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(BadRequest) as raised:
        Prometheus("http://odc:s3@cret@h:9090")
    assert "cret" not in raised.value.message
    assert "//...@h:9090" in raised.value.message
