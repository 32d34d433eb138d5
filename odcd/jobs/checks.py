"""Checks of a job that SQL cannot make: paths, arguments, environment, valid text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from odcd.errors import BadRequest, TooLarge
from odcd.records.fields import PRINTABLE
from odcd.records.job import MAX_COMPONENTS, MAX_ENVIRONMENT_BYTES, ComponentSpec, JobSpec

MAX_ARGS_BYTES = 1024 * 1024
MAX_STRING_BYTES = 131_071
"""Linux starts no program with a longer argument or variable."""

PRINTED = (
    "work_dir", "stdin", "stdout", "stderr", "comment", "constraint", "submit_host", "image",
)  # fmt: skip
OF_COMPONENTS = (*ComponentSpec.__struct_fields__[1:], "node_count_max", "switches")
"""Fields that the components of a heterogeneous job have, and the job itself has not."""
_printable = re.compile(PRINTABLE).match
_NUL = b"\\u0000"
_encoder = msgspec.json.Encoder(order="sorted")


def check_job(spec: JobSpec) -> None:
    """Raises BadRequest or TooLarge."""
    if not spec.work_dir.startswith("/"):
        raise BadRequest(
            f'the working directory "{spec.work_dir[:60]}" is not absolute', "Start it with /."
        )
    if spec.name is not None and not spec.name.isprintable():
        raise BadRequest(
            f"the job name {spec.name[:60]!a} has characters that cannot be shown",
            "Use letters, digits, blanks and punctuation.",
        )
    # The body of a request was checked while it was decoded; a command line was not.
    for name in PRINTED:
        text = getattr(spec, name)
        if text is not None and not _printable(text):
            raise BadRequest(
                f"{name} has characters that cannot be shown: {text[:60]!a}",
                "Give one line without control characters or escapes.",
            )
    if spec.args:
        sizes = [len(encode_text(argument, "an argument")) for argument in spec.args]
        if max(sizes) > MAX_STRING_BYTES or sum(sizes) > MAX_ARGS_BYTES:
            raise TooLarge(
                f"the script's arguments have {sum(sizes)} bytes, the longest {max(sizes)}",
                f"Together at most {MAX_ARGS_BYTES}, each at most {MAX_STRING_BYTES}.",
            )
    if spec.node_count_max is not None and spec.node_count_max < (spec.node_count or 0):
        raise BadRequest(
            f"node_count_max {spec.node_count_max} is below node_count {spec.node_count}",
            "Leave node_count_max out, or make it at least node_count.",
        )
    if spec.node_count_max is not None and spec.node_count is None:
        raise BadRequest("node_count_max needs node_count", "Give node_count, the minimum, too.")
    if spec.switches_wait_s is not None and spec.switches is None:
        raise BadRequest("switches_wait_s needs switches", "Give the number of switches, too.")
    if spec.components:
        _check_components(spec)
    for name, moment in (("begin_at", spec.begin_at), ("deadline_at", spec.deadline_at)):
        if moment is not None and moment.tzinfo is None:
            raise BadRequest(f"{name} {moment.isoformat()} has no time zone", "End it with Z.")


def _check_components(spec: JobSpec) -> None:
    if spec.array is not None:
        raise BadRequest(
            "--array: an array cannot be heterogeneous", "Leave --array out, or the components."
        )
    if len(spec.components) < 2 or len(spec.components) > MAX_COMPONENTS:
        raise BadRequest(
            f"a heterogeneous job has 2 to {MAX_COMPONENTS} components, not {len(spec.components)}",
            "Leave the colons (:) or the hetjob lines out, or submit several jobs.",
        )
    given = [name for name in OF_COMPONENTS if getattr(spec, name)]
    if given:
        raise BadRequest(
            f"a heterogeneous job itself has {', '.join(given)}",
            "Give these for each component.",
        )
    if spec.launch == "all":
        raise BadRequest(
            "--launch: the script of a heterogeneous job runs on the first node of its first "
            "component",
            "Leave --launch out; srun starts tasks on the other nodes.",
        )
    for component in spec.components:
        if component.constraint is not None and not _printable(component.constraint):
            raise BadRequest(
                f"constraint has characters that cannot be shown: {component.constraint[:60]!a}",
                "Give one line without control characters or escapes.",
            )
        if component.name is not None and not component.name.isprintable():
            raise BadRequest(
                f"the job name {component.name[:60]!a} has characters that cannot be shown",
                "Use letters, digits, blanks and punctuation.",
            )


def check_reservation_name(name: str | None) -> None:
    """Raises BadRequest."""
    if name is not None and (not name.strip() or name.strip().isdigit()):
        raise BadRequest(
            f'"{name}" is not a valid name: it is blank, or looks like an id',
            "Use at least one letter.",
        )


def encode_environment(environment: dict[str, str]) -> bytes:
    """Canonical JSON: sorted names, no blanks, UTF-8."""
    try:
        return _encoder.encode(environment)
    except UnicodeEncodeError:
        raise _not_text("the environment") from None


def check_environment(environment: dict[str, str], encoded: bytes) -> None:
    """Raises BadRequest or TooLarge. encoded: as encode_environment wrote it."""
    if len(encoded) > MAX_ENVIRONMENT_BYTES:
        raise TooLarge(
            f"the environment has {len(encoded)} bytes, more than {MAX_ENVIRONMENT_BYTES}",
            "Pass fewer variables: --export=NONE, or --export with a list.",
        )
    if "=" in "".join(environment) or "" in environment:
        raise BadRequest(
            "a variable of the environment has an empty name, or one with =", "Leave it out."
        )
    if _NUL in encoded and _has_nul(environment):
        raise BadRequest("the environment contains a NUL byte", "Leave the variable out.")
    if len(encoded) > MAX_STRING_BYTES:
        for name, value in environment.items():
            if len(name.encode()) + len(value.encode()) + 1 > MAX_STRING_BYTES:
                raise TooLarge(
                    f'the variable "{name[:60]}" has more than {MAX_STRING_BYTES} bytes',
                    "No program could start with it; leave it out with --export.",
                )


def encode_text(text: str, what: str = "one of the job's texts") -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _not_text(what) from None


def encode_job(job: Mapping[str, object]) -> bytes:
    """JSON with sorted keys. Raises BadRequest for what PostgreSQL takes into no text."""
    try:
        encoded = _encoder.encode(job)
    except UnicodeEncodeError:
        raise _not_text("one of the job's texts") from None
    if _NUL in encoded and _has_nul(job):
        raise BadRequest("the job contains a NUL byte in one of its texts", "Leave it out.")
    return encoded


def _not_text(what: str) -> BadRequest:
    return BadRequest(f"{what} cannot be written as UTF-8", "Send valid Unicode text.")


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))
