"""Tables of recurring jobs as users write them: what they mean, and every fault of a wrong one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadRequest, OdcError, TooLarge
from odcd.slurm.cron_job import cron_job
from odcd.slurm.crontab import (
    MAX_CHARS,
    MAX_ENTRIES,
    CronOrigin,
    Crontab,
    FaultyCrontab,
    parse_crontab,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = CronOrigin(zone="Europe/Berlin", work_dir="/home/alice", umask=0o22)


def parsed(text: str) -> Crontab:
    return parse_crontab(text, ORIGIN, NOW)


def faults(text: str) -> list[str]:
    with pytest.raises(FaultyCrontab) as error:
        parsed(text)
    return [fault.error.message for fault in error.value.faults]


def test_options_count_for_the_next_entry_only() -> None:
    table = parsed("#SCRON -p high\n# a comment\n#SCRON -t 1:00 -A lab\n@hourly a\n@daily b\n")
    first, second = table.entries
    assert (first.first_line, first.line, first.written) == (1, 4, "@hourly")
    assert (second.first_line, second.line) == (5, 5)
    spec = cron_job(first.request, first.zone, NOW)
    assert (spec.partitions, spec.account, spec.time_limit_s) == (["high"], "lab", 60)
    assert cron_job(second.request, second.zone, NOW).partitions == []


def test_variables_count_for_the_entries_after_them() -> None:
    table = parsed("A=1\n@daily a\nA = 'two words'\n B=\n@daily b\n")
    assert [one.request.environment for one in table.entries] == [
        {"A": "1"}, {"A": "two words", "B": ""},
    ]  # fmt: skip


def test_cron_tz_is_the_zone_of_the_entries_after_it() -> None:
    table = parsed("0 9 * * * a\nCRON_TZ=UTC\n0 9 * * * b\nCRON_TZ=\n0 9 * * * c\n")
    assert [one.zone for one in table.entries] == ["Europe/Berlin", "UTC", "Europe/Berlin"]
    assert all(one.request.environment == {} for one in table.entries)


def test_the_command_is_kept_as_it_is_written() -> None:
    [entry] = parsed("5 4 * * *   echo  'a  b' % $HOME # c  \r\n").entries
    assert entry.request.command == "echo  'a  b' % $HOME # c"
    spec = cron_job(entry.request, entry.zone, NOW)
    assert spec.script.startswith("#!/bin/sh\n")
    assert spec.script.endswith(f"\n{entry.request.command}\n")
    assert (spec.name, spec.work_dir) == ("echo", "/home/alice")


@pytest.mark.parametrize("command", [":", "-x", "--", "/opt/run.sh a", "$DIR/x"])
def test_any_command_can_recur(command: str) -> None:
    [entry] = parsed(f"@daily {command}\n").entries
    assert cron_job(entry.request, entry.zone, NOW).script.endswith(f"\n{command}\n")


def test_times_of_options_are_of_the_zone_and_count_from_the_occurrence() -> None:
    [entry] = parsed("#SCRON --begin=now+1hour -J name\n@daily a\n").entries
    at = datetime(2026, 6, 1, tzinfo=UTC)
    spec = cron_job(entry.request, entry.zone, at)
    assert spec.begin_at == datetime(2026, 6, 1, 1, tzinfo=UTC)
    assert (spec.name, spec.environment) == ("name", {})


def test_a_schedule_of_lists_ranges_steps_and_names() -> None:
    [entry] = parsed("1-5,30 8-17/2 * jan,dec mon-wed,SUN x").entries
    schedule = entry.schedule
    assert schedule.minutes == (1, 2, 3, 4, 5, 30)
    assert schedule.hours == (8, 10, 12, 14, 16)
    assert schedule.months == (1, 12)
    assert schedule.weekdays == (0, 1, 2, 3)
    assert not schedule.any_day
    assert not schedule.every_hour


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [("7", (0,)), ("5-7", (0, 5, 6)), ("sat-sun", (0, 6)), ("0-7", tuple(range(7)))],
)
def test_sunday_is_0_and_7(field: str, weekdays: tuple[int, ...]) -> None:
    [entry] = parsed(f"0 0 * * {field} x").entries
    assert entry.schedule.weekdays == weekdays


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"), ("@daily", "0 0 * * *"), ("@Midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)  # fmt: skip
def test_short_forms(short: str, long: str) -> None:
    assert parsed(f"{short} x").entries[0].schedule == parsed(f"{long} x").entries[0].schedule


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("60 0 * * * x", 'minute (column 1): "60" is not from 0 to 59'),
        ("0  24 * * * x", 'hour (column 4): "24" is not from 0 to 23'),
        ("0 0 0 * * x", 'day of month (column 5): "0" is not from 1 to 31'),
        ("0 0 * 13 * x", 'month (column 7): "13" is not from 1 to 12'),
        ("0 0 * * 8 x", 'day of week (column 9): "8" is not from 0 to 7'),
        ("0 0 * * fr x", 'day of week (column 9): "fr" is no number or name: choose among '
                         "sun, mon, tue, wed, thu, fri, sat"),
        ("-1 0 * * * x", 'minute (column 1): "-1" cannot be read'),
        ("1- 0 * * * x", 'minute (column 1): "1-" cannot be read'),
        ("1,,2 0 * * * x", 'minute (column 1): "" cannot be read'),
        ("*/0 0 * * * x", 'minute (column 1): the step "0" is not from 1 to 59'),
        ("*/99999999999999999999 0 * * * x",
         'minute (column 1): the step "99999999999999999999" is not from 1 to 59'),
        ("99999999999999999999 0 * * * x",
         'minute (column 1): "99999999999999999999" is not from 0 to 59'),
        ("٣ 0 * * * x", 'minute (column 1): "٣" is no number'),
        ("5/2 0 * * * x", 'minute (column 1): "5/2" has a step, but is no range'),
        ("9-5 0 * * * x", 'minute (column 1): the range "9-5" ends before it begins'),
        ("0 0 31 4,6 * x", "no month of the schedule has a day 31, so it would never run"),
        ("0 0 * *", "day of week (column 8): it is missing"),
        ("0 0 * * *", "command (column 10): it is missing"),
        ("@daily", "command (column 7): it is missing"),
        ("@reboot x", 'time (column 1): "@reboot" is not supported (a cluster has no boot)'),
        ("@noon x", 'time (column 1): "@noon" is not supported'),
        ("#SCRON --bogus", 'unrecognized option "--bogus"'),
        ("#SCRON -t abc", '--time: "abc" is not a time limit'),
        ("#SCRON high", '"high" is not an option'),
        ("#SCRON -J 'a", "the quote ' is not closed"),
        ("#SCRON --array=1-3", "--array: a recurring job cannot be an array"),
        ("#SCRON --test-only", "--test-only: a recurring job is submitted"),
        ("#SCRON --wrap=x", "--wrap: the command stands after the time"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named_with_its_field(line: str, fault: str) -> None:
    assert faults(f"# first\n{line}\n") == [f"line 2, {fault}"]


def test_all_faults_are_reported_at_once() -> None:
    found = faults("61 25 * * * a\n@daily b\n#SCRON --bogus\n#SCRON -t x\n@daily c\n1 2 d\n")
    assert [text.partition(" (")[0].partition(": ")[0] for text in found] == [
        "line 1, minute", "line 1, hour", 'line 3, unrecognized option "--bogus"', "line 4, --time",
        "line 6, month",
    ]  # fmt: skip


def test_options_that_contradict_each_other_name_the_line_of_their_entry() -> None:
    [fault] = faults("#SCRON --mem=1G --mem-per-cpu=1G\n@daily a\n")
    assert fault.startswith("line ")


def test_a_table_has_limits() -> None:
    assert len(parsed("@daily a\n" * MAX_ENTRIES).entries) == MAX_ENTRIES
    assert faults("@daily a\n" * (MAX_ENTRIES + 9)) == [
        f"line {MAX_ENTRIES + 1}: the table has more than {MAX_ENTRIES} entries"
    ]
    with pytest.raises(TooLarge):
        parsed("#" * (MAX_CHARS + 1))
    with pytest.raises(BadRequest, match="NUL"):
        parsed("@daily a\0b")


def test_lines_without_an_effect_are_warned_about() -> None:
    assert parsed("MAILTO=me\n@daily a\n#SCRON -n 2\n").warnings == [
        "line 1: MAILTO has no effect; use #SCRON --mail-type and --mail-user",
        "line 3: the options after the last entry have no effect",
    ]


LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.text("0123456789*/-,@#SCRON=abcdefghij \t'\"", max_size=40),
        st.builds("{} {} {} {} {} x".format, *[st.text("0123456789*/-,a", max_size=5)] * 5),
        st.sampled_from(["@daily a", "#SCRON -n 1", "A=b", "#SCRON :", "#SCRON --comment :"]),
    ),
    max_size=12,
)


@given(lines=LINES)
def test_any_text_is_a_table_or_is_refused_with_the_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    error: OdcError | None = None
    table = None
    try:
        table = parsed(text)
    except OdcError as refusal:
        error = refusal
    if isinstance(error, FaultyCrontab):
        assert all(1 <= (fault.line or 0) <= text.count("\n") + 1 for fault in error.faults)
    elif table is None:
        assert "\0" in text, error
    else:
        for entry in table.entries:
            assert cron_job(entry.request, entry.zone, NOW).script.startswith("#!")
