"""sprio's arguments, columns and formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from odcd.slurm.columns.table import Column, Format, letters, lines
from odcd.slurm.commands.getopt import Arguments, Flag
from odcd.slurm.usage import Usage

NAME = "sprio"
OPTIONS = (
    Flag("noheader", "noheader", "h", help="no header"),
    Flag("jobs", "jobs", "j", "optional", help="these jobs"),
    Flag("long", "long", "l", help="more columns"),
    Flag("users", "user", "u", "required", help="jobs of these users"),
    Flag("users", "users", "", "required", help="the same as --user"),
    Flag("partitions", "partition", "p", "required", help="jobs of these partitions"),
    Flag("weights", "weights", "w", help="the weights of the factors"),
    Flag("norm", "norm", "n", help="factors between 0 and 1"),
    Flag("format", "format", "o", "required", help="the columns: %i %.10Y"),
    Flag("sort", "sort", "S", "required", help="the order, by letters of columns: -y,u"),
    Flag("clusters", "clusters", "M", "required", refused="this server is one cluster"),
    Flag("help", "help", help="this text"),
    Flag("helpformat", "helpformat", help="the letters of --format"),
    Flag("federation", "federation", ignored=True, help="has no effect"),
    Flag("local", "local", ignored=True, help="has no effect"),
    Flag("sibling", "sibling", ignored=True, help="has no effect"),
    Flag("usage", "usage", help="a short text"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
)
LONG = "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.11N %.20T"
LONG_NORM = "%.15i %9r %.8u %.8o %10y %10a %10b %10f %10j %10p %10n %10q %20t"
_FACTORS = {"a": "age", "f": "fairshare", "j": "size", "p": "partition", "q": "qos"}
_HEADERS = {"a": "AGE", "f": "FAIRSHARE", "j": "JOBSIZE", "p": "PARTITION", "q": "QOS"}
_MOST_PRIORITY = 2**32 - 1
PER_LINE = 8
"""Letters in a line of --helpformat."""

Row = Mapping[str, Any]


def _text(header: str, key: str) -> Column:
    return Column(header, lambda row: str(row.get(key) or ""), ())


def _always(header: str, text: str) -> Column:
    return Column(header, lambda row: text, ())


def _number(header: str, value: Callable[[Row], str]) -> Column:
    """Blank in the row of the weights."""
    return Column(header, lambda row: "" if "is_weights" in row else value(row), ())


def _points(header: str, name: str) -> Column:
    return Column(header, lambda row: f"{row['points'][name]:.0f}", ())


def _factor(header: str, name: str) -> Column:
    def value(row: Row) -> str:
        # The row of the weights has them in every format.
        if "is_weights" in row:
            return f"{row['points'][name]:.0f}"
        return f"{row['factors'][name]:.7f}"

    return Column(header, value, ())


COLUMNS = {
    **{letter: _factor(_HEADERS[letter], name) for letter, name in _FACTORS.items()},
    **{letter.upper(): _points(_HEADERS[letter], name) for letter, name in _FACTORS.items()},
    "b": _always("ASSOC", "0"), "B": _always("ASSOC", "0"), "c": _always("CLUSTER", "odc"),
    "i": _text("JOBID", "id"), "n": _text("QOSNAME", "qos"), "o": _text("ACCOUNT", "account"),
    "r": _text("PARTITION", "partition"), "u": _text("USER", "user"),
    "S": Column("SITE", lambda row: "1" if "is_weights" in row else "0", ()),
    "t": _always("TRES", ""), "T": _always("TRES", ""),
    "N": _number("NICE", lambda row: str(row["nice"])),
    "y": _number("PRIORITY", lambda row: f"{row['priority'] / _MOST_PRIORITY:.14f}"),
    "Y": _number("PRIORITY", lambda row: str(row["priority"])),
}  # fmt: skip


def default_format(given: Arguments, weights: Row) -> str:
    """Slurm's: a short one has a column for each factor with a weight."""
    norm = given.has("norm")
    if given.has("long"):
        return LONG_NORM if norm else LONG
    words = ["%.15i", "%9r", *(["%.8u"] if given.has("users") else [])]
    words += ["%10y"] if norm else ["%.10Y", "%.10S"]
    for letter, name in _FACTORS.items():
        if weights[name]:
            words.append(f"%10{letter}" if norm else f"%.10{letter.upper()}")
    return " ".join(words)


def format_of(given: Arguments, environment: Mapping[str, str], weights: Row) -> tuple[Format, str]:
    """The cells, and complaints about unknown letters. Raises Usage."""
    text = given.last("format")
    if text is not None and given.has("long"):
        raise Usage(f"{NAME}: fatal: Options -o(--format) and -l(--long) are mutually exclusive. "
                    "Please remove one and retry.\n")  # fmt: skip
    if text is None and not given.has("long"):
        text = environment.get("SPRIO_FORMAT") or None
    return letters(NAME, "job", text or default_format(given, weights), COLUMNS)


def help_of_format() -> str:
    """Eight letters a line."""
    names = [f"%{letter:<5}" for letter in COLUMNS]
    return "".join(
        "".join(names[at : at + PER_LINE]) + "\n" for at in range(0, len(names), PER_LINE)
    )


def sorted_rows(rows: Sequence[Row], text: str | None) -> Sequence[Row]:
    """In the order of --sort. Raises Usage."""
    found = list(rows)
    for word in reversed((text or "").split(",")):
        letter = word.strip().lstrip("+-")
        if text is None or not letter:
            continue
        column = COLUMNS.get(letter)
        if column is None:
            raise Usage(f"{NAME}: error: Invalid sort specification: {word[:20]}\n")
        found.sort(key=partial(_place, column), reverse=word.strip().startswith("-"))
    return found


def _place(column: Column, row: Row) -> tuple[float, str]:
    """Numbers before names."""
    text = column.value(row)
    try:
        return float(text), ""
    except ValueError:
        return inf, text


def render(cells: Format, jobs: Sequence[Row], weights: Row, given: Arguments) -> str:
    """Raises Usage."""
    rows = sorted_rows(jobs, given.last("sort"))
    if given.has("weights"):
        rows = [{"is_weights": True, "id": "Weights", "points": weights}]
    found = lines(cells, rows, header=not given.has("noheader"))
    return "".join(f"{line}\n" for line in found)
