"""Send notices to a job's user: the daemon's side. The other side is odcd.runner.notices."""

from __future__ import annotations

import logging

from odcd.errors import WrongState
from odcd.executor.link import Link, RunnerRefused
from odcd.records.dispatch import Notice
from odcd.runner import protocol
from odcd.runner.notices import check_name

log = logging.getLogger(__name__)


def check(notice: Notice) -> None:
    """Raises ValueError for a name that is not a valid file name."""
    for name in (*notice.remove, *([] if notice.name is None else [notice.name])):
        check_name(name)


async def notify(link: Link, job_id: int, attempt: int, notice: Notice) -> None:
    """See `DevServers.notify`. Raises RunnerDown, LeadershipLost, WrongState."""
    try:
        answer = await link.ask(
            "tell", job=job_id, attempt=attempt, name=notice.name, text=notice.text,
            remove=list(notice.remove), wall=notice.wall,
        )  # fmt: skip
    except RunnerRefused as error:
        raise _refusal(link, job_id, error) from error
    trouble = "; ".join(answer["trouble"])
    if trouble and not (answer["shown"] or answer["kept"]):
        raise WrongState(f"the user of job {job_id} could not be notified: {trouble}")
    if trouble:
        log.info("notice.partly", extra={"job_id": job_id, "attempt": attempt, "why": trouble})


def _refusal(link: Link, job_id: int, error: RunnerRefused) -> WrongState:
    text = f"the user of job {job_id} could not be notified: {error.reason}"
    if error.kind == protocol.BAD_REQUEST:
        version = link.about.get("odc", "of an unknown version")
        return WrongState(
            f"{text} (its runner is odc {version})",
            "When no job runs, replace it with `odcd down` and `odcd up`.",
        )
    if error.kind == protocol.NOT_READY:
        return WrongState(text, "Try again in a moment.")
    return WrongState(text)
