"""Maps AWS identities to users: an explicit list of roles and users, read from a file at the start.

The first matching rule decides. The caller who assumes a role chooses the session's name, so a rule
that uses it states which user names it may yield.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from odcd.errors import BadRequest, LoginRefused

PARTITIONS = "aws|aws-cn|aws-us-gov"
MAX_BYTES = 1024 * 1024
SYSTEM = frozenset({"root", "odcd", "odc", "nobody", "me", "all", "postgres", "daemon"})
"""Names that belong to no person, or have a special meaning here."""
USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,63}", re.ASCII)
_WORD = "[A-Za-z0-9+=,.@_-]{1,64}"
_CALLER = re.compile(
    rf"arn:(?P<partition>{PARTITIONS}):(?:sts::(?P<of_role>[0-9]{{12}}):assumed-role/"
    rf"(?P<role>{_WORD})/(?P<session>{_WORD})|iam::(?P<of_user>[0-9]{{12}}):user/"
    r"(?P<user>(?:[!-.0-~]{1,128}/){0,16}[A-Za-z0-9+=,.@_-]{1,64}))",
    re.ASCII,
)
_PATTERN = re.compile(
    rf"arn:({PARTITIONS}):iam::([0-9]{{12}}):(role|user)/"
    r"((?:[A-Za-z0-9+=,.@_*-]{1,128}/){0,16}[A-Za-z0-9+=,.@_*-]{1,64})",
    re.ASCII,
)
_TEMPLATE = re.compile(r"([A-Za-z0-9._-]*)(?:\{(session|name)\}([A-Za-z0-9._-]*))?", re.ASCII)
_ALLOWED = re.compile(r"[A-Za-z0-9._*-]{1,64}", re.ASCII)
_DOMAIN = re.compile(r"[A-Za-z0-9.-]{1,60}")
FILE = "docs/operating/login.md describes the file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The signer, according to STS: a session of a role, or an IAM user. name: the role's name
    without its path, which STS omits, or the user's name with its path. session: None for a
    user."""

    partition: str
    account: str
    name: str
    session: str | None

    @property
    def kind(self) -> str:
        return "user" if self.session is None else "role"

    @property
    def arn(self) -> str:
        return f"arn:{self.partition}:iam::{self.account}:{self.kind}/{self.name}"

    @property
    def role(self) -> str:
        """The role's name, for the audit log and the client."""
        return self.name if self.session is not None else f"user/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of the map.

    arn: as it was written. template: the user's name, with at most one {session} or {name}. allow:
    patterns of the names that it may yield; empty: all except operators and system accounts.
    operators, system: it may also yield those. domain: sessions are named NAME@DOMAIN, and
    {session} is NAME; None: the value of ODC_AWS_DOMAIN; empty: none.
    """

    arn: str
    partition: str
    account: str
    kind: str
    name: str
    template: str = "{session}"
    allow: tuple[str, ...] = ()
    operators: bool = False
    system: bool = False
    domain: str | None = None

    @property
    def chosen(self) -> bool:
        """Whether the name depends on the AWS identity; otherwise the rule alone decides."""
        return "{" in self.template

    def matches(self, caller: Caller) -> bool:
        """Compare without case, because AWS names are unique without it. A * matches any text
        within one part of a path."""
        return (self.partition, self.account, self.kind) == (
            caller.partition, caller.account, caller.kind,
        ) and _like(self.name.lower(), caller.name.lower())  # fmt: skip


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    arn: str
    user: str
    allow: tuple[str, ...] = ()
    operators: bool = False
    system: bool = False
    domain: str | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    identity: tuple[_Entry, ...]


def parse_caller(arn: str) -> tuple[str, Caller] | None:
    """The account and the caller; None: neither a session of a role nor a user."""
    found = _CALLER.fullmatch(arn)
    if found is None:
        return None
    account = found["of_role"] or found["of_user"]
    return account, Caller(
        partition=found["partition"],
        account=account,
        name=found["role"] or found["user"],
        session=found["session"],
    )


def parse_rule(text: str, setting: str, **terms: Any) -> Rule:
    """Raises BadRequest, naming the setting."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise BadRequest(
            f'{setting}: "{text[:200]}" is not a role or a user',
            "Write arn:aws:iam::123456789012:role/NAME or arn:aws:iam::123456789012:user/NAME; "
            "NAME may have a *, the account may not.",
        )
    kind, name = found[3], found[4]
    if kind == "role":
        # STS reports assumed-role/NAME/SESSION without the path; role names are unique without it.
        name = name.rpartition("/")[2]
    return Rule(arn=text, partition=found[1], account=found[2], kind=kind, name=name, **terms)


