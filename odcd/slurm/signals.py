"""Signals in the forms of sbatch and scancel: `USR1`, `SIGUSR1`, `10`, and `B:USR1@90`."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from odcd.errors import BadRequest, NotImplementedYet

DEFAULT_BEFORE_S = 60
_END_SIGNAL = re.compile(r"(?:(?P<flags>[A-Za-z]+):)?(?P<name>[^:@]+)(?:@(?P<before>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSignal:
    """A signal to send before the time limit. batch: only to the batch shell."""

    number: int
    before_s: int
    batch: bool


def signal_number(text: str) -> int:
    """The number 1 to 64 for a name with or without SIG, or for a number."""
    name = text.strip().upper()
    if re.fullmatch("[0-9]{1,3}", name):
        if 1 <= int(name) <= 64:
            return int(name)
    else:
        name = name if name.startswith("SIG") else f"SIG{name}"
        if name in signal.Signals.__members__:
            return signal.Signals[name].value
    raise BadRequest(
        f'"{text}" is not a signal', "Accepted: a name such as USR1 or SIGTERM, or 1 to 64."
    )


def parse_end_signal(text: str) -> EndSignal:
    """Parse [B:]SIGNAL[@SECONDS]; without seconds, 60 s before the limit."""
    found = _END_SIGNAL.fullmatch(text.strip())
    flags = (found["flags"] or "").upper() if found else ""
    if found is None or set(flags) - {"B", "R"}:
        raise BadRequest(
            f'"{text}" is not a signal to send before the limit',
            "Accepted: [B:]SIGNAL[@SECONDS], such as USR1@90 or B:TERM@300.",
        )
    if "R" in flags:
        raise NotImplementedYet(
            f'"{text}" requests a signal at the start of a booking (R:), which odc cannot send yet',
            "Without R: the signal is sent before the time limit.",
        )
    before_s = int(found["before"]) if found["before"] else DEFAULT_BEFORE_S
    if before_s > 65535:
        raise BadRequest(f"{before_s} seconds before the limit is too early", "At most 65535.")
    return EndSignal(number=signal_number(found["name"]), before_s=before_s, batch="B" in flags)
