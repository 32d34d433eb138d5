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
    "measure_gpu_use": 30.0,
    "measure_forecast": 60.0,
    "measure_database": 60.0,
}
"""The SQL functions that measure, and the minimum seconds between two calls."""

JOB_INFO = _gauge(
    "odcd_job_info", "account gpus job_id kind namespace node partition pod rank user",
    "1 for each live member of a job, with how many GPUs it holds; pod and namespace are empty "
    "where it is no pod.",
)  # fmt: skip
"""By far the most samples, so it is not in CLUSTER: odc.render_job_info writes its lines."""

CLUSTER = (
    _gauge("odcd_jobs", "state partition",
           "Live jobs, array tasks counted; of one that waits, the partition it named first."),
    _gauge("odcd_jobs_pending", "reason", "Jobs and array tasks that wait, by Slurm's reason."),
    _gauge("odcd_jobs_at_limit", "reason", "Those of them that a limit keeps waiting."),
    _gauge("odcd_why_causes", "cause",
           "Causes that keep the jobs planned first from starting, by kind."),
    _gauge("odcd_job_oldest_wait_seconds", "partition",
           "How long the job that has been free to start for longest has waited."),
    _histogram("odcd_job_queue_wait_seconds", "partition",
               "From when a job was free to start until it started."),
    _counter("odcd_jobs_submitted_total", "partition", "Jobs accepted, array tasks counted."),
    _counter("odcd_jobs_started_total", "partition", "Attempts begun."),
    _counter("odcd_jobs_finished_total", "state partition account",
             "Jobs and array tasks that have their final state."),
    _counter("odcd_job_requeues_total", "partition reason",
             "Attempts after which the job waits again."),
    _counter("odcd_job_preemptions_total", "partition reason",
             "Attempts ended for a job of the QOS that reason names."),
    _gauge("odcd_gpus", "state gpu_type",
           "GPUs: allocated, idle, booked and free, free on draining or down nodes."),
    _gauge("odcd_partition_gpus", "partition state gpu_type",
           "The same by partition; a node may be in several."),
    _gauge("odcd_gpu_fits", "gpu_type gpus",
           "How many jobs with so many GPUs on one node could start."),
    _gauge("odcd_gang_nodes_max", "gpu_type", "Whole nodes that one gang could take."),
    _gauge("odcd_gpus_fragmented", "gpu_type",
           "Free GPUs on nodes that have some of theirs taken."),
    _gauge("odcd_gpus_forecast", "gpu_type hours",
           "GPUs expected to be free in so many hours, by the plan."),
    _gauge("odcd_nodes", "state gpu_type", "Nodes by state."),
    _gauge("odcd_nodes_quarantined", "", "Nodes that eat jobs, and take none."),
    _counter("odcd_gpu_seconds_total", "user account gpu_type",
             "How long GPUs were held, by jobs that are over and by those that run."),
    _gauge("odcd_reservations", "status", "Live dev servers, as their users see them."),
    _gauge("odcd_reservation_phase", "phase", "How many dev servers are in a phase."),
    _gauge("odcd_reservation_phase_oldest_seconds", "phase",
           "How long the one that entered it first has been in it."),
    _histogram("odcd_reservation_phase_seconds", "phase",
               "How long phases took, of dev servers that became active."),
    _gauge("odcd_gpus_held_idle", "gpu_type",
           "GPUs that jobs hold and that rest, for longer than ODC_IDLE_GPU_S."),
    _gauge("odcd_jobs_held_idle", "kind", "Jobs that hold such."),
    _gauge("odcd_reservation_idle_seconds", "user",
           "How long a GPU of a user's dev servers has rested for longest."),
    _gauge("odcd_gpu_use_pending", "",
           "Attempts that are over, and what their GPUs did is not stored yet."),
    _gauge("odcd_gpu_use_pending_seconds", "", "How long ago the first of them was over."),
    _gauge("odcd_expiry_lag_seconds", "", "How late the end is that is most overdue."),
    _gauge("odcd_orphans", "kind",
           "Resources that no row owns: pods found in 5 minutes; volumes and snapshots now."),
    _counter("odcd_book_repairs_total", "book",
             "Rows that the sweep corrected because two tables contradicted each other."),
    _counter("odcd_orphans_found_total", "kind", "Resources found that no row owns."),
    _gauge("odcd_disks", "state", "Disks by state."),
    _gauge("odcd_disk_lock_stale_seconds", "",
           "How long the disk has been held for longest whose dev server is over."),
    _gauge("odcd_snapshots", "state", "Snapshots by state."),
    _gauge("odcd_snapshot_pending_seconds", "",
           "Age of the oldest snapshot that is not there yet."),
    _gauge("odcd_disk_unsaved_seconds", "",
           "How long a disk that is free has had bytes for longest that no snapshot has."),
    _gauge("odcd_scheduler_jobs_considered", "", "Jobs that the last pass looked at."),
    _gauge("odcd_scheduler_last_success_timestamp_seconds", "", "When the last pass was made."),
    _gauge("odcd_planned_starts", "", "Jobs that have a planned start."),
    _gauge("odcd_tally_events_aside", "",
           "Events that could not be counted; the log of the leader says which, and why."),
    _counter("odcd_planned_starts_kept_total", "",
             "Jobs that started as planned, and were never put off."),
    _counter("odcd_planned_starts_moved_total", "because",
             "Planned starts that were put off, by what moved them."),
    _gauge("odcd_eta_scored", "", "Jobs started in 7 days that had an expected start."),
    _gauge("odcd_eta_coverage_ratio", "",
           "Share of them that started between p10 and p90; 0.8 is right."),
    _gauge("odcd_eta_error_seconds", "", "Their mean distance from p50."),
    _gauge("odcd_eta_bias_seconds", "",
           "Mean of p50 less start: positive when jobs start earlier than predicted."),
    _gauge("odcd_eta_width_seconds", "", "Mean distance from p10 to p90."),
    _gauge("odcd_limit_used_ratio", "scope name resource",
           "How much of a limit on a group of jobs is used up."),
    _gauge("odcd_leader_term", "", "The term of the leader."),
    _gauge("odcd_leader_since_timestamp_seconds", "", "When it began to lead."),
    _gauge("odcd_database_bytes", "", "Size of the database."),
    _gauge("odcd_database_connections", "state", "Connections to the database."),
    _gauge("odcd_database_oldest_snapshot_seconds", "",
           "Age of the oldest open snapshot, as far as odc's user may see it."),
    _gauge("odcd_database_replication_lag_seconds", "replica",
           "How far replicas are behind, as far as odc's user may see them."),
    _gauge("odcd_sample_timestamp_seconds", "", "When these figures of the cluster were taken."),
    _gauge("odcd_sample_seconds", "", "How long that took."),
)  # fmt: skip
