"""The printed output of a benchmark on a cluster, and the section of RESULTS.md that --write makes
from it."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Callable, Iterable, Sequence

from benchmarks.figures import HEAD, Figure, explained
from benchmarks.results import RESULTS, git, machine, with_section

WIDTH = 100


def cluster_of(nodes: int) -> str:
    """A description of the cluster, as the start of a sentence."""
    return (
        "kube-apiserver, kube-scheduler, kube-controller-manager 1.36 and etcd are real (etcd "
        f"without fsync); KWOK simulates the kubelets of {nodes:,} nodes with 8 GPUs"
    )


def report(
    parser: argparse.ArgumentParser, heading: str, setting: str,
    measured: Callable[[argparse.Namespace], Iterable[Figure]],
) -> int:  # fmt: skip
    """The complete main() of a benchmark. parser: with the benchmark's own options. setting:
    sentences about the setup, which go between those about odcd's commit and about the machine."""
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(HEAD, flush=True)
    figures: list[Figure] = []
    for figure in measured(options):
        figures.append(figure)
        print(figure.row(), flush=True)
    print("", *explained(figures), sep="\n")
    if options.write:
        facts = (
            f"Written by `{parser.prog} --write`, at commit {git('log', '-1', '--format=%h')}. "
            f"{setting} All of them, odcd, PostgreSQL (fsync on) and this benchmark share the "
            f"machine: {machine()}. Load average before all of them: {load:.1f}, at the end: "
            f"{os.getloadavg()[0]:.1f}."
        )
        text = RESULTS.read_text("utf-8")
        RESULTS.write_text(with_section(text, heading, section(heading, facts, figures)), "utf-8")
    return 0


def section(heading: str, facts: str, figures: Sequence[Figure]) -> str:
    """A section in the form of RESULTS.md. The last column, for Slurm, is empty here."""
    rows = [*HEAD.splitlines(), *(figure.row() for figure in figures)]
    lines = [
        heading,
        "",
        *textwrap.wrap(facts, WIDTH, break_long_words=False, break_on_hyphens=False),
        "",
        *(row.rsplit("|", 2)[0] + "|" for row in rows),
        "",
        *explained(figures),
    ]
    return "\n".join(lines) + "\n"
