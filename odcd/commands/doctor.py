"""odcd doctor: check what the daemon needs of this machine."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace

from odcd.commands import Subparsers, add_home, describe
from odcd.settings import find_home

MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def add(subparsers: Subparsers) -> None:
    parser = describe(
        subparsers,
        "doctor",
        "Check what the daemon needs of this machine, and say what is missing",
        "odcd doctor --home /var/lib/odc",
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    from odcd.health import examine

    findings = examine(find_home(args.home, os.environ))
    if args.json:
        json.dump({"checks": [f.as_dict() for f in findings]}, sys.stdout, indent=2)
        print()
    else:
        width = max(len(finding.about) for finding in findings)
        for finding in findings:
            print(f"{MARKS[finding.verdict]}  {finding.about:<{width}}  {finding.text}")
            if finding.hint:
                print(f"{'':<{width + 8}}{finding.hint}")
    return 1 if any(finding.verdict == "bad" for finding in findings) else 0
