"""Objects of the API with sane defaults, each checked against the schema that the daemon keeps."""

from __future__ import annotations

from typing import Any

import msgspec

from odcd.api import answers

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
        "ended_at": "2026-07-01T11:30:05Z" if state in answers.END_STATES else None,
        "time_limit_s": 14400, "node_count": 1, "node_count_max": None, "switches": None,
        "switches_wait_s": None, "gpus_per_node": 0, "gpus": 0, "gpu_type": None,
        "cpus_per_node": 2, "mem_per_node_mib": 4096, "node_names": [], "attempt": 1, "restarts": 0,
        "exit_code": None, "signal": None, "end_detail": None, "checkpoint_at": None,
        "preemption": None, "dependency": None,
        "array_throttle": None, "work_dir": "/home/alice", "stdout": None, "stderr": None,
        "comment": None, "booking": None, "licences": None,
    }  # fmt: skip
    return _checked(job | fields, answers.Job)


def a_preemption(**fields: Any) -> Object:
    told: Object = {
        "text": "preempted by job 12 (QOS urgent) after 3 h; 24 GPU-hours lost", "attempt": 1,
        "by": 12, "qos": "urgent", "victim_qos": "scavenger", "mode": "requeue",
        "at": "2026-07-01T11:00:00Z", "ran_s": 10800, "grace_s": 60, "lost_gpu_s": 86400,
    }  # fmt: skip
    return _checked(told | fields, answers.Preemption)


def gang(job_id: int, nodes: int, each: int, **fields: Any) -> Object:
    return a_job(
        job_id, node_count=nodes, gpus_per_node=each, gpus=nodes * each, gpu_type="h100", **fields
    )


def a_mixed_queue() -> list[Object]:
    """Running and pending, one node and gangs, an array's task and its range, a held job."""
    return [
        gang(4127, 2, 8, state="RUNNING", time_limit_s=28800,
             node_names=["gpu-h100-07", "gpu-h100-03"]),
        a_job(4128, "RUNNING", array_job_id=4126, array_task_id=1, gpus_per_node=1, gpus=1,
              name="sweep", node_names=["gpu-h100-01"]),
        a_job(4126, array_job_id=4126, array_tasks="3-9%2", name="sweep", gpus_per_node=1, gpus=1,
              reason="JobArrayTaskLimit", why=[_cause("limit", "2 of its tasks run and the array "
              "lets 2 run at once; 7 wait", limit="array_throttle")]),
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
              "4132` lets it go")]),
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
    return _checked(node | fields, answers.Node)


def a_partition(name: str, **fields: Any) -> Object:
    partition: Object = {
        "name": name, "state": "UP", "is_default": False, "policy": "odc", "placement": "pack",
        "tier": 1, "plan_depth": 1, "max_time_limit_s": 2592000, "default_time_limit_s": 86400,
        "max_nodes": None, "def_mem_per_cpu_mib": None, "all_nodes": False, "limits": {},
        "node_names": ["gpu-01", "gpu-02"], "gpus": 16, "gpus_free": 5, "gpu_types": ["h100"],
    }  # fmt: skip
    return _checked(partition | fields, answers.Partition)


def a_policy(name: str, **fields: Any) -> Object:
    policy: Object = {
        "name": name, "ordering": name, "max_wait_s": None, "backfill": "order", "plan_depth": 1,
        "partitions": [],
    }  # fmt: skip
    return _checked(policy | fields, answers.Policy)


def some_fragmentation(gpu_type: str, free: int = 21) -> Object:
    """Of four nodes: two whole ones, one with 5 and one without free GPUs; or nothing free."""
    some = int(free > 0)
    told: Object = {
        "gpu_type": gpu_type, "nodes": 4, "gpus": 32, "gpus_free": free, "gpus_whole": 16 * some,
        "fragmented": 0.2381 if free else None, "nodes_whole": 2 * some, "largest_gang": 2 * some,
        "fits": {"1": free, "2": 10 * some, "4": 5 * some, "8": 2 * some},
        "domains": [{"domain": "us-east-2a/pg-1", "nodes": 4, "nodes_whole": 2 * some}],
    }  # fmt: skip
    return _checked(told, answers.TypeFragmentation)


