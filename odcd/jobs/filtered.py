"""Prepares a request as the site's submit filter changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odcd.clock import Turns
from odcd.errors import OdcError
from odcd.jobs.submission import Check, Prepared, prepare_in_turns
from odcd.jobs.submit_filter.changes import Kind
from odcd.jobs.submit_filter.filtering import Filtered, SubmitFilter
from odcd.records.job import Identity, JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A request that may be submitted, and what the filter made of it."""

    prepared: Prepared
    filtered: Filtered

    def explain(self, error: OdcError) -> OdcError:
        """The refusal of the request, with the fields that the user has not chosen alone."""
        if self.filtered.changed:
            names = ", ".join(self.filtered.changed)
            also = f"The site's submit filter changed {names}."
            error.hint = f"{error.hint} {also}" if error.hint else also
        return error


async def prepare_filtered(
    who: Identity, specs: Sequence[JobSpec], *, kind: Kind, submit_filter: SubmitFilter | None,
    key: str | None, dry_run: bool, check: Check, turns: Turns, digest: str | None = None,
) -> Passed:  # fmt: skip
    """The arguments are those of prepare(). Raises what prepare() raises, SubmitRejected,
    FilterFailed and DaemonBusy.

    The user's own request is checked first, and identifies a repetition under its key: the filter
    may change it otherwise then.
    """
    prepared = await prepare_in_turns(
        who, specs, key=key, dry_run=dry_run, check=check, turns=turns, digest=digest
    )
    if submit_filter is None:
        return Passed(prepared=prepared, filtered=Filtered(specs=specs))
    filtered = await submit_filter.apply(who, specs, kind, turns, dry_run=dry_run)
    passed = Passed(prepared=prepared, filtered=filtered)
    if not filtered.changed:
        return passed
    try:
        again = await prepare_in_turns(
            who, filtered.specs, key=key, dry_run=dry_run, check=check, turns=turns,
            digest=prepared.request["digest"],
        )  # fmt: skip
    except OdcError as error:
        raise passed.explain(error) from None
    return Passed(prepared=again, filtered=filtered)
