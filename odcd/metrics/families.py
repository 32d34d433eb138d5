"""The metrics of the cluster, which only the leader exports, and the SQL functions that measure
them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Family:
    """name: as exported; for a histogram without _bucket. labels: in the order of the SQL
    functions."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its samples in the rows of measuring functions."""
        if self.kind != "histogram":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))


def _family(kind: Kind, name: str, labels: str, text: str) -> Family:
    return Family(name, kind, tuple(labels.split()), text)


_gauge = partial(_family, "gauge")
_counter = partial(_family, "counter")
_histogram = partial(_family, "histogram")

MEASURES = {
    "measure_queue": 5.0,
    "measure_nodes": 5.0,
    "measure_reservations": 5.0,
    "measure_tally": 5.0,
    "measure_server": 5.0,
    "measure_limits": 15.0,
    "measure_disks": 30.0,
    "measure_elastic": 15.0,
    "measure_outbox": 15.0,
    "measure_gpu_use": 30.0,
    "measure_forecast": 60.0,
    "measure_database": 60.0,
}
"""The SQL functions that measure, and the minimum seconds between two calls."""

JOB_INFO = _gauge(
    "odcd_job_info", "account gpus job_id kind namespace node partition pod rank user",
    "1 for each live member of a job; gpus: its number of GPUs; pod and namespace are empty for "
    "jobs without pods.",
)  # fmt: skip
"""By far the most samples, so it is not in CLUSTER: odc.render_job_info writes its lines."""

