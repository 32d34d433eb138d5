"""The columns and formats of sprio."""

from __future__ import annotations

from typing import Any

import pytest

from odcd.slurm.commands import sprio
from odcd.slurm.commands.getopt import parse

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
    cells, complaints = sprio.format_of(given, environment)
    return sprio.render(cells, [JOB], WEIGHTS, given).splitlines(), complaints


def test_the_default_columns() -> None:
    header, row = shown()[0]
    assert header.startswith("          JOBID PARTITION   PRIORITY        AGE  FAIRSHARE")
    assert header.split()[5:] == ["JOBSIZE", "PARTITION", "QOS"]
    assert row.startswith("             12 main            1234        100        200")
    assert row.split()[5:] == ["0", "50", "7"]


def test_the_weights() -> None:
    assert shown("-w")[0][1].split() == ["Weights", "1000", "2000", "0", "300", "40"]
    assert shown("-w", "-n")[0][1].split() == ["Weights", "1000", "2000", "0", "300", "40"]


def test_factors_between_0_and_1() -> None:
    row = shown("-n", "-h")[0][0].split()
    assert row == ["12", "main", "0.00000028", "0.5000000", "0.2500000", "0.0000000", "1.0000000",
                   "0.1250000"]  # fmt: skip


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


def test_an_unknown_letter_is_reported_and_printed() -> None:
    found: Any = shown("-h", "-o", "%i %Z")
    assert found == (["12 %Z"], "sprio: error: Invalid job format specification: Z\n")
