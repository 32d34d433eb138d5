"""Convert limits and times from the format of requests to that of the database."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET

from odcd.errors import BadRequest
from odcd.records.fields import UNLIMITED_S
from odcd.slurm.times import parse_span

Amount = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000_000)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Limits = dict[str, dict[str, Amount | Text | None]]
"""{per: {what: value}}, for example {"user": {"gpus": 16}, "job": {"wall": "1-00:00:00"}}. per:
group, user, account, job. what: jobs, submitted, gpus, gpu_minutes, cpus, nodes, wall_s (or wall,
in sbatch's time format). null removes the limit."""

MAY_BE_ZERO = frozenset(["exempt", "grace", "idle_warn", "idle_release"])
MAY_BE_ENDLESS = frozenset(["exempt"])


def given_fields(form: msgspec.Struct, *without: str) -> dict[str, Any]:
    """The fields that were given. If a field has a sibling ending in _s, its value is in sbatch's
    time format and is converted to seconds for the sibling. Raises BadRequest."""
    fields = form.__struct_fields__
    given = {
        name: value
        for name in fields
        if name not in without and (value := getattr(form, name)) is not UNSET
    }
    for name in [name for name in given if f"{name}_s" in fields]:
        if f"{name}_s" in given:
            raise BadRequest(f"{name} and {name}_s are both given", "Use only one of them.")
        text = given.pop(name)
        given[f"{name}_s"] = parse_span(
            text, name, zero=name in MAY_BE_ZERO, endless=name in MAY_BE_ENDLESS
        )
    if "limits" in given:
        given["limits"] = amounts(given["limits"])
    return given


def amounts(limits: Limits) -> dict[str, dict[str, int | None]]:
    """Raises BadRequest."""
    return {
        per: dict(_limit(per, what, value) for what, value in whats.items())
        for per, whats in limits.items()
    }


def _limit(per: str, what: str, value: int | str | None) -> tuple[str, int | None]:
    if what == "wall" and isinstance(value, str):
        seconds = parse_span(value, f"limit {per}.wall", endless=True)
        return "wall_s", None if seconds == UNLIMITED_S else seconds
    if isinstance(value, str):
        raise BadRequest(f'limit {per}.{what} is a number, not "{value}"', 'A time is "wall".')
    return "wall_s" if what == "wall" else what, value
