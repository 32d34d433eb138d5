"""The same figures of Slurm on this machine, in the same run: python -m benchmarks.slurm.

Needs root, munged, slurmctld, slurmd and slurmrestd (Debian's slurmctld, slurmd, slurm-client,
slurmrestd and munge). Slurm is tuned for short waits: no delay before a batch job is considered, no
pause between scheduling runs, no accounting, no task plugin; the state is on the same disk.
"""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.client import request, send_all
from benchmarks.figures import number, percentile, timed_ms
from benchmarks.slurm_server import CLIENTS, CPUS, NotInstalled, Slurm, api, running, wait_until

SUBMITS = 2_000
TRUES = 1_000
FIRST_LINES = 30
SUBMIT = "/slurm/v0.0.38/job/submit"


def measure(runs: int) -> dict[str, str]:
    """The cells of the column for Slurm, by the name of the figure's subject."""
    with running() as slurm:
        cells = {"latency": _first_lines(slurm), "true": _trues(slurm, runs)}
        # A job that uses the whole node: all later ones wait.
        slurm.run("sbatch", "-Q", "-n", str(CPUS), "--wrap", "exec sleep 100000")
        slurm.until(1)
        wait_until(lambda: slurm.run("squeue", "-h", "-t", "R") != "")
        cells |= _submits(slurm)
        cells |= _arrays_and_cancels(slurm, runs)
    return cells


def _first_lines(slurm: Slurm) -> str:
    fifo = slurm.folder / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDWR)
    took: list[float] = []
    pause = random.Random(1)
    for _ in range(FIRST_LINES):
        # Its scheduler looks once a second: submits at equal times within a second would mislead.
        time.sleep(0.2 + pause.random())
        begin = time.perf_counter()
        slurm.run("sbatch", "-Q", "-o", "/dev/null", "--wrap", f"echo >{fifo}")
        os.read(reading, 1)
        took.append((time.perf_counter() - begin) * 1000)
        slurm.until(0)
    os.close(reading)
    return f"{percentile(took, 0.5):,.0f} / {percentile(took, 0.95):,.0f} ms (whole sbatch)"


def _trues(slurm: Slurm, runs: int) -> str:
    rates: list[float] = []
    for _ in range(runs):
        begin = time.perf_counter()
        slurm.run("sbatch", "-Q", "-o", "/dev/null", f"--array=1-{TRUES}", "--wrap", "true")
        rates.append(TRUES / (slurm.until(0) - begin))
    return f"{number(percentile(rates, 0.5))} jobs/s (one array)"


def _submits(slurm: Slurm) -> dict[str, str]:
    """By the REST API and by sbatch; each with 8 clients."""
    script = "#!/bin/sh\ntrue\n"
    job = {"name": "submit", "current_working_directory": "/tmp", "environment": {"PATH": "/bin"}}
    message = request("POST", SUBMIT, {"job": job, "script": script})
    with api(slurm) as path:
        begin, end = send_all(path, [message] * SUBMITS, CLIENTS)
    by_api = SUBMITS / (end - begin)
    slurm.run("scancel", "--user", "nobody")
    slurm.until(1)

    def submit(_: int) -> None:
        slurm.run("sbatch", "-Q", "--wrap", "true")

    begin = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(submit, range(SUBMITS)))
    by_command = SUBMITS / (time.perf_counter() - begin)
    slurm.run("scancel", "--state=PENDING")
    slurm.until(1)
    return {"submit": f"{by_api:,.0f} /s (slurmrestd), {by_command:,.0f} /s (sbatch)"}


def _arrays_and_cancels(slurm: Slurm, runs: int) -> dict[str, str]:
    arrays: list[float] = []
    cells: dict[str, str] = {}
    for _ in range(runs):
        arrays.append(timed_ms(lambda: slurm.run("sbatch", "-Q", "-a", "0-9999", "--wrap", "true")))
        slurm.run("scancel", "--state=PENDING")
        slurm.until(1)
    cells["array"] = f"{percentile(arrays, 0.5):,.0f} ms (whole sbatch)"
    job = {"name": "sweep", "current_working_directory": "/tmp", "environment": {"PATH": "/bin"}}
    message = request("POST", SUBMIT, {"job": job, "script": "#!/bin/sh\ntrue\n"})
    with api(slurm) as path:
        for count in (1_000, 10_000):
            send_all(path, [message] * count, CLIENTS)
            if count == 10_000:
                looks = [timed_ms(slurm.queued) for _ in range(5)]
                cells["queue"] = f"{percentile(looks, 0.5):,.0f} ms (squeue)"
                cells["memory"] = f"{_resident_mib(slurm):.0f} MiB at 10,000"
            begin = time.perf_counter()
            slurm.run("scancel", "--user", "nobody", "--state=PENDING")
            cells[f"cancel {count}"] = f"{(slurm.until(1) - begin) * 1000:,.0f} ms"
    return cells


def _resident_mib(slurm: Slurm) -> float:
    pid = (slurm.folder / "slurmctld.pid").read_text().strip()
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> int:
    try:
        cells = measure(3)
    except NotInstalled as reason:
        print(f"Slurm is not measured: {reason}.", file=sys.stderr)
        return 1
    for name, cell in cells.items():
        print(f"{name}: {cell}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
