"""odcd doctor: check what the daemon needs of this machine, or of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from odcd.commands import Subparsers, add_cluster, add_home, describe
from odcd.errors import shown
from odcd.settings import find_home, read_grace

if TYPE_CHECKING:
    from odcd.doctor.host import Finding

MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "doctor",
        "Check this machine or a cluster, and report what the daemon lacks",
        "odcd doctor --executor kubernetes",
    )
    add_home(parser)
    add_cluster(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.doctor.host import examine

    if args.executor == "kubernetes":
        findings = _of_cluster(args)
    else:
        findings = examine(find_home(args.home, os.environ))
    if args.json:
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


def _of_cluster(args: Namespace) -> list[Finding]:
    from odcd.builds.settings import read_builds
    from odcd.doctor.cluster import examine_cluster
    from odcd.executor.kubernetes.pods import whole_seconds
    from odcd.executor.kubernetes.settings import read_kubernetes

    settings = read_kubernetes(args.kubeconfig, args.context, os.environ)
    grace_s, builds = whole_seconds(read_grace(os.environ)), read_builds(os.environ)
    return asyncio.run(examine_cluster(settings, grace_s, builds))
