"""Values in Slurm's forms: times, states, exit codes, ids."""

from __future__ import annotations

from datetime import datetime, tzinfo

import msgspec

from odcd.errors import BadRequest
from odcd.records.requested import Requested
from odcd.slurm.columns.used import ResourceUse, Used
from odcd.slurm.complaints import Complaints
from odcd.slurm.components import split_line
from odcd.slurm.hostlists import list_hosts
from odcd.slurm.shell_words import split_shell_words
from odcd.slurm.times import format_duration

CODES = {
    "PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETING": "CG", "CONFIGURING": "CF",
    "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F", "TIMEOUT": "TO", "NODE_FAIL": "NF",
    "PREEMPTED": "PR", "BOOT_FAIL": "BF", "DEADLINE": "DL", "OUT_OF_MEMORY": "OOM",
}  # fmt: skip
NEVER_HERE = frozenset({
    "REQUEUED", "REQUEUE_HOLD", "RESIZING", "REVOKED", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT",
    "STOPPED", "RESV_DEL_HOLD", "REQUEUE_FED", "SUSPENDED", "RQ", "RH", "RS", "RV", "SI", "SE",
    "SO", "ST", "RD", "RF", "S",
})  # fmt: skip
"""States of Slurm that no job of odc has: a filter for them matches nothing."""
LIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
LAUNCH_FAILURE = "JobLaunchFailure"
END_REASONS = {
    "FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit", "NODE_FAIL": "NodeDown",
    "OUT_OF_MEMORY": "OutOfMemory", "BOOT_FAIL": LAUNCH_FAILURE, "DEADLINE": "DeadLine",
}  # fmt: skip
STATES = {code: state for state, code in CODES.items()}


class Component(msgspec.Struct, kw_only=True):
    """A component of a heterogeneous job."""

    name: str | None
    node_count: int
    gpus_per_node: int
    gpu_type: str | None
    cpus_per_node: int
    mem_per_node_mib: int


class JobRow(msgspec.Struct, kw_only=True):
    """A job as the API returns it; the fields that no column reads are not fetched. now and zone:
    of the caller."""

    id: int = 0
    array_job_id: int | None = None
    array_task_id: int | None = None
    array_tasks: str | None = None
    name: str = ""
    user: str = ""
    uid: int = 0
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    state: str = ""
    reason: str | None = None
    nice: int = 0
    submitted_at: datetime | None = None
    eligible_at: datetime | None = None
    begin_at: datetime | None = None
    planned_start_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    time_limit_s: int | None = None
    node_count: int = 1
    gpus_per_node: int = 0
    gpus: int = 0
    gpu_type: str | None = None
    cpus_per_node: int = 0
    mem_per_node_mib: int = 0
    node_names: list[str] = []
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    end_detail: str | None = None
    dependency: str | None = None
    array_throttle: int | None = None
    work_dir: str = ""
    stdout: str | None = None
    stderr: str | None = None
    comment: str | None = None
    booking: str | None = None
    licences: dict[str, int] | None = None
    components: list[Component] | None = None
    resource_use: ResourceUse | None = None
    het_leader: int | None = None
    """In the row of a component: the id of its job, its number, and how many there are."""
    het_offset: int | None = None
    het_size: int = 0
    now: datetime | None = None
    zone: tzinfo | None = None
    score: int | None = None
    """The planner's number for a pending job, as sprio shows it."""
    asked: Requested | None = None
    """Read for the columns that need it."""
    step: str | None = None
    """sacct's rows of steps: batch, or the number of a step of srun."""
    step_name: str | None = None
    step_tasks: int = 1
    step_used: Used | None = None
    """The use by a step; resource_use is that of its job."""

    @property
    def is_live(self) -> bool:
        return self.state in LIVE


FIELDS = frozenset(JobRow.__struct_fields__) - {
    "now", "zone", "score", "asked", "step", "step_name", "step_tasks", "step_used", "het_leader",
    "het_offset", "het_size",
}  # fmt: skip
DECODER = msgspec.json.Decoder(list[JobRow])


def moment(row: JobRow, at: datetime | None, otherwise: str = "N/A") -> str:
    if at is None:
        return otherwise
    return at.astimezone(row.zone).strftime("%Y-%m-%dT%H:%M:%S")


def priority(row: JobRow) -> int:
    """0: held. 1: it runs, has ended, or the planner orders jobs without a number."""
    if "Held" in (row.reason or ""):
        return 0
    return 1 if row.score is None else max(1, row.score)


def elapsed_s(row: JobRow) -> int:
    if row.started_at is None:
        return 0
    end = row.ended_at or row.now
    return max(0, int((end - row.started_at).total_seconds())) if end else 0


def pending_s(row: JobRow) -> str:
    """The seconds from the submit to the start."""
    until = row.started_at or row.ended_at or row.now
    if until is None or row.submitted_at is None:
        return "0"
    return str(max(0, int((until - row.submitted_at).total_seconds())))


def cpus_per_task(row: JobRow) -> int:
    return (row.asked and row.asked.cpus_per_task) or 1


