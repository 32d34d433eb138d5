"""One job: the usage of its GPUs."""

from __future__ import annotations

from grafana.dashboard import choice, dashboard
from grafana.links import page
from grafana.model import Json
from grafana.panels import rows_of, stat, table, timeseries

JOB = 'job_id=~"$job_id"'


def board() -> Json:
    job = choice("job_id", "odcd_job_info", label="Job", multi=False)
    # The value "all" would mix all jobs in one picture.
    job |= {"includeAll": False, "sort": 4, "current": {}}
    job.pop("allValue")
    return dashboard(
        "odc-job",
        "odc: one job",
        "GPUs, memory and power of a running job. For ended jobs use odcctl show or odcctl history --efficiency.",
        [
            ("", 4, _now()),
            ("GPUs of the job", 9, _gpus()),
            ("Memory and power", 9, _memory()),
            ("Members and attempts", 8, _what()),
        ],
        [job],
        since="now-1h",
        refresh="15s",
    )


def _now() -> list[Json]:
    own = page("The job's page, with its log", "/page/jobs/${job_id}")
    return [
        stat("Monitored GPUs", (f"count(odcd:gpu:job{{{JOB}}})", ""), links=[own]),
        stat("Current usage", (f"avg(odcd:gpu_utilization:avg_by_job{{{JOB}}})", ""), unit="percentunit"),
        stat("Memory used", (f"avg(odcd:gpu_memory_used_ratio:by_job{{{JOB}}})", ""), unit="percentunit"),
        stat("Power", (f"sum(odcd:gpu_power:watts_by_job{{{JOB}}})", ""), unit="watt"),
        stat("Energy in this time range", (f"sum(increase(odcd:dcgm_gpu_energy:joules_total{{{JOB}}}[$__range]))", ""), unit="joule"),
        stat("Idle GPUs", (f"sum(odcd:gpus_idle:by_job{{{JOB}}}) or vector(0)", ""), red_above=1, description="Not used for 15 minutes."),
    ]  # fmt: skip


def _gpus() -> list[Json]:
    each = "{{node}} {{gpu}}"
    ours = f"on (UUID) group_left (node) max by (UUID, node) (odcd:gpu:job{{{JOB}}})"
    return [
        timeseries("Usage by GPU", (f"odcd:dcgm_gpu_utilization:ratio{{{JOB}}}", each), unit="percentunit", top=1),
        timeseries(
            "Tensor cores, and memory traffic",
            (f"max by (UUID, gpu) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE) * {ours}", f"tensor {each}"),
            (f"max by (UUID, gpu) (DCGM_FI_PROF_DRAM_ACTIVE) * {ours}", f"memory {each}"),
            unit="percentunit", top=1, description="Shares of the cycles. Requires an exporter with profiling fields.",
        ),
    ]  # fmt: skip


def _memory() -> list[Json]:
    each = "{{node}} {{gpu}}"
    ours = f"on (UUID) group_left (node) max by (UUID, node) (odcd:gpu:job{{{JOB}}})"
    return [
        timeseries("Memory", (f"odcd:dcgm_gpu_memory_used:bytes{{{JOB}}}", each), unit="bytes"),
        timeseries("Power by GPU", (f"odcd:dcgm_gpu_power:watts{{{JOB}}}", each), unit="watt"),
        timeseries("Temperature", (f"max by (UUID, gpu) (DCGM_FI_DEV_GPU_TEMP) * {ours}", each), unit="celsius"),
    ]  # fmt: skip


def _what() -> list[Json]:
    return [
        table(
            "Members", (f"max by (job_id, user, account, partition, kind, rank, node, namespace, pod) (odcd_job_info{{{JOB}}})", ""),
            hide=["Value"], names={"job_id": "job"},
        ),
        rows_of(
            "Attempts and their times",
            'select attempt, state, partition, gpus, gpu_type as "GPU type", started_at as "started", ended_at as "ended" '
            "from odc_report.attempt where job_id = any (string_to_array('${job_id:csv}', ',')::bigint[]) order by attempt",
            units={"started": "dateTimeAsLocal", "ended": "dateTimeAsLocal"},
        ),
    ]  # fmt: skip
