"""The records of scontrol show: lines of Key=Value words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odcd.slurm.columns import values as v
from odcd.slurm.columns.values import JobRow
from odcd.slurm.commands.sinfo import gres
from odcd.slurm.groups import group_name
from odcd.slurm.hostlists import compress_hosts
from odcd.slurm.times import format_duration

Lines = Sequence[Sequence[tuple[str, object]]]


def record(lines: Lines, *, one_line: bool, indent: str = "   ") -> str:
    """One record. Blanks in values would split it, so they are replaced."""
    texts = [" ".join(f"{key}={_word(value)}" for key, value in line) for line in lines]
    return (" " if one_line else f"\n{indent}").join(texts) + "\n"


def _word(value: object) -> str:
    return str(value).replace(" ", "_") if value not in (None, "") else "(null)"


def job(row: JobRow) -> Lines:
    ids: list[tuple[str, object]] = [("JobId", row.id)]
    if row.array_job_id is not None:
        task = row.array_tasks if row.array_tasks is not None else row.array_task_id
        ids += [("ArrayJobId", row.array_job_id), ("ArrayTaskId", task)]
        if row.array_throttle:
            ids.append(("ArrayTaskThrottle", row.array_throttle))
    if row.het_leader is not None:
        last = row.het_leader + row.het_size - 1
        ids += [("HetJobId", row.het_leader), ("HetJobOffset", row.het_offset),
                ("HetJobIdSet", f"{row.het_leader}-{last}")]  # fmt: skip
    limit = "UNLIMITED" if row.time_limit_s is None else v.long_clock(row.time_limit_s)
    end = v.moment(row, row.ended_at, "Unknown")
    first = row.node_names[0] if row.node_names else None
    batch: Lines = [[("BatchHost", first)]] if first else []
    asked = row.asked
    nodes, avoided = (asked.nodes, asked.excluded) if asked else ((), ())
    group = f"{group_name(asked.gid)}({asked.gid})" if asked else f"{row.user}({row.uid})"
    return [
        [*ids, ("JobName", row.name)],
        [("UserId", f"{row.user}({row.uid})"), ("GroupId", group),
         ("MCS_label", "N/A")],
        [("Priority", v.priority(row)), ("Nice", row.nice),
         ("Account", row.account), ("QOS", row.qos)],
        [("JobState", v.state_word(row)), ("Reason", v.reason(row)),
         ("Dependency", row.dependency)],
        [("Requeue", int(asked.requeue) if asked else 1), ("Restarts", row.restarts),
         ("BatchFlag", 1), ("Reboot", 0), ("ExitCode", v.exit_code(row))],
        [("RunTime", v.long_clock(v.elapsed_s(row))), ("TimeLimit", limit), ("TimeMin", "N/A")],
        [("SubmitTime", v.moment(row, row.submitted_at, "Unknown")),
         ("EligibleTime", v.moment(row, row.begin_at or row.eligible_at, "Unknown"))],
        [("StartTime", v.moment(row, row.started_at or row.planned_start_at, "Unknown")),
         ("EndTime", end), ("Deadline", "N/A")],
        [("Partition", row.partition),
         ("AllocNode:Sid", f"{(asked and asked.submit_host) or 'odc'}:0")],
        [("ReqNodeList", compress_hosts(nodes)), ("ExcNodeList", compress_hosts(avoided))],
        [("NodeList", v.nodes(row))],
        *batch,
        [("NumNodes", row.node_count), ("NumCPUs", v.cpus(row)), ("NumTasks", v.tasks(row)),
         ("CPUs/Task", v.cpus_per_task(row)), ("ReqB:S:C:T", "0:0:*:*")],
        [("TRES", v.tres(row))],
        [("MinCPUsNode", max(1, row.cpus_per_node)),
         ("MinMemoryNode", v.memory(row.mem_per_node_mib)),
         ("MinTmpDiskNode", asked.tmp_mib if asked else 0)],
        [("Features", asked.constraint if asked else None), ("DelayBoot", "00:00:00")],
        [("OverSubscribe", "NO" if asked and asked.exclusive else "OK"), ("Contiguous", 0),
         ("Network", None)],
        [("Command", v.command(row))],
        [("Reservation", row.booking), ("Licenses", v.licences(row))],
        [("Comment", row.comment)],
        [("WorkDir", row.work_dir)],
        [("StdErr", v.output(row, row.stderr))],
        [("StdIn", (asked and asked.stdin) or "/dev/null")],
        [("StdOut", v.output(row))],
        [("TresPerNode", v.gres(row) if row.gpus_per_node else None)],
    ]  # fmt: skip


def node(one: Mapping[str, Any]) -> Lines:
    state = {"DRAIN": "IDLE+DRAIN", "DRAINING": "MIXED+DRAIN"}.get(one["state"], one["state"])
    lines: list[list[tuple[str, object]]] = [
        [("NodeName", one["name"]), ("Arch", "x86_64"), ("CoresPerSocket", one["cpus"])],
        [("CPUAlloc", one["cpus_used"]), ("CPUEfctv", one["cpus"]), ("CPUTot", one["cpus"])],
        [("AvailableFeatures", ",".join(one["features"]))],
        [("ActiveFeatures", ",".join(one["features"]))],
        [("Gres", gres(one))],
        [("NodeAddr", one["name"]), ("NodeHostName", one["name"])],
        [("RealMemory", one["mem_mib"]), ("AllocMem", one["mem_used_mib"]),
         ("FreeMem", one["mem_mib"] - one["mem_used_mib"]), ("Sockets", 1), ("Boards", 1)],
        [("State", state), ("ThreadsPerCore", 1), ("TmpDisk", 0), ("Weight", 1)],
        [("Partitions", ",".join(one["partitions"]))],
        [("CfgTRES", _tres(one["cpus"], one["mem_mib"], one["gpus"]))],
        [("AllocTRES", _tres(one["cpus_used"], one["mem_used_mib"], one["gpus_used"]))],
    ]  # fmt: skip
    if one["reason"]:
        lines.append([("Reason", f"{one['reason']} [{one['reason_by'] or 'odc'}]")])
    return lines


def _tres(cpus: int, mem_mib: int, gpus: int) -> str:
    return f"cpu={cpus},mem={v.memory(mem_mib)}" + (f",gres/gpu={gpus}" if gpus else "")


def partition(one: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Lines:
    def limit(seconds: int | None, endless: str) -> str:
        return endless if seconds is None else format_duration(seconds)

    cpus, memory = sum(n["cpus"] for n in nodes), sum(n["mem_mib"] for n in nodes)
    per_cpu = one["def_mem_per_cpu_mib"]
    tres = f"{_tres(cpus, memory, sum(n['gpus'] for n in nodes))},node={len(nodes)}"
    return [
        [("PartitionName", one["name"])],
        [("AllowGroups", "ALL"), ("AllowAccounts", "ALL"), ("AllowQos", "ALL")],
        [("AllocNodes", "ALL"), ("Default", "YES" if one["is_default"] else "NO"),
         ("QoS", "N/A")],
        [("DefaultTime", limit(one["default_time_limit_s"], "NONE")),
         ("DisableRootJobs", "NO"), ("ExclusiveUser", "NO"), ("Hidden", "NO")],
        [("MaxNodes", one["max_nodes"] or "UNLIMITED"),
         ("MaxTime", limit(one["max_time_limit_s"], "UNLIMITED")), ("MinNodes", 0),
         ("LLN", "NO"), ("MaxCPUsPerNode", "UNLIMITED")],
        [("Nodes", compress_hosts(one["node_names"]) if one["node_names"] else None)],
        [("PriorityJobFactor", 1), ("PriorityTier", one["tier"]), ("RootOnly", "NO"),
         ("ReqResv", "NO"), ("OverSubscribe", "NO")],
        [("State", one["state"]), ("TotalCPUs", cpus), ("TotalNodes", len(nodes)),
         ("SelectTypeParameters", "NONE")],
        [("DefMemPerCPU" if per_cpu else "DefMemPerNode", per_cpu or "UNLIMITED"),
         ("MaxMemPerNode", "UNLIMITED")],
        [("TRES", tres)],
    ]  # fmt: skip


def booking(one: Mapping[str, Any], starts: str, ends: str) -> Lines:
    flags = "MAINT" if one["kind"] == "maintenance" else ""
    repeats = {"daily": "DAILY", "weekly": "WEEKLY", "weekdays": "WEEKDAY"}.get(one["repeats"], "")
    return [
        [("ReservationName", one["name"]), ("StartTime", starts), ("EndTime", ends),
         ("Duration", v.long_clock(one["duration_s"]))],
        [("Nodes", compress_hosts(one["node_names"]) if one["node_names"] else None),
         ("NodeCnt", len(one["node_names"])), ("Features", None),
         ("PartitionName", one["partition"]), ("Flags", ",".join(filter(None, (flags, repeats))))],
        [("Users", ",".join(one["users"])), ("Accounts", ",".join(one["accounts"])),
         ("Licenses", None), ("State", "ACTIVE" if one["state"] == "ACTIVE" else "INACTIVE")],
    ]  # fmt: skip


def licence(one: Mapping[str, Any]) -> Lines:
    return [
        [("LicenseName", one["name"])],
        [("Total", one["total"]), ("Used", one["used"]), ("Free", one["free"]),
         ("Reserved", 0), ("Remote", "no")],
    ]  # fmt: skip
