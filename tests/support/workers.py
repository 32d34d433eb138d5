"""Which tests xdist keeps on one worker, with `--dist loadgroup`."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling

ONE_WORKER = {"tests/kubernetes/": "controlplane", "tests/grafana/test_live.py": "grafana"}
"""Start of a test's id -> its group: one control plane is enough for a machine, one Prometheus that
scrapes a live odcd for all panels."""


class ByFolder(LoadGroupScheduling):
    """Groups by ONE_WORKER. The mark xdist_group does nothing from pytest 9.2 on (xdist 3.8)."""

    def _split_scope(self, nodeid: str) -> str:
        for start, group in ONE_WORKER.items():
            if nodeid.startswith(start):
                return group
        return super()._split_scope(nodeid)
