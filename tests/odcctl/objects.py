"""Objects of the API with sane defaults, each checked against the schema that the daemon keeps."""

from __future__ import annotations

from typing import Any

import msgspec

from odcd.api.answers import accounts as account_answers
from odcd.api.answers import bookings as booking_answers
from odcd.api.answers import cluster as cluster_answers
from odcd.api.answers import disks as disk_answers
from odcd.api.answers import jobs as job_answers
from odcd.api.answers import nodes as node_answers
from odcd.api.answers import partitions as partition_answers
from odcd.api.answers import reservations as reservation_answers
from odcd.api.answers import submit as submit_answers

Object = dict[str, Any]


def a_job(job_id: int = 7, state: str = "PENDING", **fields: Any) -> Object:
    job: Object = {
        "id": job_id, "array_job_id": None, "array_task_id": None, "array_tasks": None,
        "name": "train", "kind": "batch", "user": "alice", "uid": 1001, "account": "default",
        "partition": "h100", "qos": "normal", "state": state, "reason": None, "why": [],
        "priority": None, "nice": 0, "submitted_at": "2026-07-01T10:00:00Z",
        "eligible_at": "2026-07-01T10:00:00Z", "begin_at": None, "planned_start_at": None,
        "eta": None,
        "started_at": None if state == "PENDING" else "2026-07-01T11:00:00Z",
        "ended_at": "2026-07-01T11:30:05Z" if state in job_answers.END_STATES else None,
        "time_limit_s": 14400, "node_count": 1, "node_count_max": None, "switches": None,
        "switches_wait_s": None, "gpus_per_node": 0, "gpus": 0, "gpu_type": None,
        "cpus_per_node": 2, "mem_per_node_mib": 4096, "node_names": [], "attempt": 1, "restarts": 0,
        "exit_code": None, "signal": None, "end_detail": None, "checkpoint_at": None,
        "preemption": None, "dependency": None,
        "array_throttle": None, "work_dir": "/home/alice", "stdout": None, "stderr": None,
        "comment": None, "booking": None, "licences": None, "array_progress": None,
        "gpu_use": None, "components": None, "resource_use": None,
    }  # fmt: skip
    return checked(job | fields, job_answers.Job)


def a_gpu_use(**fields: Any) -> Object:
    use: Object = {
        "source": "prometheus", "held_gpu_s": 36_000, "seen_gpu_s": 36_000, "busy_gpu_s": 18_000,
        "busy_ratio": 0.5, "mem_peak_mib": 71_680, "energy_j": 9_000_000, "owed": 0,
        "gave_up": None, "now": None,
    }  # fmt: skip
    return checked(use | fields, job_answers.GpuUse)


def a_reservation(number: int = 12, status: str = "active", **fields: Any) -> Object:
    waits = status in ("pending", "queued", "preparing")
    live = waits or status == "active"
    one: Object = {
        "id": number, "name": "2x-h100", "user": "alice", "uid": 1001, "account": "default",
        "partition": "main", "qos": "normal", "status": status, "state": BOX_STATES[status],
        "reason": None, "phase": None, "phase_at": None, "message": "", "gpus": 2,
        "gpu_type": "h100", "node_count": 1, "gpus_per_node": 2, "duration_s": 28800,
        "created_at": "2026-07-01T10:00:00Z",
        "launched_at": None if waits else "2026-07-01T10:00:05Z",
        "expires_at": None if waits else "2026-07-01T18:00:05Z",
        "ended_at": None if live else "2026-07-01T11:30:00Z", "extensions": 0, "extended_s": 0,
        "queue_position": None, "planned_start_at": None, "eta": None,
        "node_names": [] if waits else ["gpu-01"], "attempt": 1, "disk_name": None,
        "disk_state": None,
        "storage": "home", "image": None, "build": None,
        "jupyter": None, "jupyter_error": None, "jupyter_url": None, "ssh_command": None,
        "ssh_addresses": [],
        "connect": "terminal" if status == "active" else None, "host_keys": [],
        "github_user": None,
        "secondary_users": [], "failure_reason": None, "warnings": [],
        "node_notice": None, "node_notice_until": None, "oom_count": 0,
        "idle_s": None,
        "last_oom_at": None, "labels": {}, "comment": None, "phases": [], "history": [],
    }  # fmt: skip
    return checked(one | fields, reservation_answers.Reservation)


