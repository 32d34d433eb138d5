"""The options of `odcd simulate`, as annotated types."""

from __future__ import annotations

from typing import Annotated, Literal

import click
import typer
from click.shell_completion import CompletionItem

from odcctl.text.durations import for_daemon
from odcd.cli.params import FILE, PathName
from odcd.errors import BadRequest

MAX_WINDOW_S = 3660 * 86_400


def plan_depth(text: str) -> int:
    """How many blocked jobs have a planned start; `all` is more than a queue has."""
    from odcd.simulate.policy import ALL

    if text == "all":
        return ALL
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise click.BadParameter(f'takes a whole number of at least 0, or all, not "{text}"')
    return int(text)


def runs(text: str) -> int:
    """How many shaken runs: two are needed for a standard error."""
    from odcd.simulate.shake import MAX_RUNS

    if text.isascii() and text.isdecimal() and len(text) < 10 and 2 <= int(text) <= MAX_RUNS:
        return int(text)
    raise click.BadParameter(f'takes a whole number from 2 to {MAX_RUNS}, not "{text}"')


def max_wait(text: str) -> int:
    """Seconds; 0 for no cap."""
    from odcd.slurm.times import parse_span

    return 0 if text == "none" else parse_span(for_daemon(text), "--max-wait")


def window(text: str, option: str = "--history") -> int:
    """Seconds of a window of history."""
    from odcd.slurm.times import parse_span

    seconds = parse_span(for_daemon(text), option)
    if not 60 <= seconds <= MAX_WINDOW_S:
        raise BadRequest(
            f'{option} "{text}" is not between one minute and ten years', "For example 30d."
        )
    return seconds


class TraceName(PathName):
    """The name of a trace file, or of the trace that is built in."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from odcd.simulate.workloads import SAMPLE

        built_in = [CompletionItem(SAMPLE)] if SAMPLE.startswith(incomplete) else []
        return [*built_in, *super().shell_complete(ctx, param, incomplete)]


Traces = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TRACE...", click_type=TraceName("file"),
        help="a file in the Standard Workload Format, a GPU CSV, or a site's history "
        "(odcd history export --anonymise), plain or gzip; or philly-sample",
    ),
]  # fmt: skip
ClusterSize = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="NODESxGPUS",
        help="27x8, or 100x1 for a flat machine; default: the size in the header of the trace",
    ),
]  # fmt: skip
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="NAME",
        help="the policy, or several to compare: odc,wfp3; default: that of a new installation",
    ),
]  # fmt: skip
PlanDepth = Annotated[
    int | None,
    typer.Option(
        "--plan-depth", metavar="N|all", parser=plan_depth,
        help="how many blocked jobs have a planned start",
    ),
]  # fmt: skip
Backfill = Annotated[
    Literal["order", "fifo", "sjbf", "safbf"] | None,
    typer.Option("--backfill", help="the order of backfill candidates"),
]
MaxWait = Annotated[
    int | None,
    typer.Option(
        "--max-wait", metavar="48h|none", parser=max_wait,
        help="jobs that waited longer come first; also as 30 (minutes), 4h or 2-0",
    ),
]  # fmt: skip
EstimateKind = Annotated[
    Literal["user", "true", "last2"],
    typer.Option(
        "--estimates",
        help="plan with the users' limits, the true run times, or the mean of the user's "
        "last two, increased when a job runs longer; it never ends a job",
    ),
]
NoEta = Annotated[
    bool, typer.Option("--no-eta", help="do not predict starts, which is faster")
]  # fmt: skip
JobCount = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="replay the first N jobs only"),
]
History = Annotated[
    int | None,
    typer.Option(
        "--history", metavar="30d", parser=window,
        help="replay the jobs of the last 30 days of this queue, on its nodes and with its "
        "settings, and compare with what really happened",
    ),
]  # fmt: skip
Add = Annotated[
    list[str] | None,
    typer.Option(
        "--add", metavar="TYPE:GPUSxNODES",
        help="with a history: add nodes; h100:8x4 is four nodes with eight h100 each",
    ),
]  # fmt: skip
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="NODES", help="with a history: without these nodes"),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="WHAT=VALUE",
        help="with a history: change a limit or a QOS: qos:normal:user:gpus=16, "
        "partition:main:user:jobs=none, qos:high:priority=1000",
    ),
]  # fmt: skip
Shake = Annotated[
    int | None,
    typer.Option(
        "--shake", metavar="N", parser=runs,
        help="replay N times, with each submission moved by 0 to 10 minutes, and print the mean "
        "and standard error of each figure",
    ),
]  # fmt: skip
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", metavar="N", min=1, max=512,
        help="with --shake: replays that run at the same time; default: the number of cores",
    ),
]  # fmt: skip
Recipe = Annotated[
    str | None,
    typer.Option(
        "--generate", metavar="RECIPE",
        help="replay a generated workload: lublin,jobs=5000,load=0.8,users=50,seed=1",
    ),
]  # fmt: skip
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", click_type=FILE,
        help="write it as a trace: .swf or .csv, or .gz",
    ),
]  # fmt: skip
AsJson = Annotated[
    bool, typer.Option("--json", help="print one JSON object; for several traces, a list")
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="FILE", click_type=FILE,
        help="write a CSV: id, submit, start, end, nodes",
    ),
]  # fmt: skip
Picture = Annotated[
    str | None,
    typer.Option(
        "--picture", metavar="FILE.svg", click_type=FILE,
        help="draw allocated GPUs and waiting jobs over time",
    ),
]  # fmt: skip
