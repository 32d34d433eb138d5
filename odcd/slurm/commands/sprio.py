"""sprio's arguments, columns and formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odcd.slurm.columns.table import Column, Format, letters, lines
from odcd.slurm.commands.getopt import Arguments, Flag

NAME = "sprio"
OPTIONS = (
    Flag("noheader", "noheader", "h", help="no header"),
    Flag("jobs", "jobs", "j", "required", help="these jobs"),
    Flag("long", "long", "l", help="more columns"),
    Flag("users", "user", "u", "required", help="jobs of these users"),
    Flag("partitions", "partition", "p", "required", help="jobs of these partitions"),
    Flag("weights", "weights", "w", help="the weights of the factors"),
    Flag("norm", "norm", "n", help="factors between 0 and 1"),
    Flag("format", "format", "o", "required", help="the columns: %i %.10Y"),
    Flag("sort", "sort", "S", "required", refused="jobs are listed by priority"),
    Flag("clusters", "clusters", "M", "required", refused="this server is one cluster"),
    Flag("help", "help", help="this text"),
    Flag("usage", "usage", help="a short text"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
)
SHORT = "%.15i %9r %.10Y %.10A %.10F %.10J %.10P %.10Q"
LONG = "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.11N %.20T"
_FACTORS = {"a": "age", "f": "fairshare", "j": "size", "p": "partition", "q": "qos"}
_HEADERS = {"a": "AGE", "f": "FAIRSHARE", "j": "JOBSIZE", "p": "PARTITION", "q": "QOS"}
_MOST_PRIORITY = 2**32 - 1

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
    "S": _always("SITE", "0"), "t": _always("TRES", ""), "T": _always("TRES", ""),
    "N": _number("NICE", lambda row: str(row["nice"])),
    "y": _number("PRIORITY", lambda row: f"{row['priority'] / _MOST_PRIORITY:.14f}"),
    "Y": _number("PRIORITY", lambda row: str(row["priority"])),
}  # fmt: skip


def format_of(given: Arguments, environment: Mapping[str, str]) -> tuple[Format, str]:
    """The cells, and complaints about unknown letters. Raises Usage."""
    text = given.last("format") or environment.get("SPRIO_FORMAT")
    if not text:
        text = LONG if given.has("long") else SHORT
        if given.has("norm"):
            for letter in (*_FACTORS, "b", "t", "y"):
                text = text.replace(letter.upper(), letter)
    return letters(NAME, "job", text, COLUMNS)


def render(cells: Format, jobs: Sequence[Row], weights: Row, given: Arguments) -> str:
    rows: Sequence[Row] = jobs
    if given.has("weights"):
        rows = [{"is_weights": True, "id": "Weights", "points": weights}]
    found = lines(cells, rows, header=not given.has("noheader"))
    return "".join(f"{line}\n" for line in found)