BOX_STATES = {
    "pending": "PENDING", "queued": "PENDING", "preparing": "CONFIGURING", "active": "RUNNING",
    "expired": "TIMEOUT", "cancelled": "CANCELLED", "failed": "FAILED",
}  # fmt: skip


def a_disk(name: str = "main", **fields: Any) -> Object:
    answer: Object = {
        "id": 1, "name": name, "user": "alice", "uid": 1001, "size_gib": 100,
        "used_bytes": 1_610_612_736, "state": "available", "reservation_id": None,
        "created_at": "2026-06-01T09:00:00Z", "last_used_at": "2026-06-30T18:00:00Z",
        "snapshot_count": 3, "pending_snapshot_count": 0, "snapshot_progress": None,
        "last_snapshot_at": "2026-06-30T18:04:00Z", "last_snapshot_id": "snap-1",
        "volume_id": None, "zone": None, "trouble": None, "deleted_at": None, "purge_at": None,
    }  # fmt: skip
    return checked(answer | fields, disk_answers.Disk)


def some_disks() -> list[Object]:
    """One in each state."""
    return [
        a_disk("data", state="in-use", reservation_id=12, zone="us-east-2a", volume_id="vol-1",
               last_used_at="2026-07-01T10:00:00Z", snapshot_count=1),
        a_disk(),
        a_disk("new_one", used_bytes=None, last_used_at=None, snapshot_count=0, size_gib=1024,
               created_at="2026-07-01T11:00:00Z"),
        a_disk("saved", state="backing-up", pending_snapshot_count=1, snapshot_progress=40),
        a_disk("torn", state="trouble", trouble="its volume is gone; an operator must check it"),
        a_disk("old", state="deleted", deleted_at="2026-06-30T12:00:00Z",
               purge_at="2026-07-30T12:00:00Z"),
    ]  # fmt: skip


def disks(*there: Object, default_gib: int | None = 100) -> Object:
    return {"default_gib": default_gib, "disks": list(there)}


def some_reservations() -> list[Object]:
    """One of each status."""
    return [
        a_reservation(12, disk_name="data", disk_state="in-use", oom_count=2,
                      last_oom_at="2026-07-01T11:00:00Z"),
        a_reservation(13, "preparing", phase="starting", message="the shell starts"),
        a_reservation(
            14, "queued", name="train", gpus=16, gpus_per_node=8, node_count=2, queue_position=3,
            planned_start_at="2026-07-01T14:20:00Z", phase="queued",
            message="needs 2 nodes with 8 free GPUs each; 1 is free for it now",
            eta={"p10": "2026-07-01T13:00:00Z", "p50": "2026-07-01T14:10:00Z",
                 "p90": "2026-07-01T14:20:00Z", "exact": True},
        ),
        a_reservation(15, "pending", gpu_type=None, gpus=0, gpus_per_node=0, name="box"),
        a_reservation(16, "expired", expires_at="2026-07-01T11:30:00Z", disk_name="main",
                      disk_state="backing-up"),
        a_reservation(17, "cancelled", message="root cancelled it"),
        a_reservation(18, "failed", failure_reason="gpu-01 was lost", gpu_type="cpu-x86", gpus=0,
                      gpus_per_node=0),
    ]  # fmt: skip


def a_type(gpu_type: str = "h100", free: int = 11, **fields: Any) -> Object:
    """Two nodes with 8 GPUs: one wholly free, one with 3 of them; or nothing free."""

    def size(gpus: int, nodes: int, wait_s: int | None, refused: str | None = None) -> Object:
        at = None if wait_s is None else f"2026-07-01T{12 + wait_s // 3600}:00:00Z"
        reason = None if wait_s is not None or refused else "QOSMaxGRESPerJob"
        return {"gpus": gpus, "nodes": nodes, "start_at": at, "wait_s": wait_s, "refused": refused,
                "reason": reason}  # fmt: skip

    some = free > 0
    waits = [size(gpus, 1, 0 if some else 3600) for gpus in (1, 2, 4, 8)]
    answer: Object = {
        "gpu_type": gpu_type, "label": "H100", "gpu_mem_mib": 81920, "gpus_per_node": 8,
        "cpus_per_node": 192, "mem_per_node_mib": 2097152,
        "nodes": 3, "nodes_up": 2, "free_nodes": int(some), "total": 16, "free": free,
        "max_on_one_node": 8 if some else 0, "max_reservable": 8 if some else 0, "running": 1,
        "queued": 0 if some else 4, "maintenance": None,
        "waits": [*waits, size(16, 2, 7200), size(24, 3, None, "QOS normal allows 16 GPUs")],
    }  # fmt: skip
    return checked(answer | fields, reservation_answers.Availability)


