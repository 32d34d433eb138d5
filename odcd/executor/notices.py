"""The daemon's end of telling a job's user something; odcd.runner.notices is the other."""

from __future__ import annotations

import logging

from odcd.errors import WrongState
from odcd.executor.link import Link, RunnerRefused
from odcd.records.dispatch import Notice
from odcd.runner import protocol
from odcd.runner.notices import check_name

log = logging.getLogger(__name__)


def check(notice: Notice) -> None:
    """Raises ValueError for a name that is none of a file."""
    for name in (*notice.remove, *([] if notice.name is None else [notice.name])):
        check_name(name)


async def tell(link: Link, job_id: int, attempt: int, notice: Notice) -> None:
    """See odcd.executor.base. Raises RunnerDown, LeadershipLost, WrongState."""
    try:
        answer = await link.ask(
            "tell", job=job_id, attempt=attempt, name=notice.name, text=notice.text,
            remove=list(notice.remove), wall=notice.wall,
        )  # fmt: skip
    except RunnerRefused as error:
        raise _refusal(link, job_id, error) from error
    trouble = "; ".join(answer["trouble"])
    if trouble and not (answer["shown"] or answer["kept"]):
        raise WrongState(f"the user of job {job_id} cannot be told: {trouble}")
    if trouble:
        log.info("notice.partly", extra={"job_id": job_id, "attempt": attempt, "why": trouble})


def _refusal(link: Link, job_id: int, error: RunnerRefused) -> WrongState:
    text = f"the user of job {job_id} cannot be told: {error.reason}"
    if error.kind == protocol.BAD_REQUEST:
        version = link.about.get("odc", "of an unknown version")
        return WrongState(
            f"{text} (its runner is odc {version})",
            "Once no job runs, `odcd down` and `odcd up` replace it.",
        )
    if error.kind == protocol.NOT_READY:
        return WrongState(text, "Try again in a moment.")
    return WrongState(text)
