"""Numbers, times and states in words: the filters of the templates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from odcd.slurm.hostlists import compress_hosts

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_JOB = re.compile(r"\b(job )(\d{1,18})\b")
STATES = {
    "PENDING": "waiting", "CONFIGURING": "starting", "RUNNING": "running", "COMPLETING": "ending",
    "COMPLETED": "completed", "FAILED": "failed", "TIMEOUT": "timed out",
    "CANCELLED": "cancelled", "NODE_FAIL": "lost its node", "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted", "DEADLINE": "past its deadline", "BOOT_FAIL": "did not start",
}  # fmt: skip
_ASIDE_S = 600
_FAR_S = 7 * 86_400


def moment(time: str | datetime | None, form: str = "clock") -> Markup:
    """A time in UTC, given as text by the API; the browser converts it to its own time zone. form:
    clock (short near now), full."""
    if not time:
        return Markup("")
    return Markup('<time datetime="{}" data-form="{}">{}</time>').format(
        _utc(time).strftime("%Y-%m-%dT%H:%M:%SZ"), form, plain(time, form)
    )


def plain(time: str | datetime | None, form: str = "clock") -> str:
    """The same without markup."""
    if not time:
        return ""
    at = _utc(time)
    return at.strftime("%b %d %H:%M UTC" if form == "clock" else "%Y-%m-%d %H:%M:%S UTC")


def _utc(time: str | datetime) -> datetime:
    at = datetime.fromisoformat(time) if isinstance(time, str) else time
    return at.astimezone(UTC)


def sentence(text: str) -> Markup:
    """A sentence from the daemon, with its times shown in the viewer's time zone. Users choose some
    parts, such as a step of a Dockerfile, so a month 99 stays as it is."""
    parts: list[Markup] = []
    end = 0
    for found in _MOMENT.finditer(text):
        try:
            shown = moment(found[0])
        except ValueError:
            continue
        parts += [escape(text[end : found.start()]), shown]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def linked(text: str) -> Markup:
    """A sentence in which jobs are links to their pages."""
    return Markup(_JOB.sub(r'<a href="/page/jobs/\2">\1\2</a>', str(sentence(text))))


def duration(seconds: float | None) -> str:
    """2 h 5 min, 40 min, 30 s, 3 d 4 h; "no limit" for None."""
    if seconds is None:
        return "no limit"
    minutes, second = divmod(max(int(seconds), 0), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    units = ((days, "d"), (hour, "h"), (minute, "min"), (second, "s"))
    parts = [f"{number} {unit}" for number, unit in units if number]
    first = next((i for i, (number, _) in enumerate(units) if number), None)
    if first is None:
        return "0 s"
    return " ".join(parts[:1] if len(parts) == 1 or not units[first + 1][0] else parts[:2])


def stated(text: str) -> str:
    """A message as a sentence: with a capital letter, and a full stop."""
    text = text.strip()
    first = text.partition(" ")[0]
    if first.isalpha() and first.islower():
        text = text[:1].upper() + text[1:]
    return text if text[-1:] in ".!?:" else text + "."


def span(seconds: float | None) -> str:
    """The same for a time that passes: "under 1 min" below a minute, and whole minutes above."""
    if seconds is None:
        return "no limit"
    return duration(seconds // 60 * 60) if seconds >= 60 else "under 1 min"


def gib(mib: float) -> str:
    """16 GiB; below one, in MiB."""
    return f"{mib / 1024:,.0f} GiB" if mib >= 1024 else f"{mib:,.0f} MiB"


def gpu_hours(seconds: float) -> str:
    """Convert seconds of one GPU."""
    return f"{seconds / 3600:,.1f} GPU-hours"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def state(text: str) -> str:
    return STATES.get(text, text)


def job_id(job: Mapping[str, Any]) -> str:
    """7, 7_3 for an element of an array, 7_[3-9%2] for its waiting tasks."""
    array = job.get("array_job_id")
    if array is None:
        return str(job.get("id") or job.get("job_id"))
    if job.get("array_task_id") is not None:
        return f"{array}_{job['array_task_id']}"
    return f"{array}_[{job['array_tasks']}]" if job.get("array_tasks") else str(array)


def address(job: Mapping[str, Any]) -> str:
    """The id in the address of a job's page. An array's id also belongs to its last task, and
    refers to the whole array."""
    alone = job.get("array_task_id") is None
    return str(job.get("id") or job.get("job_id")) if alone else job_id(job)


def size(job: Mapping[str, Any]) -> str:
    """2 x 8 h100, 8 h100, 4 CPUs: the size that a job requests or has; 8 CPUs + 2 x 8 h100 for a
    heterogeneous job."""
    if job.get("components"):
        return " + ".join(size({"state": job["state"], **one}) for one in job["components"])
    minimum, maximum = job["node_count"], job.get("node_count_max")
    nodes = f"{minimum}-{maximum}" if maximum and job["state"] == "PENDING" else str(minimum)
    each = job["gpus_per_node"]
    what = f"{each} {job['gpu_type'] or 'GPU'}" if each else counted(job["cpus_per_node"], "CPU")
    if each > 1 and not job["gpu_type"]:
        what += "s"
    return what if nodes == "1" else f"{nodes} × {what}"


def hosts(names: list[str]) -> str:
    return compress_hosts(names) if names else ""


def number(value: float) -> str:
    return f"{value:,.0f}"


def seconds_between(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def ahead(seconds: float) -> float:
    """The position of a wait on a scale from now to a week, 0 to 100, with more room for near
    times."""
    reach = math.log1p(_FAR_S / _ASIDE_S)
    return round(min(math.log1p(max(seconds, 0) / _ASIDE_S) / reach, 1) * 100, 1)


FILTERS: dict[str, Callable[..., object]] = {
    "moment": moment, "plain": plain, "sentence": sentence, "linked": linked,
    "duration": duration, "state": state,
    "span": span, "stated": stated, "gib": gib, "job_id": job_id, "address": address, "size": size,
    "hosts": hosts, "number": number, "counted": counted, "gpu_hours": gpu_hours,
}  # fmt: skip