def a_cpu_type(**fields: Any) -> Object:
    answer: Object = {
        "gpu_type": "cpu-x86", "label": "CPU", "gpu_mem_mib": None, "gpus_per_node": 0,
        "cpus_per_node": 16, "mem_per_node_mib": 32768,
        "nodes": 2, "nodes_up": 2, "free_nodes": 2, "total": 2, "free": 2, "max_on_one_node": 0,
        "max_reservable": 0, "running": 0, "queued": 0, "maintenance": None,
        "waits": [{"gpus": 0, "nodes": 1, "start_at": "2026-07-01T12:00:00Z", "wait_s": 0,
                   "refused": None, "reason": None}],
    }  # fmt: skip
    return checked(answer | fields, reservation_answers.Availability)


def availability(*types: Object) -> Object:
    return {"at": "2026-07-01T12:00:00Z", "types": list(types)}


def a_preemption(**fields: Any) -> Object:
    answer: Object = {
        "text": "preempted by job 12 (QOS urgent) after 3 h; 24 GPU-hours lost", "attempt": 1,
        "by": 12, "qos": "urgent", "victim_qos": "scavenger", "mode": "requeue",
        "at": "2026-07-01T11:00:00Z", "ran_s": 10800, "grace_s": 60, "lost_gpu_s": 86400,
    }  # fmt: skip
    return checked(answer | fields, job_answers.Preemption)


def gang(job_id: int, nodes: int, each: int, **fields: Any) -> Object:
    return a_job(
        job_id, node_count=nodes, gpus_per_node=each, gpus=nodes * each, gpu_type="h100", **fields
    )


def a_component(nodes: int, each: int, **fields: Any) -> Object:
    one: Object = {
        "name": None, "node_count": nodes, "gpus_per_node": each,
        "gpu_type": "h100" if each else None, "cpus_per_node": 2, "mem_per_node_mib": 4096,
    }  # fmt: skip
    return checked(one | fields, job_answers.Component)


def mixed(job_id: int, *components: Object, **fields: Any) -> Object:
    """A heterogeneous job."""
    each = max(one["gpus_per_node"] for one in components)
    nodes = sum(one["node_count"] for one in components)
    return gang(job_id, nodes, each, components=list(components), **fields)


SWEEP = {"tasks": 12, "pending": 7, "running": 2, "done": 2, "failed": 1}


def a_mixed_queue() -> list[Object]:
    """Running and pending, one node and gangs, an array's task and its range, a held job."""
    return [
        gang(4127, 2, 8, state="RUNNING", time_limit_s=28800,
             node_names=["gpu-h100-07", "gpu-h100-03"]),
        a_job(4128, "RUNNING", array_job_id=4126, array_task_id=1, gpus_per_node=1, gpus=1,
              array_progress=SWEEP, name="sweep", node_names=["gpu-h100-01"]),
        a_job(4126, array_job_id=4126, array_tasks="3-9%2", name="sweep", gpus_per_node=1, gpus=1,
              array_progress=SWEEP,
              reason="JobArrayTaskLimit", why=[_cause("limit", "2 of its tasks are running, the "
              "array allows 2 at once, and 7 are waiting", limit="array_throttle")]),
        gang(4130, 4, 8, user="bob", uid=1002, reason="Resources", name="pretrain",
             planned_start_at="2026-07-01T14:20:00Z",
             eta={"p10": "2026-07-01T12:40:00Z", "p50": "2026-07-01T13:30:00Z",
                  "p90": "2026-07-01T14:20:00Z", "exact": True},
             why=[_cause("node", "needs 4 nodes with 8 free GPUs each; 2 are free for it now",
                         until="2026-07-01T14:20:00Z"),
                  _cause("running_job", "job 4127 holds 8 GPUs and 64 CPUs of gpu-h100-03 until "
                         "2026-07-01T14:20:00Z", job_id=4127, node="gpu-h100-03", gpus=8,
                         until="2026-07-01T14:20:00Z")]),
        gang(4131, 1, 8, user="carol", uid=1003, reason="Priority", time_limit_s=None,
             planned_start_at="2026-07-02T09:00:00Z",
             eta={"p10": None, "p50": "2026-07-02T09:00:00Z", "p90": None, "exact": True},
             why=[_cause("planned_job", "job 4130 goes first", job_id=4130)]),
        a_job(4132, reason="JobHeldUser", why=[_cause("hold", "held by its user; `odcctl release "
              "4132` releases it")]),
        a_job(4133, user="dave", uid=1004, reason="None", partition="cpu"),
    ]  # fmt: skip


