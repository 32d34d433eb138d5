"""A daemon reports metrics of the cluster to Prometheus, and continues counting after it was
killed."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.e2e.test_first_steps import kill_daemon
from tests.support.harness.daemon import Odc, wait

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def scrape(odc: Odc) -> dict[str, float]:
    """Every sample, by its name and labels as they are written."""
    with odc.asking("GET", "/metrics") as connection:
        answer = connection.getresponse()
        assert answer.status == 200
        text = answer.read().decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


@pytest.mark.long
def test_counters_continue_in_the_next_daemon(odc: Odc) -> None:
    odc.up("--node", "n1=h100:8")
    done = odc.submit("--wrap", "true")
    odc.wait_for(done, "COMPLETED")
    job = odc.submit("-G", "h100:2", "--wrap", "sleep 600")
    odc.wait_for(job, "RUNNING")

    def read_metrics(*names: str) -> dict[str, float]:
        """Once these are 1."""

        def reached() -> dict[str, float] | None:
            found = scrape(odc)
            return found if all(found.get(name) == 1 for name in names) else None

        return wait(reached, lambda: str(sorted(scrape(odc).items())))

    ended = 'odcd_jobs_finished_total{account="default",partition="main",state="COMPLETED"}'
    found = read_metrics('odcd_jobs{partition="main",state="RUNNING"}', ended)
    assert found['odcd_gpus{gpu_type="h100",state="allocated"}'] == 2
    assert found['odcd_gpus{gpu_type="h100",state="idle"}'] == 6
    assert found["odcd_listener_up"] == found["odcd_leader"] == found["odcd_database_up"] == 1
    assert found["odcd_scheduler_cycle_seconds_count"] > 0
    assert found['odcd_backend_request_seconds_count{backend="runner",operation="start"}'] > 0
    assert found["odcd_scheduler_last_success_timestamp_seconds"] > 0
    [info] = [name for name in found if name.startswith("odcd_job_info")]
    assert f'job_id="{job}"' in info
    held = [name for name in found if name.startswith("odcd_gpu_seconds_total")]
    assert len(held) == 1

    kill_daemon(odc)
    odc.up("--node", "n1=h100:8")
    again = read_metrics(ended)
    assert again[held[0]] >= found[held[0]]
    odc.odcctl("cancel", str(job))
    odc.wait_for(job, "CANCELLED")
    read_metrics(ended.replace("COMPLETED", "CANCELLED"))


@pytest.mark.long
def test_prometheus_accepts_the_metrics_of_a_daemon(odc: Odc) -> None:
    odc.up()
    with odc.asking("GET", "/health") as connection:
        connection.getresponse().read()
        connection.request("GET", "/metrics", headers={"Accept": OPENMETRICS})
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.headers["content-type"].startswith(OPENMETRICS.replace(";", "; "))
    assert {"odcd_jobs", "odcd_build", "process_cpu_seconds"} <= {
        family.name for family in text_string_to_metric_families(text)
    }
