"""The fields that a submit filter may change, and the check of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from odcd.errors import BadRequest, FilterFailed
from odcd.jobs.checks import check_reservation_name
from odcd.jobs.reservations import seconds_of
from odcd.records.fields import shown
from odcd.records.job import JobSpec, ReservationSpec

Kind = Literal["batch", "allocation", "reservation"]
_OF_CLIENT = frozenset({"kind", "spool_output", "pty", "submit_host", "submit_line"})
"""The client has fixed these, and relies on them."""
_OF_SCRIPT = frozenset({
    "script", "args", "environment", "work_dir", "umask", "stdin", "stdout", "stderr", "open_mode",
    "launch", "image", "array", "components", "requeue",
})  # fmt: skip
"""An allocation does not choose these: its script is odc's own, and only holds nodes."""
BATCH = frozenset(JobSpec.__struct_fields__) - _OF_CLIENT
MAY_CHANGE: Mapping[Kind, frozenset[str]] = {
    "batch": BATCH,
    "allocation": BATCH - _OF_SCRIPT,
    "reservation": frozenset({
        "name", "partitions", "account", "qos", "booking", "comment", "time_limit_s",
    }),
}  # fmt: skip


def changed_spec(spec: JobSpec, fields: Mapping[str, Any], kind: Kind) -> JobSpec:
    """The job with the fields that the filter set, checked like a user's own request. Raises
    FilterFailed."""
    if forbidden := sorted(fields.keys() - MAY_CHANGE[kind]):
        names = shown(", ".join(forbidden))[:200]
        raise failed(f"changed what a filter may not change in a request of kind {kind}: {names}")
    try:
        made = msgspec.convert({**msgspec.to_builtins(spec), **fields}, type=type(spec))
        if isinstance(made, ReservationSpec):
            _check_reservation(made)
    except (msgspec.ValidationError, BadRequest) as error:
        raise failed(f"set a value that is not valid: {shown(str(error))[:300]}") from None
    return made


def _check_reservation(spec: ReservationSpec) -> None:
    """Raises BadRequest."""
    check_reservation_name(spec.name)
    seconds_of((spec.time_limit_s or 0) / 3600)
    if len(spec.partitions) > 1:
        raise BadRequest("a reservation has one partition", "Name one.")


def failed(why: str) -> FilterFailed:
    return FilterFailed(
        f"the site's submit filter {why}",
        "Tell the operators of this site: the log of odcd has the details, in the line "
        "submit_filter.failed.",
    )
