"""grafana/prometheus: rules and alerts, by promtool, and a page for each alert."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from odcctl.reference import contexts
from odcd import commands
from tests.support.harness.boards import GRAFANA, RULES, rules
from tests.support.harness.prometheus import needs_prometheus, promtool

TESTS = Path(__file__).parent / "rules"
RUNBOOKS = GRAFANA.parent / "docs" / "operating" / "runbooks"
DURATIONS = re.compile(r"\d+[smh]")
ASKED_FOR = {
    "OdcQueueOld", "OdcPhaseStuck", "OdcPlannerSilent", "OdcNoLeader", "OdcExpiryLate",
    "OdcOrphans",
    "OdcSnapshotOld", "OdcDiskLockStale", "OdcEtaCoverageOff", "OdcNodeQuarantined", "OdcGpuXid",
    "OdcHeldIdle", "OdcGpuJoinEmpty", "OdcDown",
}  # fmt: skip


@needs_prometheus
@pytest.mark.parametrize("path", sorted(RULES.rglob("*.yaml")), ids=lambda path: path.name)
def test_prometheus_accepts_the_rules(path: Path) -> None:
    assert "SUCCESS" in promtool("check", "rules", path)


@needs_prometheus
@pytest.mark.long
@pytest.mark.parametrize("path", sorted(TESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_promtool_tests_of_the_rules_pass(path: Path) -> None:
    promtool("test", "rules", path)


@needs_prometheus
def test_without_the_newest_sample_two_claims_break_the_join(tmp_path: Path) -> None:
    """This proves that the tests of the join can fail."""
    for name in ("join-odcd.yaml", "gpu.yaml"):
        text = (RULES / "rules" / name).read_text(encoding="utf-8")
        naive = re.sub(
            r"topk by \([a-z_, ]+\) \(1,\s*(.*?)\)(?: \* 0 \+ 1)?\n", r"(\1)\n", text, flags=re.S
        )
        (tmp_path / name).write_text(naive, encoding="utf-8")
    test = (TESTS / "gpu-odcd.yaml").read_text(encoding="utf-8")
    own = tmp_path / "test.yaml"
    own.write_text(test.replace("../../../grafana/prometheus/rules/", ""), encoding="utf-8")
    with pytest.raises(AssertionError, match="many-to-many"):
        promtool("test", "rules", own)


@needs_prometheus
def test_the_configuration_in_the_operator_documentation_is_valid(tmp_path: Path) -> None:
    page = (RUNBOOKS.parent / "monitoring.md").read_text(encoding="utf-8")
    found = re.search(r"^```\n(rule_files:.*?)^```$", page, re.M | re.S)
    assert found is not None
    config = tmp_path / "prometheus.yml"
    config.write_text(found[1].replace("/opt/odc-source", str(GRAFANA.parent)), encoding="utf-8")
    output = promtool("check", "config", config)
    assert output.count("rules found") == 4, output


@pytest.mark.parametrize("alert", rules("alert"), ids=lambda alert: alert["alert"])
def test_an_alert_has_the_information_that_an_operator_needs(alert: dict[str, Any]) -> None:
    """MON-06: each has a page that says what it means, how to look and what to do."""
    name = alert["alert"]
    assert re.fullmatch(r"Odc([A-Z][a-z]+)+", name)
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert DURATIONS.fullmatch(alert["for"])
    notes = alert["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["description"].endswith(".")
    page = "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-") + ".md"
    assert notes["runbook_url"].endswith(f"/docs/operating/runbooks/{page}")
    text = (RUNBOOKS / page).read_text(encoding="utf-8")
    for heading in ("## What it means", "## Look", "## Do"):
        assert heading in text, f"{page} lacks {heading}"
    assert f"[{name}]({page})" in (RUNBOOKS / "README.md").read_text(encoding="utf-8")


def test_every_runbook_belongs_to_an_alert() -> None:
    pages = {path.name for path in RUNBOOKS.glob("*.md")} - {"README.md"}
    named = {alert["annotations"]["runbook_url"].rpartition("/")[2] for alert in rules("alert")}
    assert pages == named
    assert {alert["alert"] for alert in rules("alert")} >= ASKED_FOR


def test_every_alert_is_tested_to_fire_and_not_to() -> None:
    cases = {
        case["name"]
        for path in TESTS.glob("alerts-*.yaml")
        for case in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]
    }
    names = {alert["alert"] for alert in rules("alert")}
    # Some have cases beyond these two.
    assert cases >= names | {f"{name}, not" for name in names}
    assert {case.partition(",")[0] for case in cases} == names


def test_every_recording_rule_is_named_as_rules_are() -> None:
    for rule in rules("record"):
        assert re.fullmatch(r"odcd:[a-z_]+:[a-z_]+|odcd:gpu_join_missing", rule["record"])


def test_commands_of_runbooks_are_there() -> None:
    """A command that does not exist is worse than none at 3 a.m."""
    daemon = {path.stem for path in Path(commands.__path__[0]).glob("*.py")}
    seen = 0
    for page in RUNBOOKS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for verb, rest in re.findall(r"(?<![\w/-])odcctl ([a-z-]+)([^`#|;\n]*)", text):
            known = {
                name
                for context in contexts(verb)
                for param in context.command.get_params(context)
                for name in param.opts
            }
            named = {word for word in rest.split() if word.startswith("-")}
            # submit has sbatch's options, which another page lists.
            assert verb == "submit" or named <= known, f"{page.name}: odcctl {verb}{rest}"
            seen += 1
        for verb in re.findall(r"(?<![\w/-])odcd ([a-z]+) --", text):
            assert verb in daemon, f"{page.name}: odcd {verb}"
    assert seen > 40
