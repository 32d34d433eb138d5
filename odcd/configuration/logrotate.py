"""The file for logrotate, which rotates the audit log; odcd rotates its other logs itself."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("odc.logrotate")
PATTERN = "/var/log/odc/*.log"


def logrotate_file(audit_log: str | None) -> str:
    """For a site's audit log; None or -: for the usual folder."""
    text = FILE.read_text("utf-8")
    if audit_log in (None, "-"):
        return text
    return text.replace(PATTERN, f'"{audit_log}"')
