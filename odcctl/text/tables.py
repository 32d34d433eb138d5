"""The columns of a table: which of them are shown, and a table as CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

Rows: TypeAlias = Sequence[Sequence[str]]
MIN_LAST = 24
"""Columns are left out until the last column has this width, or the width of its text."""
_FORMULA = frozenset("=+-@")
_SIGNED = re.compile(r"[+-](?:[0-9]+(?:[.:-][0-9]+)*[A-Za-z%]{0,3})?")


class Narrow(NamedTuple):
    """How a table fits a narrow terminal: columns whose text is cut, to which width; then columns
    that are left out, the least important one first."""

    cut: Mapping[str, int]
    drop: Sequence[str]


def fit(
    header: Sequence[str], rows: Rows, width: int | None, narrow: Narrow | None
) -> tuple[Sequence[str], Rows]:
    """The columns that fit into the width; None: all."""
    if width is None or narrow is None or not rows or _needs(_widths(header, rows)) <= width:
        return header, rows
    for title, most in narrow.cut.items():
        place = header.index(title)
        rows = [[*row[:place], _cut(row[place], most), *row[place + 1 :]] for row in rows]
    widths = _widths(header, rows)
    left = list(range(len(header)))
    for title in narrow.drop:
        if _needs([widths[place] for place in left]) <= width:
            break
        left.remove(header.index(title))
    return [header[place] for place in left], [[row[place] for place in left] for row in rows]


def _widths(header: Sequence[str], rows: Rows) -> list[int]:
    return [max(map(len, column)) for column in zip(header, *rows, strict=True)]


def _needs(widths: Sequence[int]) -> int:
    """The width that a table needs, with its last column cut."""
    return sum(widths[:-1]) + 2 * (len(widths) - 1) + min(widths[-1], MIN_LAST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def column_name(title: str) -> str:
    """The name of a column on the command line: NODES / WHY is nodes_why."""
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")


def select(
    header: Sequence[str], rows: Rows, columns: str | None
) -> tuple[Sequence[str], Rows]:  # fmt: skip
    """The table with only these comma-separated columns, in that order; None: all columns.

    Raises ValueError for an unknown column.
    """
    if columns is None:
        return header, rows
    names = [column_name(title) for title in header]
    places: list[int] = []
    for word in columns.split(","):
        name = column_name(word)
        if name not in names:
            raise ValueError(f'--format: no column "{word}"; there are: {", ".join(names)}')
        places.append(names.index(name))
    chosen = [[row[place] for place in places] for row in rows]
    return [header[place] for place in places], chosen


def csv_text(header: Sequence[str], rows: Rows) -> str:
    """Comma-separated values (RFC 4180, but with newlines alone). An empty header is left out. A
    spreadsheet would run `=…` as a formula, and users choose names: such cells get a quote."""
    import csv  # only needed here
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow([column_name(title) for title in header])
    writer.writerows([[_inert(cell.strip()) for cell in row] for row in rows])
    return text.getvalue()


def _inert(cell: str) -> str:
    """Signed numbers and times, and a dash alone, stay as they are."""
    return f"'{cell}" if cell[:1] in _FORMULA and not _SIGNED.fullmatch(cell) else cell
