"""The Standard Workload Format of the Parallel Workloads Archive: 18 fields per line, -1 unknown.

Source: Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers",
JSSPP 1999, and https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from odcd.simulate.trace import NOBODY, Fields, TraceJob, read_lines

FIELDS = 18
SUBMIT, RUN, ALLOCATED, REQUESTED, ESTIMATE, USER, EXECUTABLE = 1, 3, 4, 7, 8, 11, 13


def read(path: Path) -> Iterator[TraceJob]:
    """Processors are those requested, else those allocated; an unknown estimate is the run time.

    Raises BadRequest with the malformed line.
    """
    for number, line in read_lines(path):
        values = line.split()
        fields = Fields(path, number, values)
        if len(values) != FIELDS:
            raise fields.wrong(f"{len(values)} fields instead of {FIELDS}")
        submit_s = fields.number(SUBMIT, "submit time (field 2)")
        if submit_s < 0:
            raise fields.wrong(f"submit time (field 2) is negative: {submit_s}")
        run_s = fields.number(RUN, "run time (field 4)")
        allocated = fields.number(ALLOCATED, "allocated processors (field 5)")
        requested = fields.number(REQUESTED, "requested processors (field 8)")
        estimate_s = fields.number(ESTIMATE, "requested time (field 9)")
        user = fields.number(USER, "user (field 12)")
        executable = fields.number(EXECUTABLE, "executable (field 14)")
        yield TraceJob(
            submit_s=submit_s,
            run_s=run_s,
            gpus=requested if requested > 0 else allocated,
            limit_s=estimate_s if estimate_s > 0 else run_s,
            user=f"u{user}" if user >= 0 else NOBODY,
            name=f"app{executable}" if executable >= 0 else "job",
        )
