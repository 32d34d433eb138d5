"""Write a workload as a trace that this and other simulators can read."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from odcd.errors import BadRequest
from odcd.simulate.cluster import Cluster
from odcd.simulate.trace import TraceJob

FORMS = (".swf", ".csv")


def trace_form(path: Path) -> str:
    """Return .swf or .csv. Raises BadRequest for any other name."""
    form = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if form not in FORMS:
        raise BadRequest(
            f"{path} has no known trace format",
            "End the name in .swf or .csv, optionally followed by .gz.",
        )
    return form


def save_trace(path: Path, jobs: Sequence[TraceJob], cluster: Cluster, note: str) -> None:
    """note: the origin of the jobs, for the head of the file."""
    form = trace_form(path)
    text = _swf(jobs, cluster, note) if form == ".swf" else _csv(jobs, cluster, note)
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _machine(cluster: Cluster) -> str:
    return f"simulated machine: nodes={cluster.nodes} gpus_per_node={cluster.gpus_per_node}"


def _swf(jobs: Sequence[TraceJob], cluster: Cluster, note: str) -> str:
    lines = [
        "; Version: 2.2",
        f"; Note: {note}",
        f"; {_machine(cluster)}",
        f"; MaxJobs: {len(jobs)}",
        f"; MaxProcs: {cluster.gpus}",
    ]
    users = _numbers(job.user for job in jobs)
    names = _numbers(job.name for job in jobs)
    lines += [
        f"{number} {job.submit_s} -1 {job.run_s} {job.gpus} -1 -1 {job.gpus} {job.limit_s} -1 1 "
        f"{users[job.user]} -1 {names[job.name]} -1 -1 -1 -1"
        for number, job in enumerate(jobs, start=1)
    ]
    return "\n".join([*lines, ""])


def _csv(jobs: Sequence[TraceJob], cluster: Cluster, note: str) -> str:
    written = StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(("submit_s", "duration_s", "gpus", "user", "name", "est_menu_s"))
    for job in jobs:
        lines.writerow((job.submit_s, job.run_s, job.gpus, job.user, job.name, job.limit_s))
    return f"# {note}\n# {_machine(cluster)}\n{written.getvalue()}"


def _numbers(texts: Iterable[str]) -> dict[str, int]:
    """SWF only has numbers: u7 and app7 become 7, and are read back as such; other names are
    numbered."""
    distinct = list(dict.fromkeys(texts))
    found = {text: re.fullmatch(r"(?:u|app)(\d{1,9})", text) for text in distinct}
    if all(found.values()):
        return {text: int(match[1]) for text, match in found.items() if match}
    return {text: number for number, text in enumerate(distinct, start=1)}
