"""Jobs that really run on this machine: how soon one starts, and how many end per second."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.client import request, send_all
from benchmarks.daemon import Daemon, job, running
from benchmarks.figures import Figure, percentile

SAMPLES = 150
JOBS = 1_000
CLIENTS = 8
REST_S = 0.05
HOW = (
    "the job's first command writes a byte into a FIFO that the benchmark holds open and reads, "
    "so both times are from one clock"
)


def first_lines(runs: int) -> list[Figure]:
    medians: list[float] = []
    tails: list[float] = []
    with running("self") as daemon, daemon.client() as client:
        fifo = Fifo(daemon)
        message = request("POST", "/v1/jobs", job(daemon, name="first", script=fifo.script))
        for _ in range(runs):
            took: list[float] = []
            for _ in range(SAMPLES + 5):
                begin = time.perf_counter()
                client.exchange(message)
                took.append((fifo.wait() - begin) * 1000)
                daemon.wait_for(client, PENDING=0, CONFIGURING=0, RUNNING=0, COMPLETING=0)
                time.sleep(REST_S)
            medians.append(percentile(took[5:], 0.5))
            tails.append(percentile(took[5:], 0.95))
    note = (
        f"{SAMPLES} jobs per run on an idle cluster; {HOW}. The transactions of submit, pass and "
        "dispatch, one after the other, and the forks of the runner dominate"
    )
    return [
        Figure("idle cluster: request sent to the job's first line, median", medians, "ms", 15,
               slurm="latency", note=note),
        Figure("the same, 95th percentile", tails, "ms", 40, slurm="latency"),
    ]  # fmt: skip


def first_lines_by_command(runs: int) -> list[Figure]:
    medians: list[float] = []
    with running("self") as daemon, daemon.client() as client:
        fifo = Fifo(daemon)
        script = daemon.work / "first.sh"
        script.write_text(fifo.script)
        for _ in range(runs):
            took: list[float] = []
            for _ in range(23):
                begin = time.perf_counter()
                daemon.command("odcctl", "submit", str(script))
                took.append((max(fifo.wait(), time.perf_counter()) - begin) * 1000)
                daemon.wait_for(client, PENDING=0, CONFIGURING=0, RUNNING=0, COMPLETING=0)
                time.sleep(REST_S)
            medians.append(percentile(took[3:], 0.5))
    return [
        Figure("the same by `odcctl submit`, whole process", medians, "ms", 200,
               note="until the first line and the end of odcctl, whichever is later; Python's "
                    "start "
               "and imports dominate")
    ]  # fmt: skip


def trues(runs: int) -> list[Figure]:
    rates: list[float] = []
    with running("self", "many=cpu-x86:0x2000") as daemon, daemon.client() as client:
        message = request("POST", "/v1/jobs", job(
            daemon, name="true", script="#!/bin/true\n", mem_per_node_mib=1, stdout="/dev/null",
        ))  # fmt: skip
        for _ in range(runs + 1):
            begin, _ = send_all(daemon.socket, [message] * JOBS, CLIENTS)
            end = daemon.wait_for(client, PENDING=0, CONFIGURING=0, RUNNING=0, COMPLETING=0)
            rates.append(JOBS / (end - begin))
        page = client.call("GET", f"/v1/jobs?ended=true&name=true&fields=state&limit={10_000}")
    states = {found["state"] for found in page["jobs"]}
    if states != {"COMPLETED"} or len(page["jobs"]) != JOBS * (runs + 1):
        raise RuntimeError(f"{len(page['jobs'])} jobs ended as {states}")
    return [
        Figure(
            f"{JOBS:,} `true` jobs, first submit to last completed, local executor", rates,
            "jobs/s", 250, at_least=True, slurm="true",
            note="a real process each, on this machine and a declared node with 2,000 CPUs, so "
            "that CPUs do not limit how many run at once. The runner and its forks dominate",
        )
    ]  # fmt: skip


class Fifo:
    """The FIFO that receives a job's first line."""

    def __init__(self, daemon: Daemon) -> None:
        path: Path = daemon.work / "first"
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR)
        self.script = f"#!/bin/sh\necho >{path}\n"

    def wait(self) -> float:
        """The time when it arrived, by time.perf_counter()."""
        os.read(self._fd, 1)
        return time.perf_counter()
