"""The columns of sacct."""

from __future__ import annotations

from collections.abc import Callable

from odcd.slurm.columns import values as v
from odcd.slurm.columns.table import Column
from odcd.slurm.columns.used import Used, exact_size, mebibytes, precise_clock
from odcd.slurm.columns.values import JobRow

DEFAULT = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
BRIEF = "JobID,State,ExitCode"
LONG = (
    "JobID,JobIDRaw,JobName,Partition,MaxRSS,ReqMem,AllocCPUS,AllocTRES,Elapsed,State,ExitCode,"
    "Start,End,NodeList"
)
_ID = ("array_job_id", "array_task_id", "array_tasks", "array_throttle")
_RUN = ("started_at", "ended_at")
_SIZE = ("cpus_per_node", "node_count", "mem_per_node_mib", "gpus", "gpu_type")


def _suffixed(row: JobRow, text: str) -> str:
    return f"{text}.{row.step}" if row.step else text


def _job(row: JobRow, text: str) -> str:
    """Empty in the rows of steps."""
    return "" if row.step else text


def _allocated(row: JobRow, text: str) -> str:
    return text if row.started_at is not None else "0"


_USE = ("resource_use",)


def _used(row: JobRow) -> Used | None:
    return row.step_used if row.step else row.resource_use


def _cpu(row: JobRow, time: Callable[[Used], float]) -> str:
    used = _used(row)
    return "" if used is None else precise_clock(time(used))


def _of_step(row: JobRow, text: Callable[[Used], str]) -> str:
    """Empty in the row of a job, as Slurm has it: its steps are beside it."""
    return text(row.step_used) if row.step and row.step_used else ""


def _limit(row: JobRow) -> str:
    return "UNLIMITED" if row.time_limit_s is None else v.long_clock(row.time_limit_s)


def _nodes(row: JobRow) -> str:
    return v.nodes(row) or "None assigned"


def _column(
    header: str, value: Callable[[JobRow], str], fields: tuple[str, ...] = (), width: int = 10
) -> Column:
    return Column(header, value, (*fields, "started_at"), width)


_LIST = (
    _column("Account", lambda r: r.account or "", ("account",)),
    _column("AllocCPUS", lambda r: _allocated(r, str(v.cpus(r))), _SIZE),
    _column("AllocNodes", lambda r: _allocated(r, str(r.node_count)), _SIZE),
    _column("AllocTRES", lambda r: v.tres(r) if r.started_at else "", _SIZE),
    _column("Cluster", lambda _r: "odc"),
    _column("Comment", lambda r: r.comment or "", ("comment",), 14),
    _column("CPUTime", lambda r: v.long_clock(v.elapsed_s(r) * v.cpus(r)), (*_RUN, *_SIZE)),
    _column("CPUTimeRAW", lambda r: str(v.elapsed_s(r) * v.cpus(r)), (*_RUN, *_SIZE)),
    _column("DerivedExitCode", lambda r: _job(r, v.exit_code(r)), ("exit_code", "signal"), 15),
    _column("Elapsed", lambda r: v.long_clock(v.elapsed_s(r)), _RUN),
    _column("ElapsedRaw", lambda r: str(v.elapsed_s(r)), _RUN),
    _column("Eligible", lambda r: v.moment(r, r.eligible_at, "Unknown"), ("eligible_at",), 19),
    _column("End", lambda r: v.moment(r, r.ended_at, "Unknown"), _RUN, 19),
    _column("ExitCode", v.exit_code, ("exit_code", "signal"), 8),
    _column("Group", lambda r: _job(r, r.user), ("user",), 9),
    _column("JobID", lambda r: _suffixed(r, v.job_id(r)), _ID, -12),
    _column("JobIDRaw", lambda r: _suffixed(r, str(r.id)), (), -12),
    _column("JobName", lambda r: r.step_name or r.step or r.name, ("name",)),
    _column("MaxDiskRead", lambda r: _of_step(r, lambda u: mebibytes(u.read_kib)), _USE, 12),
    _column("MaxDiskWrite", lambda r: _of_step(r, lambda u: mebibytes(u.written_kib)), _USE, 12),
    _column("MaxRSS", lambda r: _of_step(r, lambda u: exact_size(u.max_rss_kib)), _USE),
    _column("NCPUS", lambda r: _allocated(r, str(v.cpus(r))), _SIZE),
    _column("NNodes", lambda r: str(r.node_count), ("node_count",), 8),
    _column("NodeList", _nodes, ("node_names",), 15),
    _column("NTasks", lambda r: str(r.step_tasks) if r.step else "", (), 8),
    _column("Partition", lambda r: _job(r, r.partition or ""), ("partition",)),
    _column("Priority", lambda _r: ""),
    _column("QOS", lambda r: _job(r, r.qos or ""), ("qos",)),
    _column("Reason", lambda r: v.reason(r), ("state", "reason"), 22),
    _column("ReqCPUS", lambda r: str(v.cpus(r)), _SIZE, 8),
    _column("ReqMem", lambda r: _job(r, v.memory(r.mem_per_node_mib)), _SIZE),
    _column("ReqNodes", lambda r: str(r.node_count), ("node_count",), 8),
    _column("ReqTRES", lambda r: _job(r, v.tres(r)), _SIZE),
    _column("Reservation", lambda r: r.booking or "", ("booking",), 20),
    _column("Restarts", lambda r: str(r.restarts), ("restarts",), 8),
    _column("Start", lambda r: v.moment(r, r.started_at, "Unknown"), _RUN, 19),
    _column("State", v.accounting_state, ("state", "uid")),
    _column("Submit", lambda r: v.moment(r, r.submitted_at, "Unknown"), ("submitted_at",), 19),
    _column("Timelimit", lambda r: _job(r, _limit(r)), ("time_limit_s",)),
    _column("TimelimitRaw", lambda r: _job(r, str((r.time_limit_s or 0) // 60)), ("time_limit_s",)),
    _column("SystemCPU", lambda r: _cpu(r, lambda u: u.system_cpu_s), _USE),
    _column("TotalCPU", lambda r: _cpu(r, lambda u: u.cpu_s), _USE),
    _column("UID", lambda r: _job(r, str(r.uid)), ("uid",), 6),
    _column("UserCPU", lambda r: _cpu(r, lambda u: u.user_cpu_s), _USE),
    _column("User", lambda r: _job(r, r.user), ("user",), 9),
    _column("WorkDir", lambda r: _job(r, r.work_dir), ("work_dir",), 20),
)  # fmt: skip

NAMES: dict[str, Column] = {column.header.lower(): column for column in _LIST}


def help_format() -> str:
    """The names that --format accepts, four on a line."""
    headers = [column.header for column in _LIST]
    rows = [headers[at : at + 4] for at in range(0, len(headers), 4)]
    return "".join("".join(f"{name:<20}" for name in row).rstrip() + "\n" for row in rows)
