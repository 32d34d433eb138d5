"""Every fault of the settings at once, for `odcd config check`."""

from __future__ import annotations

from collections.abc import Sequence

from odcd.configuration.effective import VARIABLE, Configured
from odcd.configuration.file import LISTED
from odcd.configuration.places import check_audit_log
from odcd.errors import BadRequest
from odcd.settings import Arguments, Settings, read_settings

MAX_FAULTS = 100


def read_all(found: Configured, args: Arguments, mistakes: Sequence[str]) -> Settings:
    """The settings of `up` and `serve`. mistakes: those of the file. Raises BadRequest with all of
    them, and with every invalid value.

    A fault is found by reading; its setting is then left out, and the others are read again.
    """
    environment = dict(found.environment)
    faults: list[BadRequest] = []
    left_out: set[str] = set()
    while True:
        try:
            settings = read_settings(args, environment)
            check_audit_log(settings.audit_log)
        except BadRequest as error:
            named = VARIABLE.findall(f"{error.message} {error.hint}")
            # A setting that needs one which was left out is no fault of its own.
            if left_out.isdisjoint(named):
                faults.append(error)
            first = next((one for one in named if one in environment), None)
            if first is None or len(faults) == MAX_FAULTS:
                raise _together(found, mistakes, faults) from error
            left_out.add(first)
            del environment[first]
        else:
            if faults or mistakes:
                raise _together(found, mistakes, faults)
            return settings


def _together(
    found: Configured, mistakes: Sequence[str], faults: Sequence[BadRequest]
) -> BadRequest:
    if len(faults) == 1 and not mistakes:
        named = found.named(faults[0])
        if named is None:
            return faults[0]
        return BadRequest(f"{found.file}: {named.message}", named.hint)
    lines = [f"  {one}" for one in mistakes]
    elsewhere = False
    for fault in faults:
        named = found.named(fault)
        elsewhere |= named is None
        one = named or fault
        lines.append(f"  {one.message}. {one.hint}" if one.hint else f"  {one.message}")
    also = " and the environment" if elsewhere else ""
    what = f"the settings file {found.file}" if found.file else "the environment"
    verb = "are" if found.file and also else "is"
    return BadRequest(
        "\n".join([f"{what}{also if found.file else ''} {verb} not valid:", *lines]), f"{LISTED}."
    )
