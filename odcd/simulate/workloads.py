"""The sources of workloads: a trace at a path, or the sample that comes with odc."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from odcd.errors import BadRequest
from odcd.simulate import gpu_csv, swf
from odcd.simulate.cluster import Cluster, parse_cluster
from odcd.simulate.trace import Reader, TraceJob, open_trace, read_lines

SAMPLE = "philly-sample"
SAMPLE_FILE = Path(__file__).parent / "data" / "philly-sample.csv.gz"

MACHINES = (
    (
        re.compile(r"^[#;] *simulated machine: *nodes=(\d+) gpus_per_node=(\d+)", re.MULTILINE),
        "{}x{}",
    ),
    (re.compile(r"^; *MaxProcs: *(\d+)", re.MULTILINE), "{}x1"),
)
"""How comments at the head of a trace describe its machine, and the resulting cluster."""
HEAD_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace, unchanged. machine: the machine it ran on, according to its head."""

    name: str
    jobs: Sequence[TraceJob]
    machine: Cluster | None


def read_trace(text: str) -> Trace:
    """Read the sample, or the trace at a path: SWF or GPU CSV (detected by content), plain or gzip.

    Raises BadRequest when it does not exist, or with the malformed line.
    """
    path = SAMPLE_FILE if text == SAMPLE else Path(text)
    if not path.is_file():
        raise BadRequest(
            f"trace {text} {'is not a file' if path.exists() else 'does not exist'}",
            f"Name a file in the Standard Workload Format or a GPU CSV; {SAMPLE} is built in.",
        )
    jobs = list(_reader(path)(path))
    if not jobs:
        raise BadRequest(f"trace {text} has no jobs", "Check that it is the right file.")
    return Trace(name=SAMPLE if text == SAMPLE else path.name, jobs=jobs, machine=_machine(path))


def _reader(path: Path) -> Reader:
    first = next(read_lines(path), (0, ""))[1]
    return gpu_csv.read if "," in first else swf.read


def _machine(path: Path) -> Cluster | None:
    with open_trace(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8", "replace")
    for pattern, form in MACHINES:
        if found := pattern.search(head):
            return parse_cluster(form.format(*found.groups()))
    return None
