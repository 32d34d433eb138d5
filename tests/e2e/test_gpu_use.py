"""GPU usage on one machine: a real daemon, killed, and real jobs. Only NVIDIA's library, which
needs a driver, is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.test_first_steps import kill_daemon
from tests.support.harness.daemon import new_odc, wait

LIBRARY = Path(__file__).parents[1] / "support" / "fakes" / "library"
CARDS = "GPU-a,NVIDIA H100 80GB HBM3,60,70000\nGPU-b,NVIDIA H100 80GB HBM3,0,500\n"


@pytest.mark.long
def test_gpu_usage_survives_a_killed_daemon_and_the_exporter_files_are_correct() -> None:
    with new_odc() as odc:
        cards, folder = odc.work / "cards", odc.work / "jobs"
        cards.write_text(CARDS)
        folder.mkdir()
        folder.chmod(0o777)
        odc.environment |= {
            "ODC_TEST_CARDS": str(cards), "ODC_DCGM_JOBS_DIR": str(folder), "ODC_SCRAPE_S": "1",
            "PYTHONPATH": os.pathsep.join([str(LIBRARY), odc.environment["PYTHONPATH"]]),
        }  # fmt: skip

        def files() -> dict[str, str]:
            return {path.name: path.read_text() for path in folder.iterdir() if path.suffix == ""}

        def until(**texts: str) -> None:
            expected = {name.removeprefix("gpu"): text for name, text in texts.items()}
            wait(lambda: files() == expected or None, lambda: f"{files()}{odc.log()}")

        odc.up("--node", "self")
        until(gpu0="", gpu1="")
        flag, go, over = odc.work / "end", odc.work / "go", odc.work / "over"
        long = odc.submit("--gpus=1", "--wrap", f"until [ -e {flag} ]; do sleep 0.2; done")
        short = odc.submit(
            "--gpus=1", "--wrap", f"until [ -e {go} ]; do sleep 0.2; done; touch {over}"
        )
        until(gpu0=f"{long}\n", gpu1=f"{short}\n")
        # It has its GPU before its script begins.
        odc.wait_for(short, "RUNNING")
        kill_daemon(odc)
        # Its job ends while no daemon runs; and another process writes to odcd's files.
        go.touch()
        wait(lambda: over.exists() or None, odc.log)
        (folder / "0").unlink()
        (folder / "0").write_text("999\n")
        odc.up("--node", "self")
        until(gpu0=f"{long}\n", gpu1="")

        def seen() -> bool:
            # Of one sample every five seconds, two are there in any case.
            rows = odc.rows("select extract(epoch from now() - taken_at) as s from odc.term")
            return rows[0]["s"] > 12

        wait(lambda: seen() or None, odc.log)
        flag.touch()
        odc.wait_for(long, "COMPLETED")
        until(gpu0="", gpu1="")
        wait(lambda: (odc.job(long)["gpu_use"] or {}).get("owed") == 0 or None, odc.log)
        use = odc.job(long)["gpu_use"]
        assert (use["source"], use["gave_up"], use["mem_peak_mib"]) == ("nvml", None, 70_000)
        assert 0.59 < use["busy_ratio"] < 0.61
        assert 5 <= use["seen_gpu_s"] <= use["held_gpu_s"]
        assert use["energy_j"] == pytest.approx(400 * use["seen_gpu_s"], rel=0.3)
        assert "busy of" in odc.odcctl("show", str(long)).stdout
        efficiency = odc.odcctl("history", "--efficiency").stdout
        assert "60 %" in efficiency
        # Of the other, what was written before the kill, or that nothing was.
        use = odc.job(short)["gpu_use"]
        assert use["owed"] == 0
        assert use["gave_up"] == "NVML was not sampled while it ran" or use["seen_gpu_s"] > 0
