"""The settings of history, read when a daemon starts; see odcd.settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from odcd.errors import BadRequest
from odcd.history.targets import check_target

MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    keep_jobs: timedelta | None = None
    """ODC_KEEP_JOBS_DAYS. How many days ended jobs are kept, with their attempts, events, scripts,
    kept output and GPU usage. Default none: forever."""
    keep_past: timedelta | None = None
    """ODC_KEEP_PAST_DAYS. How many days back `--as-of`, `odcctl replay` and `odcctl plan --diff`
    can go. Default none: as long as ended jobs."""
    export_target: str | None = None
    """ODC_HISTORY_TARGET. A folder, or s3://BUCKET/PREFIX, where ended jobs are exported before
    they are deleted. Default none: they are deleted without an export."""
    endpoint: str | None = None
    """ODC_HISTORY_ENDPOINT. The address of an S3-compatible store. Default none: AWS's own."""


def read_history(environment: Mapping[str, str]) -> HistorySettings:
    """Raises BadRequest with the name of an invalid variable. An empty variable is not set."""
    target = environment.get("ODC_HISTORY_TARGET") or None
    if target is not None:
        check_target(target, "ODC_HISTORY_TARGET")
    settings = HistorySettings(
        keep_jobs=_days(environment, "ODC_KEEP_JOBS_DAYS"),
        keep_past=_days(environment, "ODC_KEEP_PAST_DAYS"),
        export_target=target,
        endpoint=environment.get("ODC_HISTORY_ENDPOINT") or None,
    )
    if target is not None and settings.keep_jobs is None:
        raise BadRequest(
            "ODC_HISTORY_TARGET is set but ODC_KEEP_JOBS_DAYS is not: nothing would be exported",
            "Set both, or run `odcd history export` by hand.",
        )
    return settings


def _days(environment: Mapping[str, str], name: str) -> timedelta | None:
    text = environment.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_DAYS):
        raise BadRequest(
            f'{name}="{text[:100]}" is not a number of days',
            f"Give 1 to {MAX_DAYS}, or leave it unset.",
        )
    return timedelta(days=int(text))
