"""The options of odcctl plan."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from odcctl.cli import complete


def _of_job(*names: str, metavar: str, help: str, complete: Any = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=f"what-if: {help}", autocompletion=complete)


Values = list[str] | None
Nodes = Annotated[
    Values,
    _of_job("--nodes", "-N", metavar="COUNTS", help="numbers of nodes: 1,2,4; 2-4 is a range"),
]
Gres = Annotated[
    Values, _of_job("--gres", metavar="GRES", help="GPUs per node: gpu:h100:8,gpu:l4:4")
]
GpusPerNode = Annotated[
    Values, _of_job("--gpus-per-node", metavar="GPUS", help="GPUs per node: 4,8 or h100:4")
]
Gpus = Annotated[Values, _of_job("--gpus", "-G", metavar="GPUS", help="total GPUs: 1,8,16")]
Times = Annotated[
    Values, _of_job("--time", "-t", metavar="TIMES", help="time limits: 1h,4h,1-00:00:00")
]
Cpus = Annotated[
    Values, _of_job("--cpus-per-task", "-c", metavar="COUNTS", help="CPUs per node: 8,64")
]
Mem = Annotated[Values, _of_job("--mem", metavar="SIZES", help="memory per node: 64G,256G")]
Qos = Annotated[
    Values, _of_job("--qos", "-q", metavar="NAMES", help="each of these QOS", complete=complete.qos)
]
Account = Annotated[
    Values,
    _of_job(
        "--account",
        "-A",
        metavar="NAMES",
        help="each of these accounts",
        complete=complete.accounts,
    ),
]
Partition = Annotated[
    Values,
    _of_job(
        "--partition",
        "-p",
        metavar="NAMES",
        help="any of these partitions",
        complete=complete.partitions,
    ),
]
Constraint = Annotated[
    Values, _of_job("--constraint", "-C", metavar="FEATURES", help="nodes with these features")
]
NodeList = Annotated[
    Values,
    _of_job("--nodelist", "-w", metavar="NODES", help="only these nodes", complete=complete.nodes),
]
Exclude = Annotated[
    Values,
    _of_job(
        "--exclude", "-x", metavar="NODES", help="none of these nodes", complete=complete.nodes
    ),
]
Exclusive = Annotated[bool, typer.Option("--exclusive", help="what-if: only whole nodes")]
Licenses = Annotated[
    Values,
    _of_job(
        "--licenses",
        "-L",
        metavar="NAMES",
        help="all of these licences",
        complete=complete.licences,
    ),
]
Diff = Annotated[
    bool, typer.Option("--diff", help="show planned starts that moved between two passes or times")
]
Gantt = Annotated[
    bool, typer.Option("--gantt", help="draw running, planned and booked work on each node")
]
Hours = Annotated[
    int | None,
    typer.Option("--hours", metavar="N", help="gantt: hours to show, 1 to 744; default 24"),
]
OnNodes = Annotated[
    Values,
    typer.Option(
        "--node",
        metavar="NAMES",
        help="gantt: only these nodes, separated by commas",
        autocompletion=complete.nodes,
    ),
]
OfTypes = Annotated[
    Values,
    typer.Option(
        "--type",
        metavar="TYPES",
        help="gantt: only nodes of these GPU types",
        autocompletion=complete.gpu_types,
    ),
]
WhatIf = Annotated[
    bool,
    typer.Option(
        "--what-if", help="show when such jobs would start, and which jobs they would delay"
    ),
]
Ends = Annotated[
    Values,
    typer.Argument(metavar="A [B]", help="diff: two passes or times, or one to compare with now"),
]
