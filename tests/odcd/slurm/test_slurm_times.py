from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odcd.errors import BadRequest, OdcError
from odcd.records.fields import UNLIMITED_S
from odcd.slurm.times import (
    format_duration,
    parse_duration,
    parse_moment,
    parse_span,
    zone_of,
)

try:
    BERLIN = ZoneInfo("Europe/Berlin")
except ZoneInfoNotFoundError:
    pytest.skip("this machine knows no time zones", allow_module_level=True)
# A Friday, one day before the clocks go back at 03:00.
NOW = datetime(2026, 10, 23, 15, 30, 10, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("5:30", 330),
        ("0:90", 90),
        ("1:02:03", 3723),
        ("100:00:00", 360000),
        ("1-0", 86400),
        ("2-12", 216000),
        ("1-02:03", 93780),
        ("1-02:03:04", 93784),
        ("1-0:0:0", 86400),
        ("0:5:0", 300),
        (" 10 ", 600),
        ("0", UNLIMITED_S),
        ("00:00:00", UNLIMITED_S),
        ("UNLIMITED", UNLIMITED_S),
        ("infinite", UNLIMITED_S),
        ("-1", UNLIMITED_S),
    ],
)
def test_a_time_limit_is_read_in_every_form_of_sbatch(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "abc", "-5", "1.5", "1:2:3:4", "1-", "-1-0", "1d", "5m", "1:", "٣", "1-2-3", "9" * 40],
)
def test_an_invalid_time_limit_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_duration(text)
    assert text in refused.value.message
    assert "D-H:M:S" in (refused.value.hint or "")


@pytest.mark.parametrize("text", ["0", "0:00", "-1", "UNLIMITED", "9" * 10, "soon"])
def test_a_duration_other_than_a_job_limit_cannot_be_unlimited(text: str) -> None:
    with pytest.raises(BadRequest, match=f'half_life cannot be "{text}"') as refused:
        parse_span(text, "half_life")
    assert "at least 1 second" in (refused.value.hint or "")
    assert "UNLIMITED" not in (refused.value.hint or "")


def test_a_duration_may_be_zero_or_unlimited_where_that_has_a_meaning() -> None:
    assert parse_span("7-0", "half_life") == parse_span("1w", "half_life") == 604_800
    assert parse_span("48h", "max_wait") == parse_span("2-0", "max_wait") == 172_800
    assert parse_span("0:00", "grace", zero=True) == 0
    assert parse_span("unlimited", "max_wait", endless=True) == UNLIMITED_S
    for text, may in (("-1", {"zero": True}), ("0", {"endless": True}), ("-1", {"endless": True})):
        with pytest.raises(BadRequest):
            parse_span(text, "x", **may)


def test_a_time_limit_too_large_to_store_is_refused() -> None:
    with pytest.raises(BadRequest, match="too long"):
        parse_duration("99999999-0")


@given(st.integers(1, UNLIMITED_S))
def test_a_printed_time_limit_reads_as_itself(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def local(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=BERLIN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", NOW),
        ("now+30", NOW + timedelta(seconds=30)),
        ("now + 2 hours", NOW + timedelta(hours=2)),
        ("now+1hour", NOW + timedelta(hours=1)),
        ("now+10minutes", NOW + timedelta(minutes=10)),
        ("now+1week", NOW.astimezone(UTC) + timedelta(weeks=1)),
        ("16:00", local(2026, 10, 23, 16)),
        ("15:30:09", local(2026, 10, 24, 15, 30, 9)),
        ("08:00", local(2026, 10, 24, 8)),
        ("8:00 PM", local(2026, 10, 23, 20)),
        ("8:00am", local(2026, 10, 24, 8)),
        ("12:00 am", local(2026, 10, 24)),
        ("5pm", local(2026, 10, 23, 17)),
        ("midnight", local(2026, 10, 24)),
        ("noon", local(2026, 10, 24, 12)),
        ("teatime", local(2026, 10, 23, 16)),
        ("fika", local(2026, 10, 24, 15)),
        ("today", NOW),
        ("tomorrow", local(2026, 10, 24)),
        ("tomorrow 16:00", local(2026, 10, 24, 16)),
        ("noon tomorrow", local(2026, 10, 24, 12)),
        ("2026-12-24", local(2026, 12, 24)),
        ("2026-12-24T18:30", local(2026, 12, 24, 18, 30)),
        ("2026-12-24T18:30:15", local(2026, 12, 24, 18, 30, 15)),
        ("2026-12-24 18:30", local(2026, 12, 24, 18, 30)),
        ("2026-12-24T18:30:15Z", datetime(2026, 12, 24, 18, 30, 15, tzinfo=UTC)),
        ("2026-12-24T18:30:15+02:00", datetime(2026, 12, 24, 16, 30, 15, tzinfo=UTC)),
        ("122426", local(2026, 12, 24)),
        ("12/24/26", local(2026, 12, 24)),
        ("12/24/2026", local(2026, 12, 24)),
        ("12/24", local(2026, 12, 24)),
        ("01/05", local(2027, 1, 5)),
        ("2020-01-01", local(2020, 1, 1)),
    ],
)
def test_a_moment_is_read_in_every_form_of_sbatch(text: str, moment: datetime) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "later",
            "now-1hour",
            "now+1fortnight",
            "25:00",
            "12:60",
            "13pm",
            "0am",
            "2026-13-01",
        ),
        *("2026-02-30", "tomorrow 99:00", "1234567", "now+999999999weeks", "2026-01-01T", "T12:00"),
    ],
)
def test_an_invalid_moment_is_refused_with_the_accepted_forms(text: str) -> None:
    with pytest.raises(BadRequest, match="is not a date or time") as refused:
        parse_moment(text, NOW)
    assert "YYYY-MM-DD" in (refused.value.hint or "")


def test_a_day_ahead_is_a_day_on_the_clock_and_hours_are_hours_when_clocks_change() -> None:
    evening = local(2026, 10, 24, 20)
    assert parse_moment("tomorrow 20:00", evening) - evening.astimezone(UTC) == timedelta(hours=25)
    assert parse_moment("now+24hours", evening) - evening.astimezone(UTC) == timedelta(hours=24)


def test_the_submitters_zone_counts_and_an_unknown_one_is_the_machines() -> None:
    noon = datetime(2026, 1, 10, 12, tzinfo=UTC)
    in_tokyo = noon.astimezone(zone_of("Asia/Tokyo"))
    assert parse_moment("22:00", in_tokyo) == datetime(2026, 1, 10, 13, tzinfo=UTC)
    for unknown in ("../../etc/passwd", "Nowhere/City", "/etc/shadow", ":", "\0", None):
        assert noon.astimezone(zone_of(unknown)) == noon


@given(st.text(max_size=30) | st.from_regex(r"[0-9:/T now+ap-]{0,20}", fullmatch=True))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    for parse in (lambda: parse_moment(text, NOW), lambda: parse_duration(text)):
        with suppress(OdcError):
            parse()