def parse_role(text: str) -> Rule:
    """Parse one role of ODC_AWS_ROLES: the user is named by the session. Raises BadRequest."""
    rule = parse_rule(text, "ODC_AWS_ROLES")
    if rule.kind != "role":
        raise BadRequest(
            f'ODC_AWS_ROLES: "{text[:200]}" is not a role',
            "Users of IAM are mapped to names in the file of ODC_AWS_IDENTITIES.",
        )
    return rule


def read_identities(path: Path) -> tuple[Rule, ...]:
    """Raises BadRequest with the file and the error."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o002:
                raise BadRequest(
                    f"ODC_AWS_IDENTITIES: everyone may write {path}, so anyone could become "
                    "any user",
                    f"Run: chmod o-w {path}",
                )
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadRequest(
            f"ODC_AWS_IDENTITIES: {path} cannot be read: {error.strerror}", FILE
        ) from None
    try:
        if len(text) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        entries = msgspec.convert(tomllib.loads(text.decode()), type=_File).identity
    except ValueError as error:
        raise BadRequest(f"ODC_AWS_IDENTITIES: {path}: {error}", FILE) from None
    rules = tuple(_rule(entry, f"ODC_AWS_IDENTITIES: {path}") for entry in entries)
    seen: set[tuple[str, ...]] = set()
    for rule in rules:
        key = (rule.partition, rule.account, rule.kind, rule.name.lower())
        if key in seen:
            raise BadRequest(
                f"ODC_AWS_IDENTITIES: {path}: {rule.arn} is listed twice", "Keep one of them."
            )
        seen.add(key)
    return rules


def _rule(entry: _Entry, where: str) -> Rule:
    rule = parse_rule(
        entry.arn, where, template=entry.user, allow=entry.allow, operators=entry.operators,
        system=entry.system, domain=entry.domain,
    )  # fmt: skip
    found = _TEMPLATE.fullmatch(entry.user)
    wrong = None
    if found is None or not entry.user:
        wrong = (
            f'"{entry.user[:100]}" is neither a name nor a template with {{session}} or {{name}}'
        )
    elif found[2] == "session" and rule.kind == "user":
        wrong = "an IAM user has no {session}: use {name}"
    elif found[2] == "name" and rule.kind == "role":
        wrong = "{name} is for IAM users: for a role, use {session} or one fixed name"
    elif found[2] is None and not USER.fullmatch(entry.user):
        wrong = f'"{entry.user[:100]}" is not a valid user name'
    elif found[2] is None and (entry.allow or entry.operators or entry.system or entry.domain):
        wrong = "allow, operators, system and domain are for names with {session} or {name}"
    elif bad := [name for name in entry.allow if not _ALLOWED.fullmatch(name)]:
        wrong = f'"{bad[0][:100]}" in allow is not a pattern for names'
    elif entry.domain and not _DOMAIN.fullmatch(entry.domain):
        wrong = f'"{entry.domain[:100]}" is not a domain'
    if wrong is not None:
        raise BadRequest(f"{where}: {rule.arn}: {wrong}", FILE)
    return rule


def find_rule(rules: Sequence[Rule], caller: Caller) -> Rule:
    """Raises LoginRefused."""
    for rule in rules:
        if rule.matches(caller):
            return rule
    raise LoginRefused(
        f"the {caller.kind} {caller.arn} is not allowed to log in",
        "Use an allowed role; operators set them in ODC_AWS_ROLES and ODC_AWS_IDENTITIES.",
        reason="role",
    )


def name_of(rule: Rule, caller: Caller, domain: str | None) -> str:
    """The user's name according to the rule alone. domain: from ODC_AWS_DOMAIN. Raises
    LoginRefused."""
    if not rule.chosen:
        return rule.template
    session = caller.session
    if session is None:
        session = caller.name.rpartition("/")[2]
    else:
        session = _without_domain(session, domain if rule.domain is None else rule.domain or None)
    name = rule.template.replace("{session}", session).replace("{name}", session)
    if not USER.fullmatch(name):
        raise LoginRefused(
            f'"{name}" is not a valid user name here',
            "A user's name has letters, digits, dots, dashes and underscores. It is the name of "
            "the role's session, without the domain of ODC_AWS_DOMAIN.",
        )
    if rule.allow and not any(_like(pattern, name) for pattern in rule.allow):
        raise LoginRefused(
            f"the {caller.kind} {caller.arn} may not log in as user {name}",
            "Log in under your own name; operators list the names in ODC_AWS_IDENTITIES.",
        )
    return name


def _without_domain(session: str, domain: str | None) -> str:
    if domain is None:
        return session
    name, at, suffix = session.rpartition("@")
    if not at or suffix.lower() != domain.lower():
        raise LoginRefused(
            f'the session "{session}" is not one of {domain}',
            "Log in with a profile whose sessions belong to it.",
        )
    return name


def _like(pattern: str, text: str) -> bool:
    regex = "[^/]*".join(re.escape(part) for part in pattern.split("*"))
    return bool(re.fullmatch(regex, text))