def some_history() -> list[Object]:
    """Newest first, as the API lists them."""
    return [
        a_job(4125, "TIMEOUT", name="long", exit_code=0, signal=15, reason="TimeLimit",
              node_names=["cpu-1"], ended_at="2026-07-01T15:00:00Z"),
        a_job(4124, "CANCELLED", name="never", started_at=None, ended_at="2026-07-01T09:59:00Z"),
        a_job(4123, "CANCELLED", array_job_id=4120, array_tasks="5-9", name="sweep",
              started_at=None, ended_at="2026-07-01T09:58:00Z"),
        a_job(4121, "FAILED", array_job_id=4120, array_task_id=0, exit_code=3, name="sweep",
              reason="NonZeroExitCode", node_names=["cpu-2"]),
        gang(4119, 4, 8, state="COMPLETED", exit_code=0, name="pretrain", user="bob",
             started_at="2026-06-29T11:00:00Z", ended_at="2026-06-30T12:00:07Z",
             node_names=[f"gpu-h100-{n:02}" for n in range(9, 13)]),
    ]  # fmt: skip


def a_node(name: str, state: str = "IDLE", **fields: Any) -> Object:
    node: Object = {
        "name": name, "gpu_type": "h100", "state": state, "gpus": 8, "gpus_used": 0, "cpus": 192,
        "cpus_used": 0, "mem_mib": 2097152, "mem_used_mib": 0, "zone": None, "efa_domain": None,
        "topology": [],
        "features": [], "partitions": ["main", "h100"], "reason": None, "reason_by": None,
        "state_at": "2026-07-01T08:00:00Z", "declared": False, "jobs": [], "free_at": None,
        "booking": None, "next_booking": None,
    }  # fmt: skip
    return checked(node | fields, node_answers.Node)


def a_partition(name: str, **fields: Any) -> Object:
    partition: Object = {
        "name": name, "state": "UP", "is_default": False, "policy": "odc", "placement": "pack",
        "tier": 1, "plan_depth": 1, "max_time_limit_s": 2592000, "default_time_limit_s": 86400,
        "max_nodes": None, "def_mem_per_cpu_mib": None, "all_nodes": False, "limits": {},
        "node_names": ["gpu-01", "gpu-02"], "gpus": 16, "gpus_free": 5, "gpu_types": ["h100"],
    }  # fmt: skip
    return checked(partition | fields, partition_answers.Partition)


def a_policy(name: str, **fields: Any) -> Object:
    policy: Object = {
        "name": name, "ordering": name, "max_wait_s": None, "backfill": "order", "plan_depth": 1,
        "partitions": [],
    }  # fmt: skip
    return checked(policy | fields, partition_answers.Policy)


def a_node_group(
    name: str, gpu_type: str, jobs: list[int] | None = None, failure: str | None = None
) -> Object:
    return {
        "name": name, "gpu_type": gpu_type, "gpus": 8, "cpus": 190, "mem_mib": 2_000_000,
        "features": ["amd64"], "state": "waiting" if failure else "growing", "min_nodes": 0,
        "max_nodes": 6, "desired_nodes": 2, "nodes": 1, "leaving_nodes": 0, "jobs": jobs or [],
        "cooldown_s": 60, "idle_s": 600, "boot_s": 300, "failures": 1 if failure else 0,
        "failure": failure, "retry_at": "2026-01-01T00:05:00Z" if failure else None,
    }  # fmt: skip