def a_booking(name: str = "driver", **fields: Any) -> Object:
    booking: Object = {
        "id": 3, "name": name, "kind": "maintenance", "state": "PLANNED",
        "state_at": "2026-07-01T08:00:00Z", "starts_at": "2026-07-01T18:00:00Z",
        "ends_at": "2026-07-01T20:00:00Z", "duration_s": 7200, "repeats": "none", "until": None,
        "node_list": ["gpu-01", "gpu-02", "gpu-04"], "gpu_type": None, "partition": None,
        "all_nodes": False, "node_count": None, "node_names": ["gpu-01", "gpu-02", "gpu-04"],
        "users": [], "accounts": [], "jobs": [], "ignore_running": False, "comment": None,
        "reason": None, "created_by": "root", "created_at": "2026-07-01T08:00:00Z",
    }  # fmt: skip
    return _checked(booking | fields, answers.Booking)


def a_course() -> Object:
    """A booking for use, repeated, with all there is to tell."""
    return a_booking(
        "course", kind="use", state="ACTIVE", starts_at="2026-07-01T09:00:00Z",
        ends_at="2026-07-01T13:00:00Z", duration_s=14400, repeats="weekly",
        until="2026-09-30T00:00:00Z", node_list=[], gpu_type="h100", node_count=2,
        node_names=["gpu-h100-01", "gpu-h100-02"], users=["alice", "bob"], accounts=["ml101"],
        jobs=[4127, 4130], reason="gpu-h100-02 is not up, and no other can take its place",
        comment="Mondays", created_by="carol",
    )  # fmt: skip


def a_licence(name: str, total: int, used: int, jobs: list[int]) -> Object:
    licence: Object = {
        "name": name, "total": total, "used": used, "free": max(total - used, 0), "jobs": jobs,
    }  # fmt: skip
    return _checked(licence, answers.Licence)


def an_event(event_id: int, kind: str, **fields: Any) -> Object:
    event: Object = {
        "id": event_id, "at": f"2026-07-01T10:00:{event_id:02}.250Z", "kind": kind, "actor": "odcd",
        "job_id": 7, "array_job_id": None, "array_task_id": None, "node": None, "detail": {},
    }  # fmt: skip
    return _checked(event | fields, answers.Event)


def submitted(job_id: int = 7, **fields: Any) -> Object:
    answer: Object = {
        "id": job_id, "wait": False, "parsable": False, "quiet": False, "json": False, "pty": False,
        "warnings": [],
    }  # fmt: skip
    return _checked(answer | fields, answers.SubmittedArgv)


def ended(job_id: int = 7, state: str = "COMPLETED", **fields: Any) -> Object:
    job: Object = {
        "id": job_id, "array_task_id": None, "state": state, "exit_code": 0, "signal": None,
    }  # fmt: skip
    return _checked(job | fields, answers.EndedJob)


def outcome(job_id: int, word: str, **fields: Any) -> Object:
    told: Object = {
        "job_id": job_id, "array_task_id": None, "outcome": word, "code": None, "message": None,
        "hint": None,
    }  # fmt: skip
    return _checked(told | fields, answers.Outcome)


def a_cluster() -> Object:
    cluster: Object = {
        "at": "2026-07-01T12:00:00Z",
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
    return _checked(cluster, answers.Cluster)


def an_account(name: str, **fields: Any) -> Object:
    account: Object = {
        "name": name, "parent": None, "description": None, "organisation": None, "shares": 1,
        "default_qos": None, "qos": None, "coordinators": [], "users": [], "limits": {},
    }  # fmt: skip
    return _checked(account | fields, answers.Account)


def a_qos(name: str, **fields: Any) -> Object:
    qos: Object = {
        "name": name, "description": None, "priority": 0, "restricted": False,
        "deny_on_limit": True, "usage_factor": 1.0, "preempts": [], "preempt_mode": "requeue",
        "exempt_s": 0, "grace_s": 0, "limits": {},
    }  # fmt: skip
    return _checked(qos | fields, answers.Qos)


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
    return _checked(user | fields, answers.User)


def a_share(account: str, **fields: Any) -> Object:
    share: Object = {
        "account": account, "user": None, "uid": None, "depth": 0, "raw_shares": 1,
        "norm_shares": 0.5, "used_s": 7200, "effective_usage": 0.75, "level_fs": 0.666667,
        "fairshare": None,
    }  # fmt: skip
    return _checked(share | fields, answers.Share)


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
    return _checked(value, answers.PriorityList)


def accounting(**fields: Any) -> Object:
    settings: Object = {
        "weights": {"age": 1000, "size": 100, "fairshare": 10000, "qos": 10000, "partition": 1000},
        "max_age_s": 604800, "half_life_s": 604800, "enforce": False, "cpus_per_gpu": 24,
    }  # fmt: skip
    return _checked(settings | fields, answers.Accounting)


def _cause(kind: str, text: str, **fields: Any) -> Object:
    return {"cause": kind, "text": text, **fields}


def _checked(value: Object, schema: Any) -> Object:
    msgspec.convert(value, schema)
    return value
