"""Durations and sizes in texts have the form that users write and that the commands print."""

from __future__ import annotations

import pytest

from odcd.slurm.sizes import format_mib
from odcd.slurm.times import format_duration
from tests.support.harness.database import Sql


@pytest.mark.parametrize(
    "seconds",
    [0, 5, 59, 60, 300, 3599, 3600, 5400, 36000, 86399, 86400, 90061, 2592000, 2147483647],
)
def test_a_duration_in_sql_has_the_form_of_python(sql: Sql, seconds: int) -> None:
    assert sql.value("select odc._duration($1)", seconds) == format_duration(seconds)


@pytest.mark.parametrize("mib", [0, 1, 512, 1024, 1536, 65_536, 63_999, 1_048_576, 3_145_728])
def test_a_size_in_sql_has_the_form_of_python(sql: Sql, mib: int) -> None:
    assert sql.value("select odc._mib($1)", mib) == format_mib(mib)
