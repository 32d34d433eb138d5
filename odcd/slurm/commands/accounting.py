"""The arguments, rows and columns of sacctmgr's lists and sshare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odcd.slurm.columns.table import Column, Format, lines, rules, sacct_names, separated
from odcd.slurm.commands.getopt import Arguments, Flag, parse
from odcd.slurm.usage import Usage, fail

Row = Mapping[str, Any]


def _column(header: str, key: str, width: int = 10) -> Column:
    def value(row: Row) -> str:
        found = row.get(key)
        return "" if found is None else ",".join(found) if isinstance(found, list) else str(found)

    return Column(header, value, (), width)


_COLUMNS = {
    "account": _column("Account", "account"), "user": _column("User", "user"),
    "partition": _column("Partition", "partition"), "share": _column("Share", "shares", 9),
    "fairshare": _column("Share", "shares", 9), "qos": _column("QOS", "qos", 20),
    "defaultqos": _column("Def QOS", "default_qos", 9),
    "defaultaccount": _column("Def Acct", "default_account"),
    "adminlevel": _column("Admin", "admin", 9), "admin": _column("Admin", "admin", 9),
    "cluster": _column("Cluster", "cluster"), "description": _column("Descr", "description", 20),
    "descr": _column("Descr", "description", 20),
    "organization": _column("Org", "organisation", 20),
    "org": _column("Org", "organisation", 20), "parentname": _column("Par Name", "parent"),
    "name": _column("Name", "name"), "priority": _column("Priority", "priority"),
    "preempt": _column("Preempt", "preempts"),
    "preemptmode": _column("PreemptMode", "preempt_mode", 11),
    "usagefactor": _column("UsageFactor", "usage_factor", 11),
    "controlhost": _column("ControlHost", "host", 15),
    "controlport": _column("ControlPort", "port", 12), "rpc": _column("RPC", "rpc", 5),
}  # fmt: skip
DEFAULTS = {
    "user": "User,DefaultAccount,AdminLevel", "account": "Account,Descr,Org",
    "association": "Cluster,Account,User,Partition,Share,QOS,DefaultQOS",
    "qos": "Name,Priority,Preempt,PreemptMode,UsageFactor",
    "cluster": "Cluster,ControlHost,ControlPort,RPC,Share",
}  # fmt: skip
ENTITIES = {
    "user": "user", "users": "user", "account": "account", "accounts": "account",
    "association": "association", "associations": "association", "assoc": "association",
    "qos": "qos", "cluster": "cluster", "clusters": "cluster",
}  # fmt: skip
_SHARED = (
    Flag("noheader", "noheader", "n", help="no header"),
    Flag("parsable", "parsable", "p", help="separated by |, also at the end"),
    Flag("parsable2", "parsable2", "P", help="separated by |"),
    Flag("help", "help", help="this text"),
    Flag("usage", "usage", help="a short text"),
    Flag("verbose", "verbose", "v", ignored=True, help="has no effect"),
    Flag("version", "version", "V", help="the version"),
)
SACCTMGR = (
    *_SHARED,
    Flag("associations", "associations", "s", help="with the accounts of each user"),
    Flag("immediate", "immediate", "i", ignored=True, help="has no effect"),
    Flag("oneliner", "oneliner", "o", ignored=True, help="has no effect"),
    Flag("quiet", "quiet", "Q", ignored=True, help="has no effect"),
    Flag("readonly", "readonly", "r", ignored=True, help="has no effect"),
)
SSHARE = (
    *(flag for flag in _SHARED if flag.key != "noheader"),
    Flag("noheader", "noheader", "h", help="no header"),
    Flag("noheader", short="n", help="no header"),
    Flag("accounts", "accounts", "A", "required", help="these accounts"),
    Flag("all", "all", "a", help="all users"),
    Flag("format", "format", "o", "required", help="columns"),
    Flag("long", "long", "l", help="more columns"),
    Flag("clusters", "clusters", "M", "required", refused="this server is one cluster"),
    Flag("partition", "partition", "m", ignored=True, help="has no effect"),
    Flag("users", "users", "u", "required", help="these users"),
    Flag("own", "Users", "U", help="only rows of users, by default of the caller"),
)
_SHARES = {
    "account": _column("Account", "account", 20), "user": _column("User", "user"),
    "rawshares": _column("RawShares", "raw_shares"),
    "normshares": _column("NormShares", "norm_shares", 11),
    "rawusage": _column("RawUsage", "used_s", 11),
    "effectvusage": _column("EffectvUsage", "effective_usage", 13),
    "normusage": _column("NormUsage", "effective_usage", 11),
    "fairshare": _column("FairShare", "fairshare"),
    "levelfs": _column("LevelFS", "level_fs"), "cluster": _column("Cluster", "cluster"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """sacctmgr's list. where: conditions by lower-case name."""

    entity: str
    format: Format
    where: dict[str, list[str]]
    given: Arguments


def parse_sacctmgr(argv: list[str]) -> Listing:
    """Raises Usage; for a change, with the command of odcctl to use."""
    found = parse("sacctmgr", SACCTMGR, argv)
    words = found.operands
    if not words:
        raise fail("sacctmgr", "no command was given; use: sacctmgr show ENTITY")
    verb = words[0].lower()
    if verb in ("add", "create", "modify", "delete", "remove", "load", "dump", "archive"):
        raise fail(
            "sacctmgr", f"{verb} is not supported: use odcctl account, odcctl user or odcctl qos"
        )
    if verb not in ("list", "show") or len(words) < 2:
        raise Usage(f"sacctmgr: error: No valid entity in {verb[:60]} command\n")
    entity = ENTITIES.get(words[1].lower())
    if entity is None:
        raise Usage(f"sacctmgr: error: No valid entity in {verb} command: {words[1][:60]}\n")
    where: dict[str, list[str]] = {}
    texts: list[str] = []
    for word in words[2:]:
        key, equals, value = word.partition("=")
        if word.lower() in ("where", "withassoc", "nopassociation", "tree"):
            continue
        if not equals:
            where.setdefault("names", []).extend(word.split(","))
        elif key.lower() == "format":
            texts.append(value)
        else:
            where.setdefault(key.lower().rstrip("s"), []).extend(value.split(","))
    if not texts:
        texts = [DEFAULTS[entity]]
        if entity == "user" and found.has("associations"):
            texts.append("Cluster,Account,Partition,Share,QOS")
    return Listing(
        entity=entity, where=where, given=found,
        format=sacct_names("sacctmgr", texts, _COLUMNS, parsable=_parsable(found)),
    )  # fmt: skip


def parse_sshare(argv: list[str]) -> tuple[Format, Arguments]:
    found = parse("sshare", SSHARE, argv)
    texts = found.every("format") or [
        "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
        + (",LevelFS" if found.has("long") else "")
    ]
    return sacct_names("sshare", texts, _SHARES, parsable=_parsable(found)), found


def _parsable(found: Arguments) -> bool:
    return found.has("parsable") or found.has("parsable2")


def render(cells: Format, rows: Sequence[Row], given: Arguments) -> str:
    header = not given.has("noheader")
    if _parsable(given):
        found = list(
            separated(cells, rows, header=header, separator="|", trailing=given.has("parsable"))
        )
    else:
        found = list(lines(cells, rows, header=header))
        if header:
            found.insert(1, rules(cells))
    return "".join(f"{line}\n" for line in found)
