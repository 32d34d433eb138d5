"""Parse a table of recurring jobs, in the format of Slurm's scrontab.

A line is a comment (#), NAME=VALUE, or an entry: five time fields or a short form such as @daily,
and a shell command. Lines that begin with #SCRON have options of sbatch for the next entry.
Variables are set in the environment of the entries after them; CRON_TZ is the time zone of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from odcd.errors import BadRequest, OdcError, TooLarge
from odcd.slurm.argv import parse_argv
from odcd.slurm.complaints import Complaints
from odcd.slurm.cron_fields import FIELDS, SHORT_FORMS, Schedule, parse_schedule
from odcd.slurm.cron_job import CronRequest, cron_job
from odcd.slurm.directives import split_words
from odcd.slurm.mail import MailTo
from odcd.slurm.option_values import Settings
from odcd.slurm.without_effect import has_effect

MAX_CHARS = 65_536
MAX_ENTRIES = 100
"""Of one user."""
ZONE = "CRON_TZ"
REFUSED = {
    "array": "a recurring job cannot be an array",
    "test-only": "a recurring job is submitted",
    "wrap": "the command stands after the time",
}
"""Options of sbatch that no entry may have."""
_OPTIONS = re.compile(r"\s*#SCRON(?=\s|-|$)(?P<words>.*)")
_VARIABLE = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*?)\s*")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronEntry:
    """first_line to line: the lines of the entry with its options, from 1. written: its time."""

    first_line: int
    line: int
    written: str
    schedule: Schedule
    zone: str
    request: CronRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    entries: Sequence[CronEntry]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CronOrigin:
    """Where a table was sent from. zone: the user's. work_dir: of the jobs."""

    zone: str
    work_dir: str
    umask: int
    submit_host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """line: None: it is about the whole text."""

    line: int | None
    error: OdcError


class FaultyCrontab(BadRequest):
    """Every fault of a table; nothing was changed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0].error
        more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
        super().__init__(f"{first.message}{more}", first.hint)
        self.faults = faults


class _Found(Complaints):
    """Keeps the faults of a line."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.line: int | None = None

    def add(self, error: OdcError) -> None:
        self.faults.append(Fault(line=self.line, error=error))

    def drain(self) -> None:
        """Take the errors that were caught since the last call."""
        for error in self.take():
            self.add(error)


@dataclass(slots=True)
class _Next:
    """The lines read for the next entry."""

    first_line: int | None = None
    argv: list[str] = field(default_factory=list[str])
    has_faults: bool = False


def parse_crontab(
    text: str, origin: CronOrigin, now: datetime, mail_to: MailTo | None = None
) -> Crontab:
    """Raises FaultyCrontab with all faults, and TooLarge. Time zones are not checked."""
    if len(text) > MAX_CHARS:
        raise TooLarge(
            f"the table has {len(text)} characters, more than {MAX_CHARS}",
            "Put long commands into scripts.",
        )
    if "\0" in text:
        raise BadRequest("the table contains a NUL byte")
    reading = _Reading(origin, now, mail_to)
    for number, line in enumerate(text.split("\n"), 1):
        reading.read(number, line.rstrip("\r"))
    return reading.finish()


