"""Ctrl-C while the client waits: the jobs go on, and the exception says so."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager


@contextmanager
def noting(job_id: object) -> Generator[None]:
    """Add to a KeyboardInterrupt that the job goes on."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        note_jobs(stopped, [str(job_id)])
        raise


def note_jobs(stopped: BaseException, ids: Sequence[str]) -> None:
    """Add to the exception that these jobs go on, unless it says so already."""
    if not ids or getattr(stopped, "__notes__", None):
        return
    which = " ".join(ids)
    goes, them = ("job {} goes", "it") if len(ids) == 1 else ("jobs {} go", "them")
    stopped.add_note(f"odc: {goes.format(which)} on; `odcctl cancel {which}` ends {them}")
