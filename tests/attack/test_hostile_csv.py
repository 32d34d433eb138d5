"""CSV is opened in spreadsheets, and users choose the names in it."""

from __future__ import annotations

import csv

import pytest

from odcctl.text.tables import csv_text


def written(cell: str) -> str:
    [[found]] = csv.reader([csv_text((), [[cell]]).rstrip("\n")])
    return found


@pytest.mark.parametrize(
    "name", ["=cmd|' /C calc'!A0", "+1+cmd|x", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "=1", "--"]
)
def test_no_cell_is_a_formula(name: str) -> None:
    """Before: the name of a job was run by the spreadsheet of whoever opened the list."""
    assert written(name) == f"'{name}"


@pytest.mark.parametrize("cell", ["-5", "+3.5%", "-", "-1-00:30:00", "-5m", "", "train", "a=b"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert csv_text((), [[cell, "x"]]) == f"{cell},x\n"
