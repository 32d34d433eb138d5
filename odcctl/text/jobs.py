"""How a job's fields read: its id, its GPUs, where it is or why it waits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from odcctl.exits import WrongUsage
from odcctl.text.hostlist import fold
from odcctl.text.render import MOMENT, clean, clock, moment, replace_moments

Job = Mapping[str, Any]

LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
ENDED = (
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "DEADLINE", "BOOT_FAIL",
)  # fmt: skip
_SHORT = {
    "PD": "PENDING", "CF": "CONFIGURING", "R": "RUNNING", "CG": "COMPLETING", "CD": "COMPLETED",
    "F": "FAILED", "TO": "TIMEOUT", "CA": "CANCELLED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY",
    "PR": "PREEMPTED", "DL": "DEADLINE", "BF": "BOOT_FAIL",
}  # fmt: skip
SOON_S = 300
_COMPONENT = re.compile(r"(\d+)\+\d+$", re.ASCII)
_SELECTOR = re.compile(r"\d+(_(\d+|\[[\d,\-:%]+\]))?$")


def job_id(job: Job) -> str:
    """7, 7_3 for an element of an array, 7_[3-9%2] for its pending tasks."""
    array = job.get("array_job_id")
    if array is None:
        return str(job["id"])
    task = job.get("array_task_id")
    if task is not None:
        return f"{array}_{task}"
    return f"{array}_[{job['array_tasks']}]" if job.get("array_tasks") else str(array)


def gpus(job: Job) -> str:
    """2x8 for a gang of 2 nodes with 8 GPUs each, 8 for one node, - for none; 2-4x8 while it waits
    for 2 to 4 nodes; 8+2x4 for a heterogeneous job."""
    if job.get("components"):
        counts = [gpus({**one, "components": None}) for one in job["components"]]
        return "+".join("0" if count == "-" else count for count in counts)
    each, number = job.get("gpus_per_node") or 0, nodes(job)
    if not each:
        return "-"
    return str(each) if number == "1" else f"{number}x{each}"


def nodes(job: Job, to: str = "-") -> str:
    """How many nodes the job has or requests: 2, or 2-4 while that is undecided."""
    lowest, highest = job.get("node_count") or 1, job.get("node_count_max")
    return f"{lowest}{to}{highest}" if highest and job["state"] == "PENDING" else str(lowest)


def place(job: Job, now_s: float) -> str:
    """The nodes of a job that has some; for a pending job its reason and planned start."""
    if job["state"] != "PENDING":
        return fold(job.get("node_names") or ()) or clean(job.get("reason") or "")
    text, planned = reason(job, now_s), job.get("planned_start_at")
    if planned:
        text += f"; planned {clock(planned, now_s)}" if text else f"planned {clock(planned, now_s)}"
    return text


def reason(job: Job, now_s: float) -> str:
    """Why a pending job waits: Slurm's word and the first cause."""
    text = job.get("reason") or ""
    if text == "None":  # Slurm's word for a job that no pass has considered yet
        text = ""
    why = job.get("why")
    if why:
        cause = local_times(why[0]["text"], now_s)
        text = f"{text}: {cause}" if text else cause
    return text


def expected_start(job: Job, now_s: float) -> tuple[str, str]:
    """When a pending job should start, and the interval in which 8 of 10 such jobs do."""
    eta = job.get("eta")
    if not eta:
        return "", ""
    between = f"{clock(eta['p10'], now_s)} to {clock(eta['p90'], now_s)}" if eta["p10"] else ""
    return clock(eta["p50"], now_s), between


def cause_text(cause: Mapping[str, Any], now_s: float) -> str:
    """One entry of a job's why, as a line."""
    text, until = cause["text"], cause.get("until")
    if until and not MOMENT.search(text):
        what = "enough are free at" if text.startswith("needs ") else "until"
        text += f"; {what} {clock(until, now_s)}"
    return local_times(text, now_s)


@cache  # thousands of jobs wait for the same reason
def local_times(text: str, now_s: float) -> str:
    """A sentence of the daemon, with its UTC times in the local zone; with seconds if they are
    less than five minutes ahead."""

    def shown(time: str) -> str:
        ahead_s = moment(time).timestamp() - now_s
        return f"{moment(time):%H:%M:%S}" if 0 <= ahead_s < SOON_S else clock(time, now_s)

    return replace_moments(clean(text), shown)


def exit_code(job: Job) -> str:
    """code:signal, as in sacct; - if the job has none."""
    code, signal = job.get("exit_code"), job.get("signal")
    return "-" if code is None and signal is None else f"{code or 0}:{signal or 0}"


def parse_states(text: str | None) -> tuple[str | None, bool]:
    """The states of -t, in full and by commas, and whether ended jobs are among them."""
    if text is None:
        return None, False
    states: list[str] = []
    for word in text.split(","):
        upper = word.strip().upper()
        if upper == "ALL":
            return None, True
        state = _SHORT.get(upper, upper)
        if state not in LIVE + ENDED:
            raise WrongUsage(
                f'"{word}" is not a state', f"States: {', '.join(LIVE + ENDED)}, or all."
            )
        states.append(state)
    return ",".join(states), any(state in ENDED for state in states)


def check_selector(text: str) -> str:
    """7, 7_3 or 7_[1-4,9]; anything else is wrong usage, without a request to the daemon."""
    if component := _COMPONENT.match(text):
        raise WrongUsage(
            f"{text} is a component of a heterogeneous job", f"Name the whole job: {component[1]}."
        )
    if not _SELECTOR.match(text):
        raise WrongUsage(f'"{text}" is not a job', "Write 7, or 7_3 or 7_[1-4] for array tasks.")
    return text


def check_selectors(arguments: list[str]) -> list[str]:
    """Selectors from arguments that may have several, separated by commas: 7 8_3,9."""
    found: list[str] = []
    for argument in arguments:
        found += [check_selector(part) for part in re.split(r",(?![^\[]*\])", argument) if part]
    return found
