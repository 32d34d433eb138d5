"""--mail-type and --mail-user: what they mean depends on whether this daemon sends mail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from odcd.errors import BadRequest, OdcError
from odcd.records.notification import (
    ADDRESS,
    MAIL_TYPES,
    MAX_ADDRESS_CHARS,
    MailType,
    kinds_of,
)
from odcd.slurm.complaints import Complaints
from odcd.slurm.option import Given

MAIL = ("mail-type", "mail-user")
NO_MAIL = "this server sends no mail"
_ADDRESS = re.compile(ADDRESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTo:
    """The submitter. domain: of addresses that have none; None: they must have one."""

    user: str
    domain: str | None = None

    def address(self, given: str | None) -> str | None:
        """None: it is not known. Raises BadRequest if it is not one address."""
        name = given or self.user
        if "@" not in name and self.domain is not None:
            name = f"{name}@{self.domain}"
        return None if given is None and "@" not in name else check_address(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """The mail that a job asks for. warning: why it has no effect."""

    types: list[MailType]
    user: str | None = None
    warning: str | None = None


NONE = Mail(types=[])


def mail_of(options: Iterable[Given], to: MailTo | None, complaints: Complaints) -> Mail:
    """options: the weakest first. to: None: this daemon sends no mail, so all values are accepted,
    as batch scripts of other clusters have them."""
    given = {one.option.long: one for one in options if one.option.long in MAIL}
    kind, user = given.get("mail-type"), given.get("mail-user")
    if to is None or not given:
        return NONE
    types = [] if kind is None else complaints.catch(partial(_types, kind), [])
    address = complaints.catch(partial(_address, to, user), None)
    if not types or "NONE" in types:
        unused = user is not None and kind is None
        why = "--mail-user (no mail is sent without --mail-type)" if unused else None
        return Mail(types=[], warning=why)
    if address is None:
        return Mail(types=[], warning="--mail-type (no mail is sent without --mail-user)")
    return Mail(types=types, user=address)


def _types(given: Given) -> list[MailType]:
    try:
        return parse_mail_types(given.text or "")
    except OdcError as error:
        raise type(error)(f"{given.where}--mail-type: {error.message}", error.hint) from None


def _address(to: MailTo, given: Given | None) -> str | None:
    try:
        return to.address(None if given is None else given.text or "")
    except OdcError as error:
        where = "" if given is None else given.where
        raise type(error)(f"{where}--mail-user: {error.message}", error.hint) from None


def parse_mail_types(text: str) -> list[MailType]:
    """The value of --mail-type. Raises BadRequest."""
    found: list[str] = []
    for word in text.upper().split(","):
        if word.strip() not in MAIL_TYPES:
            raise BadRequest(
                f'"{_shown(word.strip())}" is not a mail type',
                f"Choose among {', '.join(MAIL_TYPES)}.",
            )
        found.append(word.strip())
    return [name for name in MAIL_TYPES if name in found]


def mail_request(types: list[MailType], address: str | None) -> dict[str, Any] | None:
    """As odc.submit_jobs takes it; None: no mail. Raises BadRequest."""
    kinds = kinds_of(types)
    if kinds and address is None:
        raise BadRequest("mail_types needs mail_user", "Name the address that mail is sent to.")
    return {"kinds": kinds, "address": address} if kinds else None


def check_address(text: str) -> str:
    """Raises BadRequest if it is not one mail address."""
    if len(text) > MAX_ADDRESS_CHARS or not _ADDRESS.match(text):
        raise BadRequest(
            f'"{_shown(text)}" is not one mail address',
            "Write an address such as alice@example.org.",
        )
    return text


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:60])