class _Reading:
    """The state between two lines."""

    def __init__(self, origin: CronOrigin, now: datetime, mail_to: MailTo | None) -> None:
        self._origin, self._now, self._mail_to = origin, now, mail_to
        self._zone = origin.zone
        self._variables: dict[str, str] = {}
        self._next = _Next()
        self._entries: list[CronEntry] = []
        self._count = 0
        self._warnings: list[str] = []
        self._found = _Found()

    def read(self, number: int, line: str) -> None:
        self._found.line = number
        if (options := _OPTIONS.fullmatch(line)) is not None:
            self._next.first_line = self._next.first_line or number
            words = self._found.catch(partial(_options, options["words"], number, self._now), None)
            if words is None:
                self._next.has_faults = True
            else:
                self._next.argv += words
        elif not line.strip() or line.lstrip().startswith("#"):
            pass
        elif (variable := _VARIABLE.fullmatch(line)) is not None:
            self._set(number, variable["name"], _unquoted(variable["value"]))
        else:
            self._entry(number, line)
        self._found.drain()

    def _set(self, number: int, name: str, value: str) -> None:
        if name == ZONE:
            self._zone = value or self._origin.zone
            return
        if name == "MAILTO":
            self._warnings.append(
                f"line {number}: MAILTO has no effect; use #SCRON --mail-type and --mail-user"
            )
        self._variables[name] = value

    def _entry(self, number: int, line: str) -> None:
        given, self._next = self._next, _Next()
        self._count += 1
        if self._count > MAX_ENTRIES:
            if self._count == MAX_ENTRIES + 1:
                self._found.add(BadRequest(f"line {number}: the table has more than {MAX_ENTRIES} "
                                           "entries"))  # fmt: skip
            return
        before = len(self._found.faults)
        split = self._found.catch(partial(_split, line, number, self._found), None)
        self._found.drain()
        if split is None:
            return
        written, schedule, command = split
        request = CronRequest(
            argv=given.argv, command=command, environment=dict(self._variables),
            work_dir=self._origin.work_dir, umask=self._origin.umask,
            submit_host=self._origin.submit_host,
        )  # fmt: skip
        if not given.has_faults:
            self._found.catch(partial(self._try, request, number), None)
            self._found.drain()
        if schedule is None or given.has_faults or len(self._found.faults) > before:
            return
        self._entries.append(
            CronEntry(
                first_line=given.first_line or number, line=number, written=written,
                schedule=schedule, zone=self._zone, request=request,
            )
        )  # fmt: skip

    def _try(self, request: CronRequest, number: int) -> None:
        try:
            cron_job(request, self._zone, self._now, self._mail_to)
        except OdcError as error:
            raise type(error)(f"line {number}: {error.message}", error.hint) from None

    def finish(self) -> Crontab:
        if self._found.faults:
            raise FaultyCrontab(self._found.faults)
        if self._next.first_line is not None:
            self._warnings.append(
                f"line {self._next.first_line}: the options after the last entry have no effect"
            )
        return Crontab(entries=self._entries, warnings=self._warnings)


def _options(text: str, number: int, now: datetime) -> list[str]:
    """The words of a #SCRON line; raises what is wrong with any of them."""
    where = f"line {number}, "
    words = split_words(text, where)
    every = Complaints()
    line = parse_argv(words, where, every)
    Settings().apply([one for one in line.options if has_effect(one)], now, every)
    every.check()
    if line.operands or line.after_dashes:
        word = line.operands[0][:60] if line.operands else "--"
        raise BadRequest(
            f'{where}"{word}" is not an option',
            "Put a value with blanks in quotes; start a comment with # after a blank.",
        )
    for given in line.options:
        why = REFUSED.get(given.option.long)
        if why is None and given.option.command_line_only:
            why = "it cannot be used here"
        if why is not None:
            raise BadRequest(f"{where}{given.option.flag}: {why}", "Leave it out.")
    return words


def _split(line: str, number: int, complaints: Complaints) -> tuple[str, Schedule | None, str]:
    """The time as written, what it means (None: complaints has why it means nothing), and the
    command."""
    where = f"line {number}, "
    words = [(found.start() + 1, found[0]) for found in _WORD.finditer(line)]
    short = words[0][1].lower()
    if short.startswith("@"):
        if short not in SHORT_FORMS:
            why = " (a cluster has no boot)" if short == "@reboot" else ""
            raise BadRequest(
                f'{where}time (column {words[0][0]}): "{short[:40]}" is not supported{why}',
                f"Choose among {', '.join(SHORT_FORMS)}.",
            )
        count, texts = 1, [(words[0][0], one) for one in SHORT_FORMS[short].split()]
    else:
        count, texts = len(FIELDS), words[: len(FIELDS)]
    if len(words) < count or len(texts) < len(FIELDS):
        missing = FIELDS[len(words)].name
        raise BadRequest(
            f"{where}{missing} (column {len(line) + 1}): it is missing",
            "A line has five fields, minute, hour, day of month, month and day of week, and then a "
            "command; or it is NAME=VALUE, or a comment.",
        )
    schedule = parse_schedule(texts, where, complaints)
    if len(words) == count:
        raise BadRequest(
            f"{where}command (column {len(line) + 1}): it is missing",
            "The command follows the time on the same line.",
        )
    written = " ".join(word for _, word in words[:count])
    return written, schedule, line[words[count][0] - 1 :].rstrip()


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    return text
