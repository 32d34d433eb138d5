"""Convert the text of an option to the value of its setting, unless another module does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from odcd.errors import BadRequest, NotImplementedYet
from odcd.slurm.dependencies import parse_dependency
from odcd.slurm.environment import Export, parse_export
from odcd.slurm.gangs import NodeRange, Switches, parse_nodes, parse_switches
from odcd.slurm.gres import GpuRequest, parse_gpus, parse_gres
from odcd.slurm.hostlists import expand_hosts
from odcd.slurm.lists import parse_array
from odcd.slurm.signals import EndSignal, parse_end_signal
from odcd.slurm.sizes import parse_mib
from odcd.slurm.times import parse_duration, parse_moment

MAX_COUNT = 1_000_000
MAX_NICE = 2_147_483_645


def count(text: str, _now: datetime) -> int:
    if re.fullmatch("[0-9]{1,7}", text.strip()) and 1 <= int(text) <= MAX_COUNT:
        return int(text)
    raise BadRequest(f'"{text[:60]}" is not a count', f"Accepted: 1 to {MAX_COUNT}.")


def nodes(text: str, _now: datetime) -> NodeRange:
    return parse_nodes(text)


def switches(text: str, _now: datetime) -> Switches:
    return parse_switches(text)


def nice(text: str, _now: datetime) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,10}", text.strip()) and -MAX_NICE <= int(text) <= MAX_NICE:
        return int(text)
    raise BadRequest(f'"{text[:60]}" is not a nice value', f"Accepted: -{MAX_NICE} to {MAX_NICE}.")


def word(max_length: int) -> Callable[[str, datetime], str]:
    """A text of 1 to max_length characters."""

    def convert(text: str, _now: datetime) -> str:
        if not text.strip():
            raise BadRequest("the value is empty", "Give a value, or leave the option out.")
        if len(text) > max_length:
            raise BadRequest(
                f"the value has {len(text)} characters", f"At most {max_length} are accepted."
            )
        return text

    return convert


def partitions(text: str, _now: datetime) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or max(map(len, names)) > 200:
        raise BadRequest(
            f'"{text[:60]}" is not a list of partitions', "Accepted: names separated by commas."
        )
    return list(dict.fromkeys(names))


def hosts(text: str, _now: datetime) -> list[str]:
    if "/" in text:
        raise NotImplementedYet(
            f'"{text[:60]}" names a file of nodes, and odc does not read such files yet',
            "Write the nodes as a list, such as gpu[01-04].",
        )
    return expand_hosts(text)


def booking(text: str, _now: datetime) -> str:
    name = text.strip()
    if "," in name:
        raise NotImplementedYet(
            f'"{text[:60]}" names several bookings, but a job runs in only one', "Name one of them."
        )
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name):
        raise BadRequest(f'"{text[:60]}" is not the name of a booking', "Give one name.")
    return name


def licences(text: str, _now: datetime) -> dict[str, int]:
    """The counts of a repeated name are added. An empty text means none."""
    if "|" in text:
        raise NotImplementedYet(
            f'"{text[:60]}" lists alternative licences, which odc does not support yet',
            "Name all licences that the job needs, separated by commas.",
        )
    found: dict[str, int] = {}
    for part in re.split("[,;]", text) if text.strip() else []:
        match = re.fullmatch(r"([A-Za-z0-9._@-]{1,100})(?:[:=*]([0-9]{1,7}))?", part.strip())
        number = int(match[2] or 1) if match else 0
        if match is None or not 1 <= number + found.get(match[1], 0) <= MAX_COUNT:
            raise BadRequest(
                f'"{part[:60]}" in "{text[:60]}" is not a licence',
                "Accepted: names with counts, separated by commas, such as matlab:2,ansys.",
            )
        found[match[1]] = found.get(match[1], 0) + number
    return found


def choice(**values: object) -> Callable[[str, datetime], object]:
    """Accept one of these words, in any case, and return its value."""

    def convert(text: str, _now: datetime) -> object:
        key = text.strip().lower()
        if key not in values:
            raise BadRequest(f'"{text[:60]}" is not accepted', f"Accepted: {', '.join(values)}.")
        return values[key]

    return convert


def only(accepted: str, meaning: str) -> Callable[[str, datetime], None]:
    """An option with a single accepted value, which asks for what odc does anyway."""

    def convert(text: str, _now: datetime) -> None:
        if text.strip().lower() != accepted.lower():
            raise NotImplementedYet(
                f'"{text[:60]}" is refused: {meaning}', f"Accepted: {accepted}, or leave it out."
            )

    return convert


def whole_nodes(text: str, _now: datetime) -> bool:
    if text.strip():
        raise NotImplementedYet(
            f'"{text[:60]}" is refused: odc gives a whole node to one job, not to a user or label',
            "Accepted: --exclusive alone.",
        )
    return True


def duration(text: str, _now: datetime) -> int:
    return parse_duration(text)


def mib(text: str, _now: datetime) -> int:
    return parse_mib(text)


def moment(text: str, now: datetime) -> datetime:
    return parse_moment(text, now)


def gres(text: str, _now: datetime) -> GpuRequest:
    return parse_gres(text)


def gpus(text: str, _now: datetime) -> GpuRequest:
    return parse_gpus(text)


def end_signal(text: str, _now: datetime) -> EndSignal:
    return parse_end_signal(text)


def export(text: str, _now: datetime) -> Export:
    return parse_export(text)


def array(text: str, _now: datetime) -> str:
    """Checked here but kept as text: odcd.jobs.submission parses it for every way to submit."""
    parse_array(text)
    return text.strip()


def dependency(text: str, _now: datetime) -> str:
    parse_dependency(text)
    return text.strip()
