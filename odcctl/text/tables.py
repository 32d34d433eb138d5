"""The columns of a table: which of them are shown, and a table as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

Rows: TypeAlias = Sequence[Sequence[str]]


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
    """Comma-separated values (RFC 4180, but with newlines alone). An empty header is left out."""
    import csv  # only needed here
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow([column_name(title) for title in header])
    writer.writerows([[cell.strip() for cell in row] for row in rows])
    return text.getvalue()