def some_fragmentation(gpu_type: str, free: int = 21) -> Object:
    """Of four nodes: two whole ones, one with 5 and one without free GPUs; or nothing free."""
    some = int(free > 0)
    answer: Object = {
        "gpu_type": gpu_type, "nodes": 4, "gpus": 32, "gpus_free": free, "gpus_whole": 16 * some,
        "fragmented": 0.2381 if free else None, "nodes_whole": 2 * some, "largest_gang": 2 * some,
        "fits": {"1": free, "2": 10 * some, "4": 5 * some, "8": 2 * some},
        "domains": [{"domain": "us-east-2a/pg-1", "nodes": 4, "nodes_whole": 2 * some}],
    }  # fmt: skip
    return checked(answer, node_answers.TypeFragmentation)


def a_booking(name: str = "driver", **fields: Any) -> Object:
    booking: Object = {
        "id": 3, "name": name, "kind": "maintenance", "state": "PLANNED",
        "state_at": "2026-07-01T08:00:00Z", "starts_at": "2026-07-01T18:00:00Z",
        "ends_at": "2026-07-01T20:00:00Z", "duration_s": 7200, "repeats": "none", "until": None,
        "zone": None,
        "node_list": ["gpu-01", "gpu-02", "gpu-04"], "gpu_type": None, "partition": None,
        "all_nodes": False, "node_count": None, "node_names": ["gpu-01", "gpu-02", "gpu-04"],
        "users": [], "accounts": [], "jobs": [], "ignore_running": False, "comment": None,
        "reason": None, "created_by": "root", "created_at": "2026-07-01T08:00:00Z",
    }  # fmt: skip
    return checked(booking | fields, booking_answers.Booking)


def a_course() -> Object:
    """A booking for use, repeated, with all fields."""
    return a_booking(
        "course", kind="use", state="ACTIVE", starts_at="2026-07-01T09:00:00Z",
        ends_at="2026-07-01T13:00:00Z", duration_s=14400, repeats="weekly",
        until="2026-09-30T00:00:00Z", node_list=[], gpu_type="h100", node_count=2,
        node_names=["gpu-h100-01", "gpu-h100-02"], users=["alice", "bob"], accounts=["ml101"],
        jobs=[4127, 4130], reason="gpu-h100-02 is not up, and no other node can replace it",
        comment="Mondays", created_by="carol",
    )  # fmt: skip


def a_licence(name: str, total: int, used: int, jobs: list[int]) -> Object:
    licence: Object = {
        "name": name, "total": total, "used": used, "free": max(total - used, 0), "jobs": jobs,
    }  # fmt: skip
    return checked(licence, booking_answers.Licence)


def an_event(event_id: int, kind: str, **fields: Any) -> Object:
    event: Object = {
        "id": event_id, "at": f"2026-07-01T10:00:{event_id:02}.250Z", "kind": kind, "actor": "odcd",
        "job_id": 7, "array_job_id": None, "array_task_id": None, "node": None, "detail": {},
    }  # fmt: skip
    return checked(event | fields, cluster_answers.Event)


def submitted(job_id: int = 7, **fields: Any) -> Object:
    answer: Object = {
        "id": job_id, "wait": False, "parsable": False, "quiet": False, "json": False, "pty": False,
        "warnings": [], "folders": [],
    }  # fmt: skip
    return checked(answer | fields, submit_answers.SubmittedArgv)


def ended(job_id: int = 7, state: str = "COMPLETED", **fields: Any) -> Object:
    job: Object = {
        "id": job_id, "array_task_id": None, "state": state, "exit_code": 0, "signal": None,
    }  # fmt: skip
    return checked(job | fields, job_answers.EndedJob)


def outcome(job_id: int, word: str, **fields: Any) -> Object:
    answer: Object = {
        "job_id": job_id, "array_task_id": None, "outcome": word, "code": None, "message": None,
        "hint": None,
    }  # fmt: skip
    return checked(answer | fields, job_answers.Outcome)


