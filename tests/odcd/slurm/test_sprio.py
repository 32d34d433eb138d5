"""The columns and formats of sprio."""

from __future__ import annotations

from typing import Any

import pytest

from odcd.slurm.commands import sprio
from odcd.slurm.commands.getopt import parse
from odcd.slurm.usage import Usage

NAMES = ("age", "fairshare", "size", "partition", "qos")
JOB = {
    "id": 12, "user": "alice", "account": "vision", "qos": "normal", "partition": "main",
    "priority": 1_234, "nice": 5,
    "points": dict(zip(NAMES, (100.4, 200.0, 0.0, 50.0, 7.0), strict=True)),
    "factors": dict(zip(NAMES, (0.5, 0.25, 0.0, 1.0, 0.125), strict=True)),
}  # fmt: skip
WEIGHTS: dict[str, Any] = dict(zip(NAMES, (1000, 2000, 0, 300, 40), strict=True))


def shown(*argv: str, **environment: str) -> tuple[list[str], str]:
    given = parse("sprio", sprio.OPTIONS, list(argv))
    cells, complaints = sprio.format_of(given, environment, WEIGHTS)
    return sprio.render(cells, [JOB], WEIGHTS, given).splitlines(), complaints


def test_the_default_columns_are_the_factors_with_a_weight() -> None:
    header, row = shown()[0]
    assert header == ("          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE  "
                      "PARTITION        QOS")  # fmt: skip
    assert row.split() == ["12", "main", "1234", "0", "100", "200", "50", "7"]
    header, row = shown("-u", "alice")[0]
    assert header.startswith("          JOBID PARTITION     USER   PRIORITY       SITE")
    assert row.split()[:4] == ["12", "main", "alice", "1234"]


def test_the_weights() -> None:
    assert shown("-w")[0][1].split() == ["Weights", "1", "1000", "2000", "300", "40"]
    assert shown("-w", "-n")[0][1].split() == ["Weights", "1000", "2000", "300", "40"]
    assert shown("-w", "-l")[0][1].split() == [
        "Weights", "1", "1000", "0", "2000", "0", "300", "40",
    ]  # fmt: skip


def test_factors_between_0_and_1_are_aligned_left() -> None:
    header, row = shown("-n")[0]
    assert header == ("          JOBID PARTITION PRIORITY   AGE        FAIRSHARE  PARTITION  "
                      "QOS       ")  # fmt: skip
    assert row.split() == ["12", "main", "0.00000028", "0.5000000", "0.2500000", "1.0000000",
                           "0.1250000"]  # fmt: skip
    assert shown("-n", "-l")[0][0].split() == [
        "JOBID", "PARTITION", "USER", "ACCOUNT", "PRIORITY", "AGE", "ASSOC", "FAIRSHARE", "JOBSIZE",
        "PARTITION", "QOSNAME", "QOS", "TRES",
    ]  # fmt: skip


def test_the_long_format_has_users_and_accounts() -> None:
    header, row = shown("-l")[0]
    assert header.split() == [
        "JOBID", "PARTITION", "USER", "ACCOUNT", "PRIORITY", "SITE", "AGE", "ASSOC", "FAIRSHARE",
        "JOBSIZE", "PARTITION", "QOSNAME", "QOS", "NICE", "TRES",
    ]  # fmt: skip
    assert row.split()[2:5] == ["alice", "vision", "1234"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("%i|%u|%Y", "12|alice|1234"), ("%.6i %o %n", "    12 vision normal"), ("%N,%c", "5,odc")],
)
def test_a_format_of_the_caller(text: str, line: str) -> None:
    assert shown("-h", "-o", text) == ([line], "")
    assert shown("-h", SPRIO_FORMAT=text) == ([line], "")


def test_the_long_format_goes_before_the_variable_and_excludes_one_of_the_caller() -> None:
    assert shown("-l", SPRIO_FORMAT="%i") == shown("-l")
    with pytest.raises(Usage) as refused:
        shown("-l", "-o", "%i")
    assert refused.value.text == (
        "sprio: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove "
        "one and retry.\n"
    )
    assert refused.value.code == 1


def test_jobs_are_sorted_by_letters() -> None:
    rows = [
        {**JOB, "id": number, "user": user, "priority": priority}
        for number, user, priority in ((9, "bob", 5), (10, "alice", 40), (11, "alice", 5))
    ]

    def order(text: str | None) -> list[int]:
        return [row["id"] for row in sprio.sorted_rows(rows, text)]

    assert order(None) == [9, 10, 11]
    assert order("u,-Y") == [10, 11, 9]
    assert order("-y,i") == [10, 9, 11]
    assert order("-i") == [11, 10, 9]
    with pytest.raises(Usage, match="Invalid sort specification: -Z"):
        order("-Z")


def test_the_letters_are_listed_eight_a_line() -> None:
    first, *_ = sprio.help_of_format().splitlines()
    assert [word[0] for word in first.split()] == ["%"] * 8


def test_an_unknown_letter_is_reported_and_printed() -> None:
    found: Any = shown("-h", "-o", "%i %Z")
    assert found == (["12 %Z"], "sprio: error: Invalid job format specification: Z\n")
