"""/metrics follows the conventions of Prometheus, also on an empty database."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from odcd.metrics import Metrics
from odcd.metrics.families import CLUSTER, JOB_INFO, MEASURES
from odcd.metrics.lines import Lines
from odcd.metrics.process import negotiate
from odcd.metrics.sample import Cluster, Row, Sample
from tests.support.builders.jobs import BOB, Queue, a_cluster
from tests.support.harness.database import Sql

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.7,text/plain;version=0.0.4;q=0.3"
OF_PROCESS = {
    "odcd_scheduler_cycle_seconds", "odcd_forecast_seconds", "odcd_leader", "odcd_database_up",
    "odcd_database_request_seconds", "odcd_backend_errors", "odcd_backend_request_seconds",
    "odcd_http_requests", "odcd_http_request_duration_seconds", "odcd_event_clients",
    "odcd_build", "odcd_listener_up", "process_cpu_seconds", "process_resident_memory_bytes",
    "python_info", "python_gc_collections",
}  # fmt: skip
STATES = {
    "odcd_jobs": ("state", {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}),
    "odcd_jobs_finished": ("state", {
        "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "DEADLINE", "BOOT_FAIL",
    }),
    "odcd_reservations": ("status", {
        "pending", "queued", "preparing", "active", "expired", "cancelled", "failed",
    }),
    "odcd_disks": ("state", {"available", "in-use", "backing-up", "trouble", "deleted"}),
    "odcd_snapshots": ("state", {"wanted", "pending", "completed", "error", "deleting"}),
    "odcd_orphans": ("kind", {"pod", "volume", "snapshot"}),
}  # fmt: skip


def rows(sql: Sql, queue: Queue) -> list[Row]:
    found = [
        (row["metric"], row["labels"], row["value"])
        for name in MEASURES
        for row in sql.rows(f"select * from odc.{name}($1)", queue.now)
    ]
    sampled = ("odcd_sample_timestamp_seconds", "odcd_sample_seconds")
    return [*found, *((name, (), 1.0) for name in sampled)]


def exposed(sql: Sql, accept: str | None) -> tuple[str, str]:
    """The whole of a leader, and its media type."""
    queue = Queue(sql)
    info = sql.value("select odc.render_job_info('{}', '{}')")
    metrics = Metrics()
    metrics.answered("GET", "/v1/jobs/{id}", 200, 0.003)
    metrics.queried("list_jobs", 0.001)
    with metrics.backend("runner").asking("start"):
        pass
    body, media_type = metrics.expose(accept, Sample(rows(sql, queue), info))
    return body.decode(), media_type


def test_the_accept_header_selects_openmetrics_or_plain_text(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    queue.submit(gpus=1)
    queue.start()
    text, media_type = exposed(sql, OPENMETRICS)
    assert media_type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    families = list(text_string_to_metric_families(text))
    names = {family.name for family in families}
    assert len(names) == len(families), "each family is exported once"
    plain, media_type = exposed(sql, None)
    assert media_type == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in plain
    ours = {family.name for family in plain_families(plain)}
    assert {name.removesuffix("_info") for name in ours} >= {n.removesuffix("_info") for n in names}
    assert "_created" not in text + plain


@pytest.mark.parametrize("accept", [OPENMETRICS, None])
def test_every_documented_metric_is_exported_on_an_empty_database(
    sql: Sql, accept: str | None
) -> None:
    text, _ = exposed(sql, accept)
    described = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    promised = {family.name for family in (*CLUSTER, JOB_INFO)}
    if accept is not None:
        promised = {name.removesuffix("_total") for name in promised}
        assert described >= OF_PROCESS - {"python_info"}
    assert described >= promised


def test_every_state_is_exported_at_zero(sql: Sql) -> None:
    text, _ = exposed(sql, OPENMETRICS)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, (label, states) in STATES.items():
        samples = families[name].samples
        assert {sample.labels[label] for sample in samples} == states, name
        assert {sample.value for sample in samples} == {0}, name


def test_promtool_accepts_the_metrics(sql: Sql) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    a_cluster(sql, h100=2, l4=1)
    queue = Queue(sql)
    queue.submit(gpus=8)
    queue.submit(array="0-9", gpus=8)
    queue.start()
    text, _ = exposed(sql, None)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_job_ids_are_in_the_table_of_live_members_alone(sql: Sql) -> None:
    sql.execute("select setval('odc.job_id_seq', 7000000)")
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    jobs = [queue.submit(gpus=1, name="secret-name"), queue.submit(BOB, gpus=1)]
    queue.start()
    queue.submit(gpus=8)
    queue.start()
    text, _ = exposed(sql, OPENMETRICS)
    lines = [line for line in text.splitlines() if re.search(r"700000\d", line)]
    assert len(lines) == len(jobs)
    assert all(line.startswith("odcd_job_info{") for line in lines)
    assert "secret-name" not in text


def test_a_sample_is_rendered_once_for_each_format() -> None:
    sample = Sample([], "")
    rendered: list[Any] = []

    def encoder(collector: Any) -> bytes:
        rendered.append(collector)
        return b"x\n"

    for _ in range(3):
        assert sample.render(encoder, "text/plain") == b"x\nx\n"
    assert len(rendered) == 2  # the cluster, and the head of odcd_job_info
    for number in range(50):
        sample.render(encoder, f"text/plain; {number}")
    assert len(sample._rendered) < 10, "what comes from outside must not fill the memory"


@pytest.mark.parametrize("accept", [OPENMETRICS, None])
def test_lines_are_those_of_the_client_library(accept: str | None) -> None:
    metrics = Metrics()
    encoder, _ = negotiate(accept)
    lines = Lines(encoder)
    for number in range(1, 4):
        metrics.answered("GET", f'/v1/{number % 3}"\\\n', 200, number)
        metrics.answered("GET", "/v1/jobs", 200 + number, 0.001 * number)
        metrics.queried("list_jobs", 1e-9 if number == 1 else 1e9)
        metrics.leading(number == 2)
        rendered = lines.render(metrics.registry).decode().splitlines()
        same = encoder(metrics.registry).decode().splitlines()
        # A moment later the process has used more of the machine.
        moving = re.compile(r"(process|python)_\w+(_total|_bytes|_seconds|_fds)")
        pairs = [(a, b) for a, b in zip(rendered, same, strict=True) if a != b]
        assert [pair for pair in pairs if not all(map(moving.match, pair))] == []
        assert len(pairs) < 10


def test_a_histogram_is_in_the_order_that_openmetrics_wants() -> None:
    name = "odcd_job_queue_wait_seconds"
    metrics = [
        (f"{name}_sum", ["b"], 7.0), (f"{name}_bucket", ["b", "+Inf"], 2.0),
        (f"{name}_bucket", ["a", "60"], 0.0), (f"{name}_bucket", ["b", "60"], 1.0),
        (f"{name}_count", ["b"], 2.0), (f"{name}_bucket", ["b", "5"], 1.0),
        (f"{name}_bucket", ["a", "+Inf"], 0.0), (f"{name}_count", ["a"], 0.0),
        (f"{name}_sum", ["a"], 0.0), (f"{name}_bucket", ["a", "5"], 0.0),
    ]  # fmt: skip
    encoder, _ = negotiate(OPENMETRICS)
    text = encoder(Cluster(metrics)).decode()
    buckets = re.findall(r'partition="b"\} (\S+)|le="(\S+)",partition="b"\}', text)
    assert [le or value for value, le in buckets] == ["5.0", "60.0", "+Inf", "2.0", "7.0"]
    list(text_string_to_metric_families(text))  # which refuses any other


def test_a_row_of_an_unknown_family_or_with_wrong_labels_is_an_error() -> None:
    with pytest.raises(KeyError):
        Cluster([("odcd_unheard_of", [], 1.0)])
    with pytest.raises(ValueError, match="argument 2 is"):
        Cluster([("odcd_jobs", ["PENDING"], 1.0)])
