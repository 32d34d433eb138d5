"""GPU traces as CSV: a header line, then one job per line.

Columns: submit_s, duration_s, gpus; user, vc (virtual cluster), name and est_menu_s (the time
limit) may be empty or missing; other columns are ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from odcd.errors import BadRequest
from odcd.simulate.trace import NOBODY, Fields, TraceJob, read_lines

NEEDED = ("submit_s", "duration_s", "gpus")


def read(path: Path) -> Iterator[TraceJob]:
    """Without a user, the virtual cluster is used; a missing time limit is the run time.

    Raises BadRequest with the malformed line.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return
    header = [name.strip() for name in first[1].split(",")]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise BadRequest(
            f"{path}, line {first[0]}: the header has no column {', '.join(missing)}",
            f"Its first line must name the columns {', '.join(NEEDED)}.",
        )
    at = {name: index for index, name in enumerate(header)}
    for number, line in lines:
        try:
            values = next(csv.reader([line]))
        except csv.Error as error:
            raise Fields(path, number, []).wrong(str(error)) from None
        fields = Fields(path, number, values)
        if len(values) != len(header):
            raise fields.wrong(f"{len(values)} fields instead of {len(header)}")
        submit_s = fields.number(at["submit_s"], "submit_s")
        if submit_s < 0:
            raise fields.wrong(f"submit_s is negative: {submit_s}")
        run_s = fields.number(at["duration_s"], "duration_s")
        limit = at.get("est_menu_s")
        limit_s = fields.number(limit, "est_menu_s") if limit and values[limit].strip() else 0
        name = values[at["name"]].strip() if "name" in at else ""
        who = [values[at[column]].strip() for column in ("user", "vc") if column in at]
        yield TraceJob(
            submit_s=submit_s,
            run_s=run_s,
            gpus=fields.number(at["gpus"], "gpus"),
            limit_s=limit_s if limit_s > 0 else run_s,
            user=next(filter(None, who), NOBODY),
            name=name or "job",
        )
