"""Every panel, rule and alert, evaluated by a real Prometheus that scrapes a live odcd with running
jobs, and exporters of GPUs."""

from __future__ import annotations

import http.client
import json
import pickle
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odcd.database.pool import close, connect
from odcd.home.database_access import with_database
from tests.support.fakes.dcgm import COUNTERS, Gpu, dcgm_text
from tests.support.harness.boards import (
    Question,
    boards,
    filled,
    groups,
    metrics_in,
    questions,
    rule_files,
    rules,
)
from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import Odc, new_odc
from tests.support.harness.prometheus import Exporter, Prometheus, Scrape, needs_prometheus

pytestmark = [needs_prometheus, pytest.mark.long]

NO_PREDICTION = "no job with a predicted start has started"
EMPTY = {
    # Did not occur in this test.
    "odc-capacity: Nodes that start no jobs": "all nodes are up",
    "odc-queue: Coverage of expected starts, last 7 days": NO_PREDICTION,
    "odc-queue: Share of jobs started within their expected interval": NO_PREDICTION,
    "odc-queue: Error and width of expected starts A": NO_PREDICTION,
    "odc-queue: Error and width of expected starts B": NO_PREDICTION,
    "odc-queue: Error and width of expected starts C": NO_PREDICTION,
    "odc-queue: Accuracy by day and by cause of the prediction": NO_PREDICTION,
    "odc-queue: Requeued and preempted per hour B": "no job was preempted",
    "odc-scheduler: Firing alerts": "nothing fires, see below",
    "odc-scheduler: Prometheus errors per second": "odcd asks no Prometheus here",
    "odc-scheduler: Standby lag": "there is no standby",
    "odc-users: Idle time of dev servers": "none is idle",
    "odc-dev-servers: Disks": "disks are made in a cloud",
    "odc-users: GPU usage of ended jobs": "there are none to ask on this machine",
    "odc-users: Unused GPU hours by user": "likewise",
    # Rules that look back for longer than this test lasts: tests/grafana/rules has them.
    "odc-users: GPUs unused for 15 minutes, according to DCGM": "looks 15 minutes back",
}
"""Panels without data here, and why."""
NOT_HERE = {
    "odcd:gpus_idle:by_job": "looks 15 minutes back: tests/grafana/rules",
    "odcd:gpu_pod:join": "there are no pods on one machine: test_join.py",
}
"""Rules without data here, and why."""
PATIENCE_S = 60
"""For a panel's data, on a machine that is busy."""
OTHERS = {"ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Of Prometheus, and of the library's own collectors."""


@dataclass(frozen=True)
class Stack:
    odc: Odc
    prometheus: Prometheus
    job: int
    """Runs on GPUs that are watched."""
    metrics: str
    """The metrics of odcd as text."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with ExitStack() as cleanup:
        odc = cleanup.enter_context(new_odc())
        address = f"127.0.0.1:{free_port()}"
        odc.up("--listen", address, "--node", "n[1-2]=h100:8x64", "--node", "l1=l4:4x32")
        job, other = _work(odc)
        cards = cleanup.enter_context(Exporter(lambda: _cards(job)))
        labelled = cleanup.enter_context(Exporter(lambda: _labelled(other)))
        scrapes = [
            Scrape(job="odcd", targets=[address], honor_labels=True),
            Scrape(job="dcgm", targets=[cards.target], labels={"pod": "dcgm-1", "namespace": "m"}),
            Scrape(job="dcgm-honest", targets=[labelled.target], honor_labels=True),
        ]
        prometheus = cleanup.enter_context(
            Prometheus(tmp_path_factory.mktemp("p"), scrapes=scrapes, rules=rule_files(), every_s=1)
        )
        prometheus.until(lambda: set(prometheus.targets().values()) == {"up"}, "all are scraped")
        prometheus.until(
            lambda: prometheus.query("odcd_gpus_forecast"), "the forecast was measured"
        )
        prometheus.until(lambda: prometheus.query("odcd:gpu_power:watts_by_job"), "rules were run")
        # Counters are only tested with events that happen during the test.
        odc.wait_for(odc.submit("--wrap", "true"), "COMPLETED")
        time.sleep(12)
        yield Stack(odc, prometheus, job, _metrics(address))


def _work(odc: Odc) -> tuple[int, int]:
    """Jobs that run, wait for GPUs, wait at a limit, succeeded, failed, or were requeued; and a dev
    server."""
    odc.wait_for(odc.submit("-G", "h100:1", "--wrap", "true"), "COMPLETED")
    odc.wait_for(odc.submit("--wrap", "exit 3"), "FAILED")
    job = odc.submit("-G", "h100:2", "--wrap", "sleep 900")
    other = odc.submit("-G", "l4:1", "--wrap", "sleep 900")
    again = odc.submit("-G", "h100:1", "-t", "60", "--wrap", "sleep 900")
    odc.wait_for(again, "RUNNING")
    odc.odcctl("requeue", str(again))
    odc.submit("-N", "2", "--gpus-per-node", "h100:8", "-t", "30", "--wrap", "sleep 900")
    odc.odcctl("qos", "create", "narrow", "--limit", "user.gpus=1", "--limit", "group.gpus=1")
    for _ in range(2):
        odc.submit("--qos", "narrow", "-G", "l4:1", "--wrap", "sleep 900")
    odc.odcctl("reserve", "-t", "h100", "-h", "1", "--json")
    for one in (job, other):
        odc.wait_for(one, "RUNNING")
    return job, other


def _cards(job: int) -> str:
    """A machine with mapping files; its last card has reported a program error."""
    return dcgm_text(
        [
            Gpu(index=0, node="n1", util=90, used_mib=60000, hpc_job=str(job), watts=600),
            Gpu(index=1, node="n1", util=70, used_mib=40000, hpc_job=str(job), watts=500),
            Gpu(index=2, node="n1", xid=31),
        ]
    )


def _labelled(job: int) -> str:
    return dcgm_text([Gpu(index=0, node="l1", util=20, pod_labels={"odc.dev/job-id": str(job)})])


def _metrics(address: str) -> str:
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def known(metrics: str) -> set[str]:
    """The allowed names: of /metrics, of rules, of DCGM."""
    exported: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", metrics, re.M):
        endings = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        exported |= {name + ending for ending in endings}
    own = {rule["record"] for rule in rules("record")}
    return exported | own | set(COUNTERS) | OTHERS


def questions_of(kind: str) -> list[Question]:
    return [question for question in questions() if question.sql == (kind == "sql")]


def test_every_metric_in_panels_and_rules_exists(stack: Stack) -> None:
    names = known(stack.metrics)
    texts = {str(q): filled(q.text) for q in questions_of("prometheus")}
    texts |= {r.get("alert", r.get("record")): r["expr"] for g in groups() for r in g["rules"]}
    wrong = {where: metrics_in(text) - names for where, text in texts.items()}
    assert {where: lacking for where, lacking in wrong.items() if lacking} == {}
    assert metrics_in("sum(odcd_gpus_frree)") - names, "it would be seen"


@pytest.mark.parametrize("question", questions_of("prometheus"), ids=str)
def test_prometheus_returns_data_for_every_panel(stack: Stack, question: Question) -> None:
    text = filled(question.text, {"job_id": str(stack.job)})

    def answer() -> list[dict[str, Any]]:
        found = stack.prometheus.query(text)
        return found if question.instant else found or stack.prometheus.query_range(text, last_s=20)

    if str(question) in EMPTY:
        answer()
    else:
        stack.prometheus.until(answer, f"{question} has data: {text}", PATIENCE_S)


@pytest.mark.parametrize("question", questions_of("sql"), ids=str)
def test_the_report_role_can_run_every_table_query(stack: Stack, question: Question) -> None:
    text = filled(question.text, {"job_id": str(stack.job)})

    async def ask(dsn: str) -> bytes:
        connection = await connect(dsn, name="odc test")
        try:
            await connection.execute("set role odc_report")
            return pickle.dumps([dict(row) for row in await connection.fetch(text)])
        finally:
            await close(connection)

    rows: list[dict[str, Any]] = pickle.loads(with_database(stack.odc.home, None, ask, of=bytes))
    if str(question) not in EMPTY:
        assert rows, text
    if question.panel == "Queue":
        assert {"PENDING", "RUNNING"} <= {row["state"] for row in rows}


def test_exceptions_are_of_panels_that_are_there() -> None:
    assert set(EMPTY) <= {str(question) for question in questions()}
    assert set(NOT_HERE) <= {rule["record"] for rule in rules("record")}


def test_rules_and_alerts_are_evaluated_and_rules_give_data(stack: Stack) -> None:
    prometheus = stack.prometheus
    prometheus.until(
        lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), "all are evaluated"
    )
    found = prometheus.rules()
    assert {rule["name"] for rule in found} == {
        rule.get("alert", rule.get("record")) for rule in rules("record") + rules("alert")
    }
    assert [rule for rule in found if rule["health"] != "ok" or rule.get("lastError")] == []
    for name in {rule["record"] for rule in rules("record")} - set(NOT_HERE):
        prometheus.until(lambda name=name: prometheus.query(name), f"{name} has data")


@pytest.mark.parametrize("alert", rules("alert"), ids=lambda alert: alert["alert"])
def test_every_alert_expression_can_be_evaluated(stack: Stack, alert: dict[str, Any]) -> None:
    stack.prometheus.query(alert["expr"])
    # These have samples only after such an event, or only on Kubernetes.
    there = metrics_in(alert["expr"]) - {
        "odcd_database_replication_lag_seconds", "odcd_eta_coverage_ratio",
        "odcd_reservation_phase_limit_seconds",
    }  # fmt: skip
    stack.prometheus.until(lambda: there <= stack.prometheus.names(), f"{there} have samples")


def test_the_metrics_requested_in_the_bug_report_exist(stack: Stack) -> None:
    """MON-07: depth, waits, phases, failures by reason, and the use of each type."""
    for expression in (
        'sum(odcd_jobs{state="PENDING"})', "sum(odcd_job_queue_wait_seconds_count)",
        "sum(odcd_reservation_phase_seconds_count)",
        'sum(odcd_jobs_finished_total{state="FAILED"})', 'sum(odcd_gpus{state="allocated"})',
    ):  # fmt: skip
        stack.prometheus.until(
            lambda expression=expression: any(v > 0 for v in stack.prometheus.values(expression)),
            expression,
        )


def test_only_the_expected_alert_fires(stack: Stack) -> None:
    """One alert is expected: no exporter reports the GPUs of the dev server and of the job at the
    limit."""

    def firing() -> set[tuple[str, str | None]]:
        found = stack.prometheus.query('ALERTS{alertname=~"Odc.*"}')
        return {(row["metric"]["alertname"], row["metric"].get("missing")) for row in found}

    def missing() -> set[str]:
        found = stack.prometheus.query("odcd:gpu_join_missing")
        return {row["metric"]["node"] for row in found}

    # A late scrape causes others for a moment, but only pending ones.
    stack.prometheus.until(lambda: firing() == {("OdcGpuJoinMissing", "gpu")}, "only that fires")
    stack.prometheus.until(lambda: missing() == {"n1", "l1"}, "those of two nodes are missing")


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_variables_have_values(stack: Stack, board: dict[str, Any]) -> None:
    for one in board["templating"]["list"]:
        if one["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"])
        assert match is not None
        asking = f"group by ({match[2]}) ({filled(match[1])})"
        found = stack.prometheus.until(
            lambda asking=asking: stack.prometheus.query(asking), f"{one['name']} has values"
        )
        assert all(row["metric"][match[2]] for row in found), one["name"]


def test_the_live_job_has_its_gpus(stack: Stack) -> None:
    asking = f'odcd:gpu_utilization:avg_by_job{{job_id="{stack.job}"}}'
    found = stack.prometheus.until(lambda: stack.prometheus.query(asking), "its use is known")
    assert [round(float(row["value"][1]), 2) for row in found] == [0.8]
    job = json.loads(stack.odc.odcctl("show", str(stack.job), "--json").stdout)["jobs"][0]
    assert found[0]["metric"]["user"] == job["user"]
    assert found[0]["metric"]["account"] == job["account"]
    assert Path(stack.odc.home).exists()
