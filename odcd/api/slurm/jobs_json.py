"""--json of squeue and sacct: the members that clients read."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from odcd.slurm.columns import values as v
from odcd.slurm.columns.values import FIELDS as ALL
from odcd.slurm.columns.values import JobRow

FIELDS = set(ALL)


def queued(row: JobRow) -> str:
    """One job of squeue."""
    return json.dumps({
        "job_id": row.id, "name": row.name, "command": "", "user_name": row.user,
        "user_id": row.uid, "account": row.account or "", "partition": row.partition or "",
        "qos": row.qos or "", "job_state": [v.state_word(row)], "state_reason": v.reason(row),
        "current_working_directory": row.work_dir, "comment": row.comment or "",
        "standard_output": row.stdout or "", "standard_error": row.stderr or "",
        "array_job_id": _number(row.array_job_id or 0),
        "array_task_id": _number(row.array_task_id), "array_task_string": row.array_tasks or "",
        "het_job_id": _number(row.het_leader or 0),
        "het_job_offset": _number(row.het_offset or 0),
        "nodes": v.nodes(row), "node_count": _number(row.node_count),
        "cpus": _number(v.cpus(row)), "time_limit": _number(_minutes(row)),
        "submit_time": _number(_epoch(row.submitted_at)),
        "start_time": _number(_epoch(row.started_at)), "end_time": _number(_epoch(row.ended_at)),
        "exit_code": _exit(row), "restart_cnt": row.restarts,
        "job_resources": {
            "nodes": {"count": len(row.node_names), "list": v.nodes(row), "allocation": [
                {"name": name, "cpus": {"count": row.cpus_per_node},
                 "memory": {"allocated": row.mem_per_node_mib}} for name in row.node_names
            ]},
        } if row.node_names else None,
    })  # fmt: skip


def accounted(row: JobRow) -> str:
    """One job of sacct."""
    return json.dumps({
        "job_id": row.id, "name": row.name, "user": row.user, "account": row.account or "",
        "partition": row.partition or "", "qos": row.qos or "",
        "state": {"current": [v.accounting_state(row).split()[0]], "reason": v.reason(row)},
        "exit_code": _exit(row), "nodes": v.nodes(row) or "None assigned",
        "array": {"job_id": row.array_job_id or 0, "task_id": _number(row.array_task_id),
                  "task": row.array_tasks or ""},
        "working_directory": row.work_dir,
        "time": {"submission": _epoch(row.submitted_at), "start": _epoch(row.started_at),
                 "end": _epoch(row.ended_at), "elapsed": v.elapsed_s(row),
                 "limit": _number(_minutes(row))},
        "steps": [],
    })  # fmt: skip


def _number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def _epoch(at: datetime | None) -> int:
    return 0 if at is None else int(at.timestamp())


def _minutes(row: JobRow) -> int | None:
    return None if row.time_limit_s is None else -(-row.time_limit_s // 60)


def _exit(row: JobRow) -> dict[str, Any]:
    return {
        "status": ["SIGNALED" if row.signal else "ERROR" if row.exit_code else "SUCCESS"],
        "return_code": _number(row.exit_code or 0),
        "signal": {"id": _number(row.signal or 0), "name": ""},
    }
