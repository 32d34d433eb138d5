"""Formats, option tables and values of Slurm's commands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from odcd.records.requested import Requested
from odcd.slurm.columns import sacct, squeue
from odcd.slurm.columns.table import header_of, letters, line_maker, names, sacct_names
from odcd.slurm.columns.values import (
    JobRow,
    accounting_state,
    command,
    job_id,
    long_clock,
    output,
    reason,
)
from odcd.slurm.commands.getopt import Flag, parse
from odcd.slurm.commands.sacct import parse_sacct
from odcd.slurm.commands.scancel import parse_scancel
from odcd.slurm.commands.squeue import parse_states
from odcd.slurm.hostlists import expand_hosts, list_hosts
from odcd.slurm.usage import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OPTIONS = (
    Flag("noheader", "noheader", "h"),
    Flag("noconvert", "noconvert"),
    Flag("jobs", "jobs", "j", "required"),
    Flag("states", "states", "t", "optional"),
    Flag("gone", "gone", refused="not here"),
)


def a_row(**fields: object) -> JobRow:
    return JobRow(
        **{"id": 7, "name": "train", "user": "alice", "state": "PENDING", "now": NOW, "zone": UTC,
           "reason": "Resources", **fields}  # type: ignore[arg-type]
    )  # fmt: skip


def shown(text: str, row: JobRow) -> str:
    cells, _ = letters("squeue", "job", text, squeue.LETTERS)
    return line_maker(cells)(row)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%.6i|%6i|%i", "     7|7     |7"),
        ("%.3u %2u", "ali al"),
        ('"%j","%t"', '"train","PD"'),
        ("%i<><> %t^^^", "7<><> PD^^^"),
        ("%R %r", "(Resources) Resources"),
        ("100%% %i", "100%% 7"),
    ],
)
def test_letters_have_widths_and_literal_text(text: str, line: str) -> None:
    assert shown(text, a_row()) == line


def test_o_columns_are_twenty_wide_and_cut() -> None:
    cells = names("squeue", "job", "JobArrayID,Name:.7,State:4", squeue.NAMES)
    assert header_of(cells) == "JOBID                  NAMESTAT"
    assert line_maker(cells)(a_row()) == "7                     trainPEND"


@pytest.mark.parametrize("text", ["nope", "jobid:-3", "jobid:+:x", ""])
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(Usage, match="Invalid job format specification"):
        names("squeue", "job", text, squeue.NAMES)


def test_sacct_cuts_with_a_plus_and_aligns() -> None:
    cells = sacct_names("sacct", ["JobName%4,State%-12"], sacct.NAMES, parsable=False)
    assert line_maker(cells)(a_row(state="CANCELLED", uid=1000)) == "tra+ CANCELLED b+ "


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--none"], "squeue: unrecognized option '--none'"),
        (["-x"], "squeue: invalid option -- 'x'"),
        (["-j"], "squeue: option requires an argument -- 'j'"),
        (["--jobs"], "squeue: option '--jobs' requires an argument"),
        (["--noheader=1"], "squeue: option '--noheader' doesn't allow an argument"),
        (["--no"], "squeue: option '--no' is ambiguous"),
        (["--gone"], "squeue: error: --gone is not supported: not here"),
    ],
)
def test_usage_errors_are_getopts(argv: list[str], message: str) -> None:
    with pytest.raises(Usage) as error:
        parse("squeue", OPTIONS, argv)
    assert error.value.text.startswith(message)
    assert error.value.code == 1


def test_options_may_be_bundled_joined_shortened_and_mixed_with_operands() -> None:
    found = parse("squeue", OPTIONS, ["a", "-hj7", "--job=8", "-tPD", "b", "--", "-c"])
    assert found.has("noheader")
    assert found.every("jobs") == ["7", "8"]
    assert found.last("states") == "PD"
    assert found.operands == ["a", "b", "-c"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "7"),
        ({"array_job_id": 5, "array_task_id": 3}, "5_3"),
        ({"array_job_id": 7, "array_tasks": "2-4%2"}, "7_[2-4%2]"),
        ({"array_job_id": 7, "array_tasks": "2-4", "array_throttle": 2}, "7_[2-4%2]"),
    ],
)
def test_ids(fields: dict[str, object], text: str) -> None:
    assert job_id(a_row(**fields)) == text


def test_states_that_clients_do_not_know_are_not_shown() -> None:
    assert shown("%T %t", a_row(state="CONFIGURING")) == "RUNNING R"
    assert accounting_state(a_row(state="COMPLETING")) == "RUNNING"
    assert accounting_state(a_row(state="CANCELLED", uid=12)) == "CANCELLED by 12"


def test_state_filters() -> None:
    assert parse_states(None) is None
    assert parse_states("pd,R") == {"PENDING", "RUNNING", "CONFIGURING"}
    assert "COMPLETED" in (parse_states("all") or ())
    with pytest.raises(Usage, match="Invalid job state specified: NOPE"):
        parse_states("nope")


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2026-01-01T05:00", datetime(2026, 1, 1, 5, tzinfo=UTC)),
        ("2026-01-01T05", datetime(2026, 1, 1, 5, tzinfo=UTC)),
        ("1970-01-01-00:00:01", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("now-2hours", NOW - timedelta(hours=2)),
        ("now", NOW),
    ],
)
def test_sacct_reads_moments(text: str, since: datetime) -> None:
    assert parse_sacct(["-S", text], {}, NOW).since == since


def test_sacct_shows_today_unless_jobs_are_named() -> None:
    assert parse_sacct([], {}, NOW).since == datetime(2026, 1, 2, tzinfo=UTC)
    assert parse_sacct(["-j", "7"], {}, NOW).since is None
    with pytest.raises(Usage, match="Invalid time specification"):
        parse_sacct(["-S", "soonish"], {}, NOW)


@pytest.mark.parametrize("word", ["abc", "7_", "7_[", "-7x", "7_x", "7.x"])
def test_scancel_refuses_malformed_ids(word: str) -> None:
    with pytest.raises(Usage):
        parse_scancel([word])


def test_scancel_reads_ids_of_arrays_and_steps() -> None:
    assert parse_scancel(["7,8_[1,3-4]", "9.0", "10.batch"]).ids == [
        "7", "8_[1,3-4]", "9.0", "10.batch",
    ]  # fmt: skip


def test_times_and_paths() -> None:
    assert long_clock(90_061) == "1-01:01:01"
    assert output(a_row(work_dir="/w", array_job_id=5, array_task_id=3)) == "/w/slurm-5_3.out"
    assert output(a_row(work_dir="/w", stdout="logs/%x-%j.log")) == "/w/logs/train-7.log"


def test_the_first_host_of_a_list_stays_the_first() -> None:
    hosts = ["n7", "n1", "n2", "n3", "a", "n09", "n10"]
    assert list_hosts(hosts) == "n[7,1-3],a,n09,n10"
    assert expand_hosts(list_hosts(hosts)) == hosts


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("sbatch -n2 a.sh x", "/w/a.sh"),
        ("odcctl submit a.sh", "/w/a.sh"),
        ("odcctl submit -n2 /a/b.sh", "/a/b.sh"),
        ("odcctl submit -n1 : -n2 a.sh", "/w/a.sh"),
        ("sbatch --wrap true", ""),
        ("odcctl submit --wrap true", ""),
        ("odcctl submit -n2 -- true", ""),
        ("odcctl submit", ""),
        ("odcctl run -n2 true", ""),
        ("srun true", ""),
    ],
)
def test_the_command_of_a_job_is_its_script(line: str, path: str) -> None:
    asked = Requested(
        gid=1, requeue=True, stdin=None, submit_host=None, submit_line=line, ntasks=None,
        cpus_per_task=None, constraint=None, nodes=(), excluded=(), exclusive=False, tmp_mib=0,
    )  # fmt: skip
    assert command(a_row(work_dir="/w", asked=asked)) == path


def test_a_job_that_could_not_be_launched_has_that_reason() -> None:
    failed = a_row(state="FAILED", reason="JobLaunchFailure")
    assert reason(failed) == "JobLaunchFailure"
    assert shown("%R", failed) == "(JobLaunchFailure)"
    assert reason(a_row(state="FAILED", reason="NonZeroExitCode")) == "NonZeroExitCode"
