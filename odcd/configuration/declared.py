"""The settings that exist, read from the classes that declare them: name, type and docstring."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from odcd.builds.settings import BuildSettings
from odcd.disks.settings import DiskSettings
from odcd.elastic.settings import ElasticSettings
from odcd.executor.job_rules import JobSettings
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.fairness.settings import FairnessSettings
from odcd.front.settings import FrontSettings
from odcd.gpu_use.settings import GpuUseSettings
from odcd.history.settings import HistorySettings
from odcd.jobs.submit_filter.settings import SubmitFilterSettings
from odcd.login.settings import LoginSettings
from odcd.notify.settings import NotifySettings
from odcd.settings import Settings

Kind: TypeAlias = Literal["whole", "number", "switch", "flag", "list", "text"]

GROUPS: tuple[tuple[str, type], ...] = (
    ("", Settings),
    ("jobs", JobSettings),
    ("submits", SubmitFilterSettings),
    ("front", FrontSettings),
    ("kubernetes", KubernetesSettings),
    ("disks", DiskSettings),
    ("elastic", ElasticSettings),
    ("login", LoginSettings),
    ("builds", BuildSettings),
    ("gpu_use", GpuUseSettings),
    ("fairness", FairnessSettings),
    ("history", HistorySettings),
    ("notify", NotifySettings),
)
"""Each class of settings, and the field of Settings that has it."""
SOURCE = re.compile(r"^((?:(?:--[a-z-]+|ODC_[A-Z_]+(?:=[0-9]+)?)(?: of [a-z]+)?(?:, )?)+)\. ")
PREFIX = "ODC_"
NOT_IN_FILE = frozenset({"ODC_HOME", "ODC_CONFIG"})
"""They say where the file is."""
ONE_TEXT = frozenset({"ODC_LISTEN", "ODC_AWS_IDENTITIES"})
"""Texts that are parsed into several values: an address, and the name of a file."""
SECRET = frozenset({"ODC_DSN"})
"""Settings that may contain a password; the others name files of secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    name: str
    """The field's name."""
    group: str
    """The field of Settings that has its class; empty: Settings itself."""
    sources: tuple[str, ...]
    """The options and the variable that set it, as its docstring names them."""
    variable: str | None
    kind: Kind
    text: str
    """Its purpose."""

    @property
    def key(self) -> str | None:
        """Its name in the settings file; None: it cannot be set there."""
        if self.variable is None or self.variable in NOT_IN_FILE:
            return None
        return self.variable.removeprefix(PREFIX).lower()

    @property
    def secret(self) -> bool:
        return self.variable in SECRET


def declared() -> tuple[Declared, ...]:
    """All settings, in the order of the reference page."""
    return tuple(
        _declare(group, name, annotation, text)
        for group, record in GROUPS
        for name, annotation, text in _fields(record)
        if text  # without a text: a class of settings, whose fields follow
    )


def by_key() -> dict[str, Declared]:
    """The settings that the file may have."""
    return {one.key: one for one in declared() if one.key is not None}


def _declare(group: str, name: str, annotation: str, text: str) -> Declared:
    found = SOURCE.match(text)
    sources = tuple(found[1].split(", ")) if found else ()
    variables = [one.partition("=")[0] for one in sources if one.startswith(PREFIX)]
    variable = variables[0] if variables else None
    return Declared(
        name=name,
        group=group,
        sources=sources,
        variable=variable,
        kind=_kind(variable, annotation, flag=any("=" in one for one in sources)),
        text=text[found.end() :] if found else text,
    )


def _kind(variable: str | None, annotation: str, *, flag: bool) -> Kind:
    if variable in ONE_TEXT:
        return "text"
    if annotation.startswith(("tuple[", "frozenset[", "dict[", "Proxies")):
        return "list"
    match annotation.removesuffix(" | None"):
        case "bool":
            return "flag" if flag else "switch"
        case "int":
            return "whole"
        case "timedelta" if variable and variable.endswith("_DAYS"):
            return "whole"
        case "float" | "timedelta":
            return "number"
        case _:
            return "text"


def _fields(record: type) -> Iterator[tuple[str, str, str]]:
    """Name, annotation and docstring of a class's fields; Python does not keep the docstrings."""
    tree = ast.parse(inspect.getsource(record)).body[0]
    assert isinstance(tree, ast.ClassDef)
    for field, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = " ".join(str(after.value.value).split())
            yield field.target.id, ast.unparse(field.annotation), text
