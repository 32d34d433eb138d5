"""Which tests xdist keeps on one worker with `--dist loadgroup`; which the long run retries."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling

PROCESS_NODES = (
    "builds", "dev_server_command", "dev_server_disk", "dev_server_inside", "disks_inside",
    "faults", "gpu_use", "losses", "processes", "quarantine",
)  # fmt: skip
"""Tests of tests/kubernetes whose nodes are real kubelets."""
API_ONLY = (
    "admission", "applied", "changes", "manifests", "monitoring", "postgresql", "proxy",
    "restricted", "rights",
)  # fmt: skip
"""Those that need no nodes. The nodes of the others are KWOK's."""
ONE_WORKER = {
    **{f"tests/kubernetes/test_{name}.py": "kubelets" for name in PROCESS_NODES},
    **{f"tests/kubernetes/test_{name}.py": "manifests" for name in API_ONLY},
    "tests/kubernetes/real/": "real nodes",
    "tests/kubernetes/": "controlplane",
    "tests/grafana/test_live.py": "grafana",
    "tests/attack/test_changed_accounts.py": "accounts of this machine",
    "tests/tofu/test_apply.py::test_production": "the production environment",
    "tests/tofu/test_apply.py": "the test environment",
}
"""Start of a test's id -> its group; the first match counts. Each group starts what its tests share
once: a control plane, a Prometheus that scrapes a live odcd for all panels, an environment of the
cloud. Accounts have names and uids that only one test at a time can use."""

TRIED_AGAIN = (
    "tests/clients/",
    "tests/e2e/test_dev_server.py",
    "tests/grafana/test_live.py",
    "tests/kubernetes/test_applied.py",
    "tests/kubernetes/test_dev_server",
    "tests/kubernetes/test_build",
    "tests/kubernetes/test_gpu_use.py",
    "tests/kubernetes/test_installed.py",
    "tests/kubernetes/test_monitoring.py",
    "tests/kubernetes/test_node_ports.py",
    "tests/kubernetes/test_processes.py",
    "tests/kubernetes/test_proxy.py",
    "tests/kubernetes/test_steps.py",
    "tests/odcd/page/test_browser.py",
)
"""Starts of the ids of tests in which programs of others (KWOK, sshd, Prometheus, Chromium, Slurm's
clients, shells) must do something in time, on a machine that does much else: under
--max-suite-reruns they may fail once, and the run prints how. Never a test of what may not happen
even once: a lost or doubled job, lost data, another decision."""


class ByFolder(LoadGroupScheduling):
    """Groups by ONE_WORKER. The mark xdist_group does nothing from pytest 9.2 on (xdist 3.8)."""

    def _split_scope(self, nodeid: str) -> str:
        for start, group in ONE_WORKER.items():
            if nodeid.startswith(start):
                return group
        return super()._split_scope(nodeid)
