"""Jobs on a cluster with random faults: all end as they should.

`make test-soak` runs 10,000 jobs on 1,000 nodes; its output is in benchmarks/RESULTS.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.controlplane.build import NoBinaries
from tests.support.harness.controlplane.kwok import Kwok
from tests.support.harness.controlplane.nodes import many_nodes, until_ready
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.proxy import FaultProxy
from tests.support.harness.controlplane.watch import Watch
from tests.support.harness.members import Members
from tests.support.harness.phases import Phases
from tests.support.harness.served import Site, a_site
from tests.support.harness.soak import Soak
from tests.support.harness.troubles import Faults

pytestmark = pytest.mark.long

JOBS = int(os.environ.get("ODC_SOAK_JOBS", "500"))
NODES = int(os.environ.get("ODC_SOAK_NODES", "100"))
SEED = int(os.environ.get("ODC_SOAK_SEED", "4"))
LEASE_S, NODE_GRACE_S = 4, 8
PODS = {"labelSelector": "app.kubernetes.io/managed-by=odcd"}


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """Not the session's: odcd would plan with the nodes there, and the test kills this one
    repeatedly."""
    try:
        # KWOK is late with heartbeats when the machine is busy; nodes are lost on purpose only.
        plane = ControlPlane(tmp_path, node_grace_s=3600)
    except NoBinaries as why:
        pytest.skip(str(why))
    with plane:
        yield plane


@pytest.fixture
def own_kwok(own_plane: ControlPlane, tmp_path: Path) -> Iterator[Kwok]:
    try:
        kwok = Kwok(own_plane, tmp_path / "kwok")
    except NoBinaries as why:
        pytest.skip(str(why))
    with kwok:
        made = own_plane.api.create_all(many_nodes(h100=NODES))
        until_ready(own_plane.api, [node["metadata"]["name"] for node in made])
        yield kwok


@pytest.fixture
def site(own_plane: ControlPlane) -> Iterator[Site]:
    with a_site(own_plane) as made:
        yield made


@pytest.fixture
def proxy(own_plane: ControlPlane, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(own_plane, tmp_path / "proxy", SEED) as made:
        yield made


def test_every_job_ends_as_expected_during_faults(
    own_plane: ControlPlane, own_kwok: Kwok, proxy: FaultProxy, site: Site
) -> None:
    large = JOBS > 1_000
    settings = {"lease_s": LEASE_S, "sweep_s": 5, "node_grace_s": NODE_GRACE_S, "grace_s": 5,
                "orphan_s": 5, "schedule_s": 300, "quarantine": "off"}  # fmt: skip
    config = site.kubeconfig(proxy)
    daemons = [site.daemon(name, config, **settings) for name in ("a", "b")]
    members = Members()
    faults = Faults(
        own_plane, own_kwok, proxy, site, daemons, members, SEED,
        gap_s=(8.0, 20.0) if large else (3.0, 8.0), pause_s=60.0 if large else 8.0,
    )  # fmt: skip

    def processes() -> dict[str, int]:
        postgres = site.postgres.postmaster()
        children = {
            "API server": own_plane.apiserver, "etcd": own_plane.etcd, "KWOK": own_kwok,
            "scheduler": own_plane.scheduler, "controllers": own_plane.controllers,
            **{f"odcd {one.log.stem}": one for one in daemons},
        }  # fmt: skip
        found = {name: one.pid for name, one in children.items() if one.running}
        found["this test"] = os.getpid()
        return found | ({} if postgres is None else {"PostgreSQL": postgres.pid})

    watch = Watch(own_plane.api, "/api/v1/pods", members.record, **PODS)
    try:
        for daemon in daemons:
            daemon.start()
        with watch:
            soak = Soak(
                site,
                daemons,
                faults,
                members,
                watch,
                Phases(processes, members.counts),
                JOBS,
                SEED,
                spread_s=JOBS / (20 if large else 15),
            )
            soak.run(patience_s=1_200 if large else 600)
            wrong = soak.wrong()
            print(f"\nseed {SEED}, {NODES:,} nodes\n{soak.summary()}")
    finally:
        for daemon in daemons:
            daemon.stop()
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:40]) + soak.log()
