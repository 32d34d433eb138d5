"""Recurring jobs of a real daemon, as users of its commands see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.daemon import Odc, kill, wait
from tests.support.harness.slurm_commands import NODES, Commands, slurm_commands


@pytest.fixture(scope="module")
def slurm(seed: Path) -> Iterator[Commands]:
    with slurm_commands(seed) as commands:
        yield commands


@pytest.fixture
def odc(slurm: Commands) -> Iterator[Odc]:
    slurm.odc.environment["TZ"] = "Europe/Berlin"
    yield slurm.odc
    slurm.odc.odcctl("cron", "-r", "--yes", check=False)


def table_of(odc: Odc) -> dict[str, Any]:
    return json.loads(odc.odcctl("cron", "--json", "--list").stdout)


def put(odc: Odc, text: str) -> str:
    path = odc.work / "table"
    path.write_text(text)
    return odc.odcctl("cron", str(path)).stdout


def make_due(odc: Odc) -> None:
    """Instead of waiting for the next minute."""
    odc.rows("update odc.cron_entry set next_at = now() where next_at is not null returning id")


def jobs_of(odc: Odc, name: str) -> list[int]:
    return [row["id"] for row in odc.rows(f"select id from odc.job where name = '{name}'")]


def the_job(odc: Odc, name: str, count: int = 1) -> int:
    def started() -> list[int] | None:
        found = sorted(jobs_of(odc, name))
        return found if len(found) == count else None

    return wait(started, lambda: f"{jobs_of(odc, name)}{odc.log()}")[-1]


@pytest.mark.long
def test_a_recurring_job_runs_again_after_the_last_one_has_ended(odc: Odc) -> None:
    said = put(odc, "WHAT='a  b'\n#SCRON -J again -o out-%j\n0 3 * * * echo \"$WHAT\" $HOME\n")
    assert said.startswith("table of recurring jobs stored: 1 entry, times of Europe/Berlin; next")
    for count in (1, 2):
        make_due(odc)
        job = the_job(odc, "again", count)
        assert odc.wait_for(job, "COMPLETED")["exit_code"] == 0
        # The jobs run in the user's home.
        assert (odc.user_home / f"out-{job}").read_text() == f"a  b {odc.user_home}\n"
    shown = odc.odcctl("cron", "--status").stdout.splitlines()
    assert shown[0].split() == ["LINE", "SCHEDULE", "NEXT", "LAST", "JOB", "RESULT", "COMMAND"]
    assert f" {job} COMPLETED echo " in " ".join(shown[1].split())
    assert odc.odcctl("cron", "-l").stdout == (odc.work / "table").read_text()


def test_a_daemon_killed_with_an_occurrence_due_submits_it_once_after_its_start(odc: Odc) -> None:
    put(odc, "#SCRON -J once -o /dev/null\n0 3 * * * true\n")
    make_due(odc)
    kill(odc.pid)
    odc.up(*NODES)
    odc.wait_for(the_job(odc, "once"), "COMPLETED")
    assert len(jobs_of(odc, "once")) == 1


def test_wrong_lines_are_named_all_at_once_and_change_nothing(odc: Odc) -> None:
    put(odc, "@daily true\n")
    path = odc.work / "wrong"
    path.write_text("61 * * * * true\n#SCRON --nodes=x\n@daily true\n@reboot true\n")
    done = odc.odcctl("cron", str(path), check=False)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "odcctl: recurring jobs not changed: the table has 3 errors (OD010)"
    assert '  line 1, minute (column 1): "61" is not from 0 to 59' in lines
    assert '  line 2, --nodes: "x" is not a number of nodes' in lines
    assert any(line.startswith("  line 4, time (column 1)") for line in lines)
    assert odc.odcctl("cron", "-l").stdout == "@daily true\n"
    path.write_text("#SCRON -p none\n@daily true\n")
    done = odc.odcctl("cron", str(path), check=False)
    assert 'line 2: partition "none" does not exist (OD010)' in done.stderr


def test_the_table_is_edited(odc: Odc) -> None:
    editor = odc.work / "editor"
    editor.write_text('#!/bin/sh\necho "$1" >&2\necho "@daily edited" >> "$2"\n')
    editor.chmod(0o755)
    odc.environment["EDITOR"] = f"{editor} word"
    done = odc.odcctl("cron", "--edit")
    assert done.stderr == "word\n"
    text = odc.odcctl("cron", "-l").stdout
    assert text.startswith("# Recurring jobs: ")
    assert text.endswith("\n@daily edited\n")
    odc.environment["EDITOR"] = "true"
    assert odc.odcctl("cron", "-e").stderr == "odcctl: no changes\n"
    editor.write_text('#!/bin/sh\necho "@never x" >> "$2"\n')
    odc.environment["EDITOR"] = f"{editor} word"
    done = odc.odcctl("cron", "-e", check=False)
    assert done.returncode == 1
    assert '"@never" is not supported' in done.stderr
    kept = Path(done.stderr.partition("odcctl: your text is in ")[2].splitlines()[0])
    assert kept.read_text().endswith("@never x\n")
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.unlink()
    odc.environment["EDITOR"] = "false"
    done = odc.odcctl("cron", "-e", check=False)
    assert "the editor false ended with code 1" in done.stderr
    Path(done.stderr.partition("odcctl: your text is in ")[2].splitlines()[0]).unlink()
    assert table_of(odc)["text"] == text


def test_a_table_is_removed_and_its_absence_reported(odc: Odc) -> None:
    put(odc, "@daily true\n")
    done = odc.odcctl("cron", "-r", check=False)
    assert done.returncode == 1
    assert "requires confirmation" in done.stderr
    assert odc.odcctl("cron", "-r", "-y").stdout == (
        "recurring jobs removed; running jobs continue\n"
    )
    done = odc.odcctl("cron", "-l", check=False)
    assert done.returncode == 1
    assert "has no recurring jobs" in done.stderr


def test_scrontab_installs_lists_and_removes(odc: Odc, slurm: Commands) -> None:
    slurm.run("scrontab", "-", stdin="#SCRON -t 5\n@daily true\n")
    assert slurm.out("scrontab", "-l") == "#SCRON -t 5\n@daily true\n"
    assert table_of(odc)["zone"] == "UTC"
    slurm.run("scrontab", stdin="@hourly true\n")
    assert slurm.out("scrontab", "-l") == "@hourly true\n"
    done = slurm.run("scrontab", "-", stdin="@never x\n", code=1)
    assert "line 1, time (column 1)" in done.stderr
    slurm.run("scrontab", "-r")
    assert "no recurring jobs" in slurm.run("scrontab", "-l", code=1).stderr


@pytest.mark.long
def test_scancel_cron_disables_the_entry_and_cancel_does_not(odc: Odc, slurm: Commands) -> None:
    put(odc, "\n#SCRON -J sleeper -o /dev/null\n0 3 * * * exec sleep 600\n@daily true\n")
    make_due(odc)
    job = the_job(odc, "sleeper")
    odc.wait_for(job, "RUNNING")
    odc.odcctl("cancel", str(job))
    odc.wait_for(job, "CANCELLED")
    make_due(odc)
    job = the_job(odc, "sleeper", 2)
    odc.wait_for(job, "RUNNING")
    slurm.run("scancel", "--cron", str(job))
    odc.wait_for(job, "CANCELLED")
    assert odc.odcctl("cron", "-l").stdout == (
        "\n#DISABLED: #SCRON -J sleeper -o /dev/null\n"
        "#DISABLED: 0 3 * * * exec sleep 600\n@daily true\n"
    )
    assert "disabled by" in odc.odcctl("cron", "-s").stdout