CLUSTER = (
    _gauge("odcd_jobs", "state partition",
           "Live jobs, with each array task counted; a pending job counts for the first partition "
           "it names."),
    _gauge("odcd_jobs_pending", "reason", "Pending jobs and array tasks, by Slurm's reason."),
    _gauge("odcd_jobs_at_limit", "reason",
           "Pending jobs and array tasks that wait because of a limit."),
    _gauge("odcd_why_causes", "cause",
           "Number of causes that block the first planned jobs, by kind."),
    _gauge("odcd_job_oldest_wait_seconds", "partition",
           "The longest wait of a pending job since it became eligible."),
    _histogram("odcd_job_queue_wait_seconds", "partition",
               "Time from when a job became eligible until it started."),
    _counter("odcd_jobs_submitted_total", "partition", "Jobs accepted, array tasks counted."),
    _counter("odcd_jobs_started_total", "partition", "Started attempts."),
    _counter("odcd_jobs_finished_total", "state partition account",
             "Jobs and array tasks that reached their final state."),
    _counter("odcd_job_requeues_total", "partition reason",
             "Attempts after which the job was requeued."),
    _counter("odcd_job_preemptions_total", "partition reason",
             "Preempted attempts; reason: the QOS of the job that preempted them."),
    _gauge("odcd_gpus", "state gpu_type",
           "GPUs by state: allocated, idle (free), booked (and free), draining and down (free, on "
           "such nodes)."),
    _gauge("odcd_partition_gpus", "partition state gpu_type",
           "The same as odcd_gpus, by partition; a node may be in several."),
    _gauge("odcd_gpu_fits", "gpu_type gpus",
           "How many jobs with this many GPUs on one node could start now."),
    _gauge("odcd_gang_nodes_max", "gpu_type", "How many whole nodes one gang could get now."),
    _gauge("odcd_gpus_fragmented", "gpu_type",
           "Free GPUs on partly allocated nodes."),
    _gauge("odcd_gpus_forecast", "gpu_type hours",
           "GPUs that the plan expects to be free in this many hours."),
    _gauge("odcd_nodes", "state gpu_type", "Nodes by state."),
    _gauge("odcd_nodes_quarantined", "",
           "Quarantined nodes: jobs kept failing on them, so no new jobs start there."),
    _gauge("odcd_elastic_nodes", "group kind",
           "Nodes of elastic groups. kind: desired, ready or maximum."),
    _gauge("odcd_elastic_launch_failures", "group",
           "Failed attempts to add nodes to a group since its last new instance."),
    _gauge("odcd_jobs_need_node", "", "Pending jobs for which a new node was requested."),
    _gauge("odcd_notifications_waiting", "channel", "Notifications that were not sent yet."),
    _gauge("odcd_notification_oldest_seconds", "channel",
           "The age of the oldest notification that was not sent yet; 0: none waits."),
    _counter("odcd_notifications_dropped_total", "",
             "Notifications beyond the limit per user and hour."),
    _counter("odcd_gpu_seconds_total", "user account gpu_type",
             "Seconds for which GPUs were allocated, to ended and running jobs."),
    _gauge("odcd_reservations", "status", "Live dev servers, by the status that users see."),
    _gauge("odcd_reservation_phase", "phase", "Dev servers in each phase."),
    _gauge("odcd_reservation_phase_oldest_seconds", "phase",
           "The longest time that a dev server has been in this phase."),
    _histogram("odcd_reservation_phase_seconds", "phase",
               "Duration of phases, of dev servers that became active."),
    _gauge("odcd_gpus_held_idle", "gpu_type",
           "GPUs that are allocated but have been idle for longer than ODC_IDLE_GPU_S."),
    _gauge("odcd_jobs_held_idle", "kind", "Jobs with such allocated but idle GPUs."),
    _gauge("odcd_reservation_idle_seconds", "user",
           "The longest time that a GPU of the user's dev servers has been idle."),
    _gauge("odcd_gpu_use_pending", "",
           "Ended attempts whose GPU usage is not stored yet."),
    _gauge("odcd_gpu_use_pending_seconds", "", "Time since the earliest end of such an attempt."),
    _gauge("odcd_expiry_lag_seconds", "", "How long the most overdue job has run past its end."),
    _gauge("odcd_orphans", "kind",
           "Resources that no row owns: pods found in the last 5 minutes, and current volumes and "
           "snapshots."),
    _counter("odcd_book_repairs_total", "book",
             "Rows that the sweep corrected because two tables contradicted each other."),
    _counter("odcd_orphans_found_total", "kind", "Resources found that no row owns."),
    _gauge("odcd_disks", "state", "Disks by state."),
    _gauge("odcd_disk_lock_stale_seconds", "",
           "The longest time that a disk has been locked by a dev server that has ended."),
    _gauge("odcd_snapshots", "state", "Snapshots by state."),
    _gauge("odcd_snapshot_pending_seconds", "",
           "Age of the oldest snapshot that has not completed."),
    _gauge("odcd_disk_unsaved_seconds", "",
           "The longest time that an unused disk has had data that no snapshot contains."),
    _gauge("odcd_scheduler_jobs_considered", "", "Jobs that the last pass considered."),
    _gauge("odcd_scheduler_last_success_timestamp_seconds", "", "Time of the last completed pass."),
    _gauge("odcd_planned_starts", "", "Jobs that have a planned start."),
    _gauge("odcd_tally_events_aside", "",
           "Events that could not be counted; the leader's log names them and the reason."),
    _counter("odcd_planned_starts_kept_total", "",
             "Jobs that started as planned, without a delay of their planned start."),
    _counter("odcd_planned_starts_moved_total", "because",
             "Planned starts that were delayed, by reason."),
    _gauge("odcd_eta_scored", "", "Jobs started in 7 days that had an expected start."),
    _gauge("odcd_eta_coverage_ratio", "",
           "Share of these jobs that started between p10 and p90; the target is 0.8."),
    _gauge("odcd_eta_error_seconds", "", "Mean distance of their start from p50."),
    _gauge("odcd_eta_bias_seconds", "",
           "Mean of p50 minus start: positive when jobs start earlier than predicted."),
    _gauge("odcd_eta_width_seconds", "", "Mean distance from p10 to p90."),
    _gauge("odcd_limit_used_ratio", "scope name resource",
           "Used share of a limit on a group of jobs."),
    _gauge("odcd_leader_term", "", "The term of the leader."),
    _gauge("odcd_leader_since_timestamp_seconds", "", "Time when the leader took over."),
    _gauge("odcd_database_bytes", "", "Size of the database."),
    _gauge("odcd_database_connections", "state", "Connections to the database."),
    _gauge("odcd_database_oldest_snapshot_seconds", "",
           "Age of the oldest open snapshot, as far as odc's user may see it."),
    _gauge("odcd_database_replication_lag_seconds", "replica",
           "Lag of each replica, as far as odc's user may see it."),
    _gauge("odcd_sample_timestamp_seconds", "", "Time of these measurements of the cluster."),
    _gauge("odcd_sample_seconds", "", "Duration of these measurements."),
)  # fmt: skip
