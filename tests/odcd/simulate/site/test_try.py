from __future__ import annotations
import asyncio, json, time
from datetime import timedelta
from tests.sim.simulation import START
from tests.support.harness.database import TestServer
from odcd.simulate.site.reading import read_site
from odcd.simulate.site.replay import read_sources, replay_site
from odcd.simulate.site.compare import comparison, matched
from odcd.simulate.site.output import report
from tests.odcd.simulate.site.days import quiet_days

import pytest


@pytest.mark.parametrize("ev", [0, 1])
@pytest.mark.parametrize("seed", [1, 2])
def test_it(database_url, postgres_server: TestServer, seed, ev):
    t = time.time()
    end = quiet_days(database_url, seed, 200, eventful=bool(ev))
    print(START, end, time.time() - t)
    for start in (START,):
        site = asyncio.run(read_site(database_url, start, end))
        print(len(site.jobs), site.left_out, len(site.changes))
        dsn = postgres_server.clone()
        t = time.time()
        done = asyncio.run(
            replay_site(dsn, sources=read_sources(), site=site, progress=lambda a, b: None)
        )
        print(done.refused, time.time() - t)
        jobs = {j.id: j for j in site.jobs}
        simst = {(x.job_id, x.number): x for x in done.starts}
        rows = []
        for j in site.jobs:
            for t in j.tasks:
                st = simst.get((j.id, t.number))
                real = t.first_start_s
                sim = st.start_s if st else None
                when = min(x if x is not None else 1 << 30 for x in (real, sim))
                rows.append(
                    (
                        when,
                        abs(
                            (real if real is not None else 1 << 29)
                            - (sim if sim is not None else 1 << 29)
                        )
                        > 5,
                        j.id,
                        t.number,
                        j.submit_s,
                        j.ready_s,
                        j.limit_s,
                        "nice",
                        j.nice,
                        "qos",
                        j.qos_id,
                        "real",
                        real,
                        "sim",
                        sim,
                        st.nodes if st else None,
                        st.preempted if st else None,
                        [(s.start_s, s.end_s, s.nodes) for s in t.spans],
                        t.preempted,
                        t.cancelled_s,
                        j.terms,
                        "thr",
                        j.throttle,
                    )
                )
        rows.sort(key=lambda r: r[0])
        for r in rows:
            print("R", *r)
        print(site.changes)
        print(report(comparison(site, [done], "x")))
