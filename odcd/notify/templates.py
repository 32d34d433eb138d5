"""The texts of notifications: templates with the facts of a job, one file per kind.

The first line is the subject, the rest after an empty line the text. $NAME stands for a fact. A
site's folder may have files for some kinds; the others are those of odcd/notify/texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from odcd.errors import BadRequest

TEXTS = Path(__file__).parent / "texts"
MAX_BYTES = 64 * 1024
MAX_SUBJECT = 200
MAX_NODES = 32
"""Of a gang, in a text."""
NAMES = (
    "job", "name", "user", "account", "partition", "state", "last_state", "reason", "exit_code",
    "signal", "queued", "run_time", "time_limit", "nodes", "tasks", "completed", "not_completed",
    "at", "minutes", "expires_at", "text",
)  # fmt: skip
"""The names that templates may use. All are text; empty: not known."""
_SPANS = {"queued": "queued_s", "run_time": "run_s", "time_limit": "time_limit_s"}
_ENDS = ("end", "fail")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
UNLIMITED_S = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """subject: one line without control characters."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Templates:
    by_kind: Mapping[str, tuple[Template, Template]]
    """The subject and the text."""

    def render(self, kind: str, facts: Mapping[str, Any]) -> Message:
        name = f"array_{kind}" if "tasks" in facts and kind in _ENDS else kind
        subject, text = self.by_kind[name]
        values = _values(facts)
        return Message(
            subject=one_line(subject.substitute(values))[:MAX_SUBJECT],
            # Lines whose facts are all unknown are left out.
            text="\n".join(_lines(text.template, values)) + "\n",
        )


def read_templates(folder: Path | None = None) -> Templates:
    """folder: a site's own. Raises BadRequest, naming the file."""
    found = dict(_OWN)
    if folder is None:
        return Templates(found)
    try:
        files = sorted(folder.glob("*.txt"))
        if not folder.is_dir():
            raise BadRequest(f"ODC_MAIL_TEMPLATES: {folder} is not a folder")
    except OSError as error:
        raise BadRequest(f"ODC_MAIL_TEMPLATES: {folder}: {error.strerror}") from None
    for file in files:
        if file.stem not in found:
            raise BadRequest(
                f"ODC_MAIL_TEMPLATES: {file} is for no kind of mail",
                f"Kinds are {', '.join(sorted(found))}.",
            )
        found[file.stem] = _read(file)
    return Templates(found)


def _read(file: Path) -> tuple[Template, Template]:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise BadRequest(f"{file} has more than {MAX_BYTES} bytes")
        content = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the mail template {file} cannot be read: {error}") from None
    subject, _, text = content.strip().partition("\n")
    for part in (subject, text):
        template = Template(part)
        unknown = [name for name in template.get_identifiers() if name not in NAMES]
        if unknown or not template.is_valid():
            what = f"${unknown[0]} is unknown" if unknown else "a $ is not followed by a name"
            raise BadRequest(
                f"the mail template {file}: {what}",
                f"Write $$ for the sign itself. Names are {', '.join(NAMES)}.",
            )
    return Template(subject), Template(text.strip("\n"))


_OWN = {file.stem: _read(file) for file in sorted(TEXTS.glob("*.txt"))}
"""Read with the code: the daemon's account cannot read them below a folder that only root may
enter, such as a root user's home."""


def _lines(template: str, values: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for line in template.split("\n"):
        part = Template(line)
        names = part.get_identifiers()
        if not names or any(values[name] for name in names):
            lines.append(part.substitute(values))
    return lines


def _values(facts: Mapping[str, Any]) -> dict[str, str]:
    values = {name: _shown(facts.get(name)) for name in NAMES}
    for name, source in _SPANS.items():
        values[name] = span(facts.get(source, 0))
    values["exit_code"] = _shown(facts.get("exit_code", 0))
    return values


def _shown(fact: Any) -> str:
    if fact is None:
        return ""
    if isinstance(fact, list):
        names = [*map(str, fact[:MAX_NODES]), *(["…"] if len(fact) > MAX_NODES else [])]
        return one_line(" ".join(names))
    return one_line(str(fact))


def one_line(text: str) -> str:
    """Without line breaks and other control characters: users choose most texts."""
    return _CONTROLS.sub(" ", text).strip()


def span(seconds: float) -> str:
    """As Slurm writes it: 00:01:02, 1-00:00:00."""
    if seconds >= UNLIMITED_S:
        return "UNLIMITED"
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02}:{minute:02}:{second:02}"
    return f"{days}-{clock}" if days else clock
