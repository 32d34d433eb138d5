"""RESULTS.md: its sections, each written by a separate command, and the description of the
machine."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.figures import percentile

RESULTS = Path(__file__).with_name("RESULTS.md")
RESTRUCTURED = "## The pass after its restructure"
TRACES = "## Traces"
ORDER = "## A candidate for the order"
KUBERNETES = "## Kubernetes"
FAULTS = "## Kubernetes under faults"
DEV_SERVERS = "## Dev servers with disks"
METRICS = "## Metrics"
PAGE = "## The page"
DEPENDENCIES = "## Dependencies"
FAIL_OVER = "## Fail-over"
BUSY_API = "## A busy API"
HISTORY = "## History"
ARRAY_ENDS = "## One array's ends"
BLOCKS = "## Gangs in a fat tree"
STORM = "## A storm of connections"
SLURM_COMMANDS = "## Slurm's commands"
STEPS = "## Job steps"
KEPT = (
    RESTRUCTURED, TRACES, ORDER, KUBERNETES, FAULTS, DEV_SERVERS, METRICS, PAGE, DEPENDENCIES,
    FAIL_OVER, BUSY_API, HISTORY, ARRAY_ENDS, BLOCKS, STORM,
    SLURM_COMMANDS, STEPS,
)  # fmt: skip
"""Sections that `make bench` does not write, but copies from the existing file."""


def section_of(text: str, heading: str) -> str:
    """The text from its heading to the next heading of the same level; empty if there is none."""
    begin = text.find(f"\n{heading}\n") + 1
    if not begin:
        return ""
    end = text.find("\n## ", begin)
    return text[begin : None if end < 0 else end].rstrip() + "\n"


def with_section(text: str, heading: str, new: str) -> str:
    """The text with that section replaced, or with the section added at the end."""
    old = section_of(text, heading)
    return text.replace(old, new) if old else f"{text.rstrip()}\n\n{new}"


def kept_sections(text: str) -> list[str]:
    return [found for heading in KEPT if (found := section_of(text, heading))]


def git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(RESULTS.parent), *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()


def machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({model}), {memory_gib:.0f} GiB; "
        f"a write of 8 KiB reaches the disk in {flush_ms():.2f} ms (median)"
    )


def flush_ms() -> float:
    took: list[float] = []
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        for _ in range(200):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), bytes(8192), 0)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - begin) * 1000)
    return percentile(took, 0.5)
