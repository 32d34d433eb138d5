"""grafana/dashboards: generated from the code, and as users of Grafana expect them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.links import DOCS
from grafana.written import HEAD, MONITORING, written
from tests.support.fakes.dcgm import COUNTERS
from tests.support.harness.boards import (
    GRAFANA,
    boards,
    filled,
    groups,
    metrics_in,
    panels,
    questions,
)
from tests.support.harness.prometheus import Prometheus, QueryRefused, needs_prometheus

PLAIN = {"table", "heatmap", "row"}
"""Panels whose units are those of their columns or of their axis."""
UNITS = {
    "_seconds": "s", "_ratio": "percentunit", ":ratio": "percentunit", "_bytes": "bytes",
    ":bytes": "bytes", ":watts": "watt",
}  # fmt: skip
SHIPPED = {
    "odc-capacity", "odc-queue", "odc-users", "odc-job", "odc-dev-servers", "odc-scheduler",
    "odc-gpus",
}  # fmt: skip


@pytest.mark.parametrize("path", written(), ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == written()[path], "run: python -m grafana"


def test_the_runbook_address_is_defined_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    there = "https://wiki.example.org/odc/docs/operating"
    for module in ("links", "written"):
        monkeypatch.setattr(f"grafana.{module}.DOCS", there)
    texts = {path.name: text for path, text in written().items()}
    assert [name for name, text in texts.items() if DOCS in text] == []
    for name in ("odc.yaml", "gpu.yaml", "rules.yaml", "odc-queue.json"):
        assert f"{there}/runbooks/odc-" in texts[name], name


def test_there_are_no_other_dashboards() -> None:
    assert {path for path in (GRAFANA / "dashboards").iterdir()} == {
        path for path in written() if path.parent.name == "dashboards"
    }
    assert {board["uid"] for board in boards()} == SHIPPED
    assert (MONITORING / "rules.yaml").read_text(encoding="utf-8").startswith(HEAD)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_a_board_is_as_it_should_be(board: dict[str, Any]) -> None:
    assert re.fullmatch(r"odc-[a-z-]{3,30}", board["uid"])
    assert board["id"] is None
    assert board["schemaVersion"] >= 39
    assert board["time"]["from"].startswith("now-")
    assert (board["editable"], board["graphTooltip"], board["timezone"]) == (True, 1, "browser")
    assert "odc" in board["tags"]
    assert "__inputs" not in board, "those are filled in by hand only"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels(board):
        assert panel["type"] in {"timeseries", "stat", "table", "heatmap", "bargauge"}
        assert panel["targets"], panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
        for source in [panel["datasource"], *(t["datasource"] for t in panel["targets"])]:
            assert source["uid"] in ("${datasource}", "${database}")
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_panels_do_not_overlap(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["w"] > 1
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_every_dashboard_variable_is_used(board: dict[str, Any]) -> None:
    variables = {one["name"]: one for one in board["templating"]["list"]}
    text = json.dumps(board)
    queries = json.dumps([panel["targets"] for panel in panels(board)]) + json.dumps(
        [one.get("query") for one in variables.values()]
    )
    for name, one in variables.items():
        assert re.search(rf"\$\{{?{name}\b", text), f"{name} is not used"
        if one["type"] == "query" and one["multi"]:
            assert (one["includeAll"], one["allValue"]) == (True, ".*")
            assert re.search(rf'=~\\+"\${name}\\+"|~ \'\^\(\${{{name}:pipe}}\)', queries), name
        if one["type"] == "datasource":
            assert one["query"] in ("prometheus", "grafana-postgresql-datasource")
    for panel in panels(board):
        for target in panel["targets"]:
            filled(target.get("expr", target.get("rawSql")))
    assert ("database" in variables) == any("rawSql" in q for q in re.findall("rawSql", text))


def test_rates_use_the_interval_of_grafana() -> None:
    """Or over a fixed time of an hour or more, if the panel shows that."""
    for question in questions():
        for span in re.findall(r"(?:rate|increase)\([^\[]*\[([^\]]+)\]", question.text):
            assert span in ("$__rate_interval", "$__range") or span.endswith("h"), str(question)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board["uid"])
def test_units_are_set(board: dict[str, Any]) -> None:
    for panel in panels(board):
        unit = panel["fieldConfig"]["defaults"].get("unit")
        if panel["type"] in PLAIN:
            continue
        assert unit, panel["title"]
        for target in panel["targets"]:
            expression = target.get("expr", "")
            if "count(" in expression or "* 3600" in expression or "* 60" in expression:
                continue
            for name in metrics_in(filled(expression)):
                stem = re.sub(r"(_bucket|_by_job|:by_job|:avg_by_job)$", "", name)
                for ending, expected in UNITS.items():
                    if stem.endswith(ending):
                        assert unit == expected, f"{panel['title']}: {name} in {unit}"


@needs_prometheus
def test_prometheus_accepts_every_query(tmp_path: Path) -> None:
    """One without any data, so that this is quick; test_live.py asks one with data."""
    with Prometheus(tmp_path / "prometheus") as prometheus:
        for question in questions():
            if not question.sql:
                prometheus.query(filled(question.text))
        for board in boards():
            for one in board["templating"]["list"]:
                if one["type"] == "query":
                    match = re.fullmatch(r"label_values\((.+), \w+\)", one["query"]["query"])
                    assert match is not None
                    prometheus.query(filled(match[1]))
        with pytest.raises(QueryRefused):
            prometheus.query("sum by (x (odcd_jobs)")


def test_links_lead_to_pages_that_are_there() -> None:
    found: set[str] = set()
    for board in boards():
        text = json.dumps(board)
        found |= set(re.findall(rf'"{DOCS}/([^"]+)"', text))
        assert '"${odc}/' in text
    assert found
    for name in found:
        assert (GRAFANA.parent / "docs" / "operating" / name).exists(), name


def test_every_metric_in_a_board_is_exported() -> None:
    """According to the reference, which is generated from the code; tests/grafana/test_live.py asks
    a daemon."""
    page = (GRAFANA.parent / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    exported: set[str] = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.M):
        endings = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        exported |= {name + ending for ending in endings}
    own = {rule["record"] for group in groups() for rule in group["rules"] if "record" in rule}
    library = {"ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes"}
    known = exported | own | library | set(COUNTERS) | {"kube_pod_labels"}
    texts = {str(q): filled(q.text) for q in questions() if not q.sql}
    texts |= {r.get("alert", r.get("record")): r["expr"] for g in groups() for r in g["rules"]}
    lacking = {where: sorted(metrics_in(text) - known) for where, text in texts.items()}
    assert {where: names for where, names in lacking.items() if names} == {}


def test_metrics_are_read_out_of_expressions() -> None:
    expression = (
        'sum by (le, partition) (rate(odcd_a_bucket{x=~"odcd_no|b"}[5m])) / on (node)'
        ' group_left (y) label_replace(odcd:b:c, "odcd_no", "$1", "odcd_no", "(.+)") * 1e3'
        " and time() > bool kube_x offset 5m"
    )
    assert metrics_in(expression) == {"odcd_a_bucket", "odcd:b:c", "kube_x"}


def test_provisioned_sources_and_folders_exist() -> None:
    folder = GRAFANA / "provisioning"
    sources = yaml.safe_load((folder / "datasources" / "odc.yaml").read_text())["datasources"]
    assert {one["uid"]: one["type"] for one in sources} == {
        "odc-prometheus": "prometheus", "odc-postgresql": "grafana-postgresql-datasource",
    }  # fmt: skip
    assert all("$" in str(one["url"]) for one in sources), "addresses come from the environment"
    assert "password: $" in (folder / "datasources" / "odc.yaml").read_text()
    [provider] = yaml.safe_load((folder / "dashboards" / "odc.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["folder"] == "odc"