def tasks(row: JobRow) -> int:
    return (row.asked and row.asked.ntasks) or row.node_count


def command(row: JobRow) -> str:
    """The path of the script; empty: it had none, or its command line is unknown."""
    try:
        words = split_shell_words((row.asked and row.asked.submit_line) or "")
        if words[:1] in (["salloc"], ["srun"]) or words[:2] == ["odcctl", "run"]:
            return ""
        of_odcctl = words[:2] == ["odcctl", "submit"]
        lines = split_line(words[2 if of_odcctl else 1 :], Complaints())
    except (ValueError, BadRequest):
        return ""
    given = lines[-1]
    wrapped = any(one.option.long == "wrap" for line in lines for one in line.options)
    wrapped |= of_odcctl and given.after_dashes
    if wrapped or not given.operands or given.operands[0] == "-":
        return ""
    path = given.operands[0]
    return path if path.startswith("/") else f"{row.work_dir.rstrip('/')}/{path}"


def clock(seconds: int) -> str:
    """squeue's 0:02, 1:02:03, 1-02:03:04."""
    return format_duration(seconds)


def long_clock(seconds: int) -> str:
    """sacct's 00:00:02, 1-02:03:04."""
    days, rest = divmod(max(0, seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def limit(row: JobRow) -> str:
    return "UNLIMITED" if row.time_limit_s is None else clock(row.time_limit_s)


def left(row: JobRow) -> str:
    if row.time_limit_s is None:
        return "UNLIMITED"
    return clock(max(0, row.time_limit_s - elapsed_s(row)))


def job_id(row: JobRow) -> str:
    """123, 123_4, 123_[5-9%3], 123+0."""
    if row.het_leader is not None:
        return f"{row.het_leader}+{row.het_offset}"
    if row.array_tasks is not None:
        tasks = row.array_tasks
        if row.array_throttle and "%" not in tasks:
            tasks = f"{tasks}%{row.array_throttle}"
        return f"{row.array_job_id or row.id}_[{tasks}]"
    if row.array_task_id is not None:
        return f"{row.array_job_id}_{row.array_task_id}"
    return str(row.id)


def state_word(row: JobRow) -> str:
    """CONFIGURING lasts for a moment, and several clients do not know it."""
    return "RUNNING" if row.state == "CONFIGURING" else row.state


def state_code(row: JobRow) -> str:
    return CODES.get(state_word(row), "PD")


def accounting_state(row: JobRow) -> str:
    if row.state == "CANCELLED":
        return f"CANCELLED by {row.uid}" if row.step is None else "CANCELLED"
    return "RUNNING" if row.state == "COMPLETING" else state_word(row)


def reason(row: JobRow) -> str:
    if row.state == "PENDING":
        return (row.reason or "None").replace(" ", "_")
    if row.state == "FAILED" and row.reason == LAUNCH_FAILURE:
        return LAUNCH_FAILURE
    return END_REASONS.get(row.state, "None")


def nodes(row: JobRow) -> str:
    return list_hosts(row.node_names) if row.node_names else ""


def nodes_or_reason(row: JobRow) -> str:
    if row.state == "PENDING" or (row.state in END_REASONS):
        return f"({reason(row)})"
    return nodes(row)


def exit_code(row: JobRow) -> str:
    """CODE:SIGNAL."""
    return f"{row.exit_code or 0}:{row.signal or 0}"


def cpus(row: JobRow) -> int:
    return max(1, row.cpus_per_node) * row.node_count


def memory(mib: int) -> str:
    """500M, 64G."""
    if mib and mib % 1024 == 0:
        return f"{mib // 1024}G"
    return f"{mib}M"


def gres(row: JobRow) -> str:
    if not row.gpus_per_node:
        return "N/A"
    kind = f":{row.gpu_type}" if row.gpu_type else ""
    return f"gres/gpu{kind}:{row.gpus_per_node}"


def tres(row: JobRow) -> str:
    parts = [f"cpu={cpus(row)}", f"mem={memory(row.mem_per_node_mib * row.node_count)}"]
    parts += [f"node={row.node_count}", f"billing={cpus(row)}"]
    if row.gpus:
        parts.append(f"gres/gpu={row.gpus}")
        if row.gpu_type:
            parts.append(f"gres/gpu:{row.gpu_type}={row.gpus}")
    return ",".join(parts)


def licences(row: JobRow) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted((row.licences or {}).items()))


def output(row: JobRow, pattern: str | None = None) -> str:
    """The path of the output, with the patterns that are known before the job starts."""
    default = "slurm-%A_%a.out" if row.array_task_id is not None else "slurm-%j.out"
    text = pattern or row.stdout or default
    job = row.het_leader or row.id
    array = row.array_job_id or job
    task = 4294967294 if row.array_task_id is None else row.array_task_id
    for letter, value in (
        ("%j", job), ("%J", job), ("%A", array), ("%a", task), ("%x", row.name),
        ("%u", row.user),
    ):  # fmt: skip
        text = text.replace(letter, str(value))
    return text if text.startswith("/") else f"{row.work_dir.rstrip('/')}/{text}"
