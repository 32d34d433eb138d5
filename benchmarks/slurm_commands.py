"""Slurm's commands, whole processes beside odcctl: python -m benchmarks.slurm_commands [--write].

The pollers are processes that each run `squeue -h -j` with 50 ids once a second, as clients of
Slurm do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.daemon import Daemon, full
from benchmarks.figures import Figure, times_ms
from benchmarks.looking import fill
from benchmarks.report import report
from benchmarks.results import SLURM_COMMANDS
from benchmarks.submitting import MANY

RUNS = 30
POLLERS, IDS, SECONDS = 20, 50, 15.0


def measure() -> list[Figure]:
    figures: list[Figure] = []
    with full() as daemon:
        figures += [
            Figure(
                "`squeue -h -j ID`, whole process",
                times_ms(lambda: run(daemon, "squeue", "-hj1"), RUNS),
                "ms", 40, slurm="squeue 15-20 ms",
                note="Python's start dominates",
            ),
            Figure(
                "`odcctl queue -j 1`, whole process",
                times_ms(lambda: daemon.command("odcctl", "queue", "1"), RUNS // 2), "ms", None,
                note="the same question",
            ),
            Figure(
                "`sbatch -H --wrap true`, whole process",
                times_ms(lambda: run(daemon, "sbatch", "-H", "--wrap", "true"), RUNS), "ms", 50,
                note="one transaction, on disk when it returns",
            ),
            Figure("cost of 20 pollers", [polled(daemon)], "% of a core", 10,
                   note=f"the daemon's CPU time while {POLLERS} processes run `squeue -h -j` with "
                        f"{IDS} ids each once a second, for {SECONDS:.0f} s"),
        ]  # fmt: skip
    with full() as daemon, daemon.client() as client:
        fill(daemon, client, MANY)
        figures.append(
            Figure(
                f"`squeue` with {MANY:,} pending, whole process",
                times_ms(lambda: run(daemon, "squeue"), RUNS // 2), "ms", 250,
                slurm="squeue 165-226 ms",
                note="PostgreSQL writes JSON, the daemon decodes and formats it",
            )
        )  # fmt: skip
    return figures


def run(daemon: Daemon, name: str, *arguments: str) -> None:
    done = subprocess.run(
        [daemon.home / "slurm" / name, *arguments], env=daemon.environment, cwd=daemon.work,
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name} {arguments} failed: {done.stderr.decode()}")


def polled(daemon: Daemon) -> float:
    """The daemon's CPU time during the polls, as a percentage of one core."""
    ids = ",".join(map(str, range(1, IDS + 1)))
    over = threading.Event()

    def poll(number: int) -> None:
        over.wait(number / POLLERS)
        while not over.is_set():
            begun = time.monotonic()
            run(daemon, "squeue", "-h", "-j", ids)
            over.wait(max(0.0, begun + 1 - time.monotonic()))

    threads = [threading.Thread(target=poll, args=(number,)) for number in range(POLLERS)]
    before, begun = cpu_s(daemon.pid), time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    used, took = cpu_s(daemon.pid) - before, time.monotonic() - begun
    over.set()
    for thread in threads:
        thread.join()
    return 100 * used / took


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.slurm_commands", description=__doc__
    )
    setting = "A client's whole process is measured."
    return report(parser, SLURM_COMMANDS, setting, lambda _: measure())


if __name__ == "__main__":
    sys.exit(main())
