"""odcd doctor: check what the daemon needs of this machine, or of a Kubernetes cluster."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from odcctl.cli.plain import new_app
from odcd.cli.params import Command, Context, Executor, Home, Kubeconfig, environment_of
from odcd.records.fields import shown

if TYPE_CHECKING:
    from odcd.doctor.host import Finding

MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}

app = new_app()


@app.command(cls=Command, epilog="odcd doctor --executor kubernetes")
def doctor(
    home: Home = None,
    executor: Executor = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    canaries: Annotated[
        bool, typer.Option("--canaries", help="on Kubernetes: run pods that test the network")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> int:
    """Check this machine or a cluster, and report what the daemon lacks."""
    from odcd.doctor.host import examine
    from odcd.doctor.mail import examine_mail
    from odcd.doctor.reports import examine_reports
    from odcd.notify.settings import read_notify
    from odcd.settings import find_home

    environment = environment_of(home)
    if (executor or environment.get("ODC_EXECUTOR")) == "kubernetes":
        findings = _of_cluster(kubeconfig, context, environment, canaries=canaries)
    else:
        findings = examine(find_home(home, os.environ))
    findings += examine_mail(read_notify(environment))
    if dsn := environment.get("ODC_DSN"):
        findings += examine_reports(dsn)
    if as_json:
        json.dump({"checks": [f.as_dict() for f in findings]}, sys.stdout, indent=2)
        print()
    else:
        width = max(len(finding.about) for finding in findings)
        for finding in findings:
            mark, text = MARKS[finding.verdict], shown(finding.text)
            print(f"{mark}  {finding.about:<{width}}  {text}")
            if finding.hint:
                print(f"{'':<{width + 8}}{shown(finding.hint)}")
    return 1 if any(finding.verdict == "bad" for finding in findings) else 0


def _of_cluster(
    kubeconfig: str | None, context: str | None, environment: Mapping[str, str], *, canaries: bool
) -> list[Finding]:
    import asyncio

    from odcd.builds.settings import read_builds
    from odcd.disks.settings import read_disks
    from odcd.doctor.cluster import examine_cluster
    from odcd.doctor.elastic import examine_elastic
    from odcd.elastic.settings import read_elastic
    from odcd.executor.kubernetes.pods import whole_seconds
    from odcd.executor.kubernetes.settings import read_kubernetes
    from odcd.settings import read_grace

    settings = read_kubernetes(kubeconfig, context, environment)
    grace_s, builds = whole_seconds(read_grace(environment)), read_builds(environment)
    disks = read_disks(environment)
    elastic = read_elastic(environment, disks.aws_region, kubernetes=True)

    async def look() -> list[Finding]:
        found = await examine_cluster(settings, grace_s, builds, canaries=canaries)
        return found + await examine_elastic(elastic, disks, settings)

    return asyncio.run(look())
