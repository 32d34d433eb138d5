"""Replay real workloads and compare with known figures: python -m benchmarks.traces FOLDER.

FOLDER has the traces (docs/concepts/policies.md names their sources); each run is one `odcd
simulate`. Results are kept as JSON in --keep, one file per run, and such runs are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import RESULTS, TRACES, with_section

KTH, KTH_EASY_MAX_S = ("KTH-SP2-1996-2.1-cln.swf.gz", "--cluster", "100x1"), 262_194
PHILLY, PHILLY_EASY_MAX_S = ("philly-2017-a.csv.gz", "--cluster", "27x8"), 1_128_342
LUBLIN = ("lublin_256.swf.gz", "--cluster", "256x1")
EASY = ("--policy", "fifo", "--plan-depth", "1")


@dataclass(frozen=True)
class Bounds:
    """The target of a figure, and the known value that it is based on."""

    upper: float
    lower: float = 0.0
    known: float | None = None

    @classmethod
    def near(cls, known: float, percent: float) -> Bounds:
        return cls(known * (1 + percent / 100), known * (1 - percent / 100), known)

    def beside(self, value: float, digits: int) -> str:
        met = f"{value:,.{digits}f}"
        if not self.lower <= value <= self.upper:
            met = f"**{met}**"
        if self.known is not None:
            percent = 100 * (self.upper / self.known - 1)
            return f"{met} ({self.known:,.{digits}f} ± {percent:.2g} %)"
        span = f"{self.lower:g} to {self.upper:g}" if self.lower else f"≤ {self.upper:,.{digits}f}"
        return f"{met} ({span})"


@dataclass(frozen=True)
class Run:
    what: str
    options: tuple[str, ...]
    """Options of odcd simulate; the first is the trace."""
    slowdown: Bounds | None = None
    mean_wait: Bounds | None = None
    max_wait: Bounds | None = None
    eta_error: Bounds | None = None
    coverage: Bounds | None = None

    @property
    def foretells(self) -> bool:
        return "--no-eta" not in self.options


RUNS = {
    "kth-fifo": Run(
        "KTH-SP2, `fifo`, EASY", (*KTH, *EASY),
        Bounds.near(92.7, 1.5), Bounds.near(6837, 1.5), Bounds.near(KTH_EASY_MAX_S, 1.5),
        Bounds(8500), Bounds(0.83, 0.77),
    ),
    "kth-plain": Run(
        "the same, predicting no starts", (*KTH, *EASY, "--no-eta"),
        Bounds.near(92.7, 1.5), Bounds.near(6837, 1.5), Bounds.near(KTH_EASY_MAX_S, 1.5),
    ),
    "kth-all": Run(
        "KTH-SP2, `fifo`, conservative",
        (*KTH, "--policy", "fifo", "--plan-depth", "all", "--no-eta"),
        Bounds.near(89.9, 3), Bounds.near(7251, 3),
    ),
    "kth-true": Run(
        "KTH-SP2, `fifo`, EASY, true run times", (*KTH, *EASY, "--estimates", "true", "--no-eta"),
        Bounds.near(71.75, 1.5),
    ),
    "kth-sjbf": Run(
        "KTH-SP2, `fifo`, EASY, SJBF", (*KTH, *EASY, "--backfill", "sjbf", "--no-eta"),
        Bounds.near(69.4, 2),
    ),
    "kth-wfp3": Run(
        "KTH-SP2, `wfp3`, EASY", (*KTH, "--policy", "wfp3", "--plan-depth", "1", "--no-eta"),
        Bounds.near(54.4, 3),
    ),
    "kth-odc": Run(
        "KTH-SP2, **the default, `odc`**", KTH,
        Bounds(55), None, Bounds(1.3 * KTH_EASY_MAX_S),
    ),
    "philly-fifo": Run(
        "Philly, `fifo`, EASY", (*PHILLY, *EASY),
        None, None, Bounds.near(PHILLY_EASY_MAX_S, 1.5), None, Bounds(0.90, 0.70),
    ),
    "philly-wfp3": Run(
        "Philly, `wfp3`, EASY", (*PHILLY, "--policy", "wfp3", "--plan-depth", "1", "--no-eta"),
        Bounds.near(5.9, 10), None, Bounds(1.02 * PHILLY_EASY_MAX_S),
    ),
    "philly-odc": Run(
        "Philly, **the default, `odc`**", PHILLY,
        Bounds(6), None, Bounds(1.05 * PHILLY_EASY_MAX_S), None, Bounds(0.90, 0.70),
    ),
    "lublin-fifo": Run("Lublin-1, `fifo`, EASY", (*LUBLIN, *EASY, "--no-eta")),
    "lublin-wfp3": Run(
        "Lublin-1, `wfp3`, EASY", (*LUBLIN, "--policy", "wfp3", "--plan-depth", "1", "--no-eta")
    ),
    "lublin-odc": Run("Lublin-1, **the default, `odc`**", (*LUBLIN, "--no-eta")),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traces", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the traces are")
    parser.add_argument("--only", action="append", choices=RUNS, metavar="NAME",
                        help=f"one of: {', '.join(RUNS)}; may be repeated")  # fmt: skip
    parser.add_argument("--keep", type=Path, help="a folder for the figures of each run")
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        keep: Path = options.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        rows = [
            row(RUNS[name], figures(RUNS[name], options.folder, keep / f"{name}.json"))
            for name in options.only or RUNS
        ]
    text = "\n".join(section(rows)) + "\n"
    print(text)
    if options.write:
        RESULTS.write_text(with_section(RESULTS.read_text("utf-8"), TRACES, text))
    return 0


def figures(run: Run, folder: Path, kept: Path) -> dict[str, Any]:
    if not kept.exists():
        begin = time.perf_counter()
        done = subprocess.run(
            [str(Path(sys.executable).with_name("odcd")), "simulate", str(folder / run.options[0]),
             *run.options[1:], "--json"],
            stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        result = json.loads(done.stdout)
        result["took_s"] = round(time.perf_counter() - begin, 1)
        kept.write_text(json.dumps(result))
    return json.loads(kept.read_text("utf-8"))


def row(run: Run, result: dict[str, Any]) -> str:
    def cell(bounds: Bounds | None, value: float, digits: int) -> str:
        return f"{value:,.{digits}f}" if bounds is None else bounds.beside(value, digits)

    eta, alone = result["eta"], "took_s" in result
    cells = [
        run.what,
        f"{result['jobs']:,}",
        cell(run.slowdown, result["mean_bounded_slowdown"], 2),
        cell(run.mean_wait, result["mean_wait_s"], 0),
        cell(run.max_wait, result["max_wait_s"], 0),
        f"{100 * result['utilization']:.1f} %",
        cell(run.eta_error, eta["mae_s"], 0) if run.foretells else "",
        cell(run.coverage, eta["coverage_p10_p90"], 3) if run.foretells else "",
        f"{result['passes']:,}",
        f"{result['pass_ms']['p50']:.1f} / {result['pass_ms']['p99']:.1f}" if alone else "",
        f"{result['took_s']:,.0f} s" if alone else "",
    ]
    return f"| {' | '.join(cells)} |"


def section(rows: list[str]) -> list[str]:
    return [
        TRACES,
        "",
        "Written by `python -m benchmarks.traces FOLDER --write`; each row is one `odcd simulate`,",
        "whose options are in `benchmarks/traces.py`. In brackets: the results of other "
        "simulators,",
        "or the target; bold if it is not met.",
        f"Times, on {os.cpu_count()} cores, of runs that had the machine to themselves; times of "
        "passes",
        "in ms.",
        "",
        "| replay | jobs | mean bounded slowdown | mean wait, s | maximum wait, s | used "
        "| ETA: mean error, s | ETA: in p10..p90 | passes | p50 / p99 | took |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]


if __name__ == "__main__":
    sys.exit(main())