def a_cluster() -> Object:
    cluster: Object = {
        "at": "2026-07-01T12:00:00Z", "executor": {"name": "local", "unreached_s": 0},
        "leader": {"term": 3, "holder": "ws1:42", "host": "ws1",
                   "taken_at": "2026-07-01T08:00:00Z"},
        "jobs": {"PENDING": 4, "CONFIGURING": 0, "RUNNING": 2, "COMPLETING": 0},
        "pending_tasks": 10, "oldest_pending_s": 7261, "nodes": {"UP": 4, "DRAIN": 1, "DOWN": 0},
        "gpus": {"total": 40, "used": 17},
        "eta": {"scored": 120, "coverage": 0.8083, "mean_abs_error_s": 1260, "bias_s": -340,
                "mean_width_s": 7200, "foreseen": 4, "refreshed_at": "2026-07-01T11:59:59Z"},
        "last_pass": {"id": 91, "at": "2026-07-01T11:59:58Z", "looked": 5, "started": 1,
                      "took_ms": 4.2},
        "planned": 1, "last_event_id": 812,
    }  # fmt: skip
    return checked(cluster, cluster_answers.Cluster)


def an_account(name: str, **fields: Any) -> Object:
    account: Object = {
        "name": name, "parent": None, "description": None, "organisation": None, "shares": 1,
        "default_qos": None, "qos": None, "coordinators": [], "users": [], "limits": {},
    }  # fmt: skip
    return checked(account | fields, account_answers.Account)


def a_qos(name: str, **fields: Any) -> Object:
    qos: Object = {
        "name": name, "description": None, "priority": 0, "restricted": False,
        "deny_on_limit": True, "usage_factor": 1.0, "preempts": [], "preempt_mode": "requeue",
        "exempt_s": 0, "grace_s": 0, "idle_warn_s": 0, "idle_release_s": 0, "limits": {},
    }  # fmt: skip
    return checked(qos | fields, account_answers.Qos)


def a_user(name: str, **fields: Any) -> Object:
    user: Object = {
        "user": name, "uid": 1001, "default_account": "physics", "coordinates": [],
        "accounts": [
            {"account": "lasers", "partition": "h100", "shares": 2, "default_qos": None,
             "qos": ["normal"], "limits": {"group": {"gpus": 8}}},
            {"account": "physics", "partition": None, "shares": 1, "default_qos": "urgent",
             "qos": None, "limits": {}},
        ],
    }  # fmt: skip
    return checked(user | fields, account_answers.User)


def a_share(account: str, **fields: Any) -> Object:
    share: Object = {
        "account": account, "user": None, "uid": None, "depth": 0, "raw_shares": 1,
        "norm_shares": 0.5, "used_s": 7200, "effective_usage": 0.75, "level_fs": 0.666667,
        "fairshare": None,
    }  # fmt: skip
    return checked(share | fields, account_answers.Share)


def priorities() -> Object:
    def job(job_id: int, **fields: Any) -> Object:
        parts = {"age": 0.5, "size": 0.25, "fairshare": 1.0, "qos": 0.0, "partition": 1.0}
        points = {"age": 500, "size": 25, "fairshare": 10000, "qos": 0, "partition": 1000}
        return {
            "id": job_id, "user": "ann", "account": "lasers", "qos": "normal", "partition": "main",
            "policy": "odc", "ordering": "odc", "priority": 11525, "nice": 0, "factors": parts,
            "points": points, **fields,
        }  # fmt: skip

    jobs = [job(7), job(8, partition="fair", policy="mine", ordering="multifactor", nice=-10)]
    value: Object = {**accounting(), "at": "2026-07-01T12:00:00Z", "jobs": jobs, "more": True}
    del value["enforce"], value["cpus_per_gpu"]
    return checked(value, account_answers.PriorityList)


def accounting(**fields: Any) -> Object:
    settings: Object = {
        "weights": {"age": 1000, "size": 100, "fairshare": 10000, "qos": 10000, "partition": 1000},
        "max_age_s": 604800, "half_life_s": 604800, "enforce": False, "cpus_per_gpu": 24,
    }  # fmt: skip
    return checked(settings | fields, account_answers.Accounting)


def _cause(kind: str, text: str, **fields: Any) -> Object:
    return {"cause": kind, "text": text, **fields}


def checked(value: Object, schema: Any) -> Object:
    msgspec.convert(value, schema)
    return value
