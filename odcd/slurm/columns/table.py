"""Formats in Slurm's three syntaxes, and their renderer.

-o "%.18i %9P"     letters with literal text between them; a dot aligns to the right, # makes the
                   column as wide as its widest cell
-O JobID:20,Name   names with widths, 20 if not given
--format=A,B%-20   sacct's names; % gives the width, a minus aligns to the left
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from odcd.slurm.usage import Usage, fail

MAX_FORMAT = 10_000
MAX_WIDTH = 4096
MAX_CELLS = 500
"""Of a format; %all has about a hundred, with the text between its columns."""
_LETTER = re.compile(r"%([.#]?)([0-9]{0,4})([A-Za-z])")
_LONG = re.compile(r"([^:]*)(?::(\.?)([+-]?[0-9]{0,4})(.?))?")
_SACCT = re.compile(r"([A-Za-z]+)(?:%(-?[0-9]{1,4}))?")


@dataclass(frozen=True, slots=True)
class Column:
    """value: the text of a row's cell. fields: the fields of the row that it reads. width: sacct's
    default; negative: aligned to the left."""

    header: str
    value: Callable[[Any], str]
    fields: tuple[str, ...] = ()
    width: int = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """column None: literal text. width 0: as long as the text; -1: as wide as the widest row (see
    fitted). cut: with a + at the end, as sacct does. after: literal text behind the cell."""

    column: Column | None
    width: int = 0
    right: bool = False
    after: str = ""
    cut: bool = False

    def render(self, text: str) -> str:
        if not self.width:
            return text + self.after
        if len(text) > self.width:
            text = f"{text[: self.width - 1]}+" if self.cut else text[: self.width]
        return (text.rjust(self.width) if self.right else text.ljust(self.width)) + self.after


Format = Sequence[Cell]


def letters(
    name: str, what: str, text: str, columns: Mapping[str, Column], every: str = ""
) -> tuple[Format, str]:
    """The cells of an -o format, and the complaints about its unknown letters, which are printed as
    they are. every: what %all means. Raises Usage if it has no letter at all."""
    if text == "%all" and every:
        text = every
    if len(text) > MAX_FORMAT:
        raise fail(name, f"the format has more than {MAX_FORMAT} characters")
    cells: list[Cell] = []
    complaints: list[str] = []
    at = 0
    for found in _LETTER.finditer(text):
        if found.start() > at:
            cells.append(Cell(None, after=text[at : found.start()]))
        column = columns.get(found[3])
        if column is None:
            complaints.append(f"{name}: error: Invalid {what} format specification: {found[3]}\n")
            cells.append(Cell(None, after=found[0]))
        else:
            width = -1 if found[1] == "#" else min(int(found[2] or 0), MAX_WIDTH)
            cells.append(Cell(column, width, found[1] == "."))
        at = found.end()
    if at == 0:
        raise fail(name, f"Incomplete format specification: {text}")
    if at < len(text):
        cells.append(Cell(None, after=text[at:]))
    return _few(name, cells), "".join(complaints)


def names(name: str, what: str, text: str, columns: Mapping[str, Column]) -> Format:
    """The cells of an -O format. Raises Usage."""
    cells: list[Cell] = []
    for part in text[:MAX_FORMAT].split(","):
        found = _LONG.fullmatch(part.strip())
        column = columns.get(found[1].strip().lower()) if found else None
        if found is None or column is None:
            raise fail(name, f"Invalid {what} format specification: {part.strip()}")
        if (found[3] or "").startswith("-"):
            raise fail(name, f"Invalid {what} format specification: {part.strip()}")
        width = min(int((found[3] or "").lstrip("+") or 20), MAX_WIDTH)
        cells.append(Cell(column, width, bool(found[2]), after=found[4] or ""))
    return _few(name, cells)


def sacct_names(
    name: str, texts: Iterable[str], columns: Mapping[str, Column], *, parsable: bool
) -> Format:
    """The cells of a --format. Raises Usage."""
    cells: list[Cell] = []
    for part in ",".join(texts)[:MAX_FORMAT].split(","):
        if not part.strip():
            continue
        found = _SACCT.fullmatch(part.strip())
        column = columns.get(found[1].lower()) if found else None
        if found is None or column is None:
            raise Usage(f'{name}: fatal: Invalid field requested: "{part.strip()}"\n')
        width = int(found[2]) if found[2] else column.width
        if parsable:
            cells.append(Cell(column))
        else:
            width = max(-MAX_WIDTH, min(width, MAX_WIDTH))
            cells.append(Cell(column, abs(width), width > 0, after=" ", cut=True))
    if not cells:
        raise Usage(f"{name}: fatal: No fields requested\n")
    return _few(name, cells)


def _few(name: str, cells: Format) -> Format:
    """Raises Usage."""
    if len(cells) > MAX_CELLS:
        raise fail(name, f"the format has more than {MAX_CELLS} columns and texts")
    return cells


def fitted(cells: Format, rows: Sequence[Any]) -> Format:
    """The cells of width -1 get the width of their widest text."""
    open_ = dict.fromkeys(cell.column for cell in cells if cell.column and cell.width < 0)
    widths = {
        column: max(len(column.header), *(len(column.value(row)) for row in rows), 0)
        for column in open_
    }
    return [
        replace(cell, width=widths[cell.column]) if cell.column and cell.width < 0 else cell
        for cell in cells
    ]


def fields_of(cells: Format) -> set[str]:
    return {field for cell in cells if cell.column for field in cell.column.fields}


def header_of(cells: Format) -> str:
    return _line(cells, lambda column: column.header)


def line_maker(cells: Format) -> Callable[[Any], str]:
    """The line of a row. A list has ten thousand of them, so each cell is one call."""
    makers = [_cell_maker(cell) for cell in cells]
    return lambda row: "".join([make(row) for make in makers])


def _cell_maker(cell: Cell) -> Callable[[Any], str]:
    column, width, after = cell.column, cell.width, cell.after
    if column is None:
        return lambda _row: after
    value = column.value
    if cell.cut or not width:
        return lambda row: cell.render(value(row))
    if cell.right:
        return lambda row: value(row)[:width].rjust(width) + after
    return lambda row: value(row)[:width].ljust(width) + after


def _line(cells: Format, text: Callable[[Column], str]) -> str:
    return "".join(
        cell.after if cell.column is None else cell.render(text(cell.column)) for cell in cells
    )


def lines(cells: Format, rows: Iterable[Any], *, header: bool) -> Iterator[str]:
    if header:
        yield header_of(cells)
    yield from map(line_maker(cells), rows)


def separated(
    cells: Format, rows: Iterable[Any], *, header: bool, separator: str, trailing: bool
) -> Iterator[str]:
    """--parsable and --parsable2."""
    end = separator if trailing else ""
    columns = [cell.column for cell in cells if cell.column]
    if header:
        yield separator.join(column.header for column in columns) + end
    for row in rows:
        yield separator.join(column.value(row) for column in columns) + end


def rules(cells: Format) -> str:
    """sacct's line of dashes below the header."""
    return "".join("-" * cell.width + cell.after for cell in cells)
