"""The settings of the submit filter, read at the daemon's start; see odcd.settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from odcd.errors import BadRequest
from odcd.jobs.submit_filter.target import Target, parse_target
from odcd.runner.hooks.environment import owners
from odcd.variables import read_choice, read_seconds

TIMEOUT = timedelta(seconds=5)
MAX_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitFilterSettings:
    submit_filter: Target | None = None
    """ODC_SUBMIT_FILTER. A Python function of the site that can change or reject every submit:
    FILE, FILE:FUNCTION or MODULE:FUNCTION; see docs/operating/hooks.md. Default none."""
    submit_filter_timeout: timedelta = TIMEOUT
    """ODC_SUBMIT_FILTER_TIMEOUT_S. A submit filter that runs longer for one request is killed and
    has failed. Default 5 s."""
    submit_filter_failure: Literal["reject", "accept"] = "reject"
    """ODC_SUBMIT_FILTER_FAILURE. Whether submits are rejected or accepted unchanged if the submit
    filter fails. Default reject."""


def read_submit_filter(environment: Mapping[str, str], *, local: bool) -> SubmitFilterSettings:
    """local: the daemon runs jobs on this machine, whose users must not be able to change the file.
    Raises BadRequest."""
    text = environment.get("ODC_SUBMIT_FILTER") or None
    failure = read_choice(environment, "ODC_SUBMIT_FILTER_FAILURE", ("reject", "accept"))
    limit = read_seconds(environment, "ODC_SUBMIT_FILTER_TIMEOUT_S", TIMEOUT, MAX_TIMEOUT_S)
    if text is None and failure == "accept":
        raise BadRequest(
            "ODC_SUBMIT_FILTER_FAILURE has no effect without a submit filter",
            "Set ODC_SUBMIT_FILTER, or leave ODC_SUBMIT_FILTER_FAILURE out.",
        )
    return SubmitFilterSettings(
        submit_filter=parse_target(text, frozenset(owners()) if local else None) if text else None,
        submit_filter_timeout=limit,
        submit_filter_failure="accept" if failure == "accept" else "reject",
    )
