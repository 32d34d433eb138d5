"""Which function the submit filter is: a file or a module, and a name in it."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odcd.errors import BadRequest
from odcd.runner.hooks.program import refusal

FUNCTION = "submit"
MODULE_NAME = "odc_submit_filter"
MAX_FILE_BYTES = 4 * 1024 * 1024

Filter = Callable[[dict[str, Any], Any], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Either a file or a module is set."""

    file: str | None = None
    module: str | None = None
    function: str = FUNCTION
    owners: frozenset[int] | None = None
    """The users who may be able to change the file; None: this is not checked."""

    @property
    def place(self) -> str:
        return self.file or self.module or ""


def parse_target(text: str, owners: frozenset[int] | None) -> Target:
    """FILE, FILE:FUNCTION or MODULE:FUNCTION. owners: as in Target. Raises BadRequest."""
    place, _, function = text.partition(":")
    function = function or FUNCTION
    if not function.isidentifier():
        raise BadRequest(
            f'ODC_SUBMIT_FILTER: "{function[:60]}" is not the name of a function',
            "Give FILE, FILE:FUNCTION or MODULE:FUNCTION.",
        )
    if "/" not in place:
        if ":" not in text or not all(part.isidentifier() for part in place.split(".")):
            raise BadRequest(
                f'ODC_SUBMIT_FILTER="{text[:100]}" names neither an absolute path nor a module '
                "with a function",
                "For example /etc/odc/submit_filter.py, or site_rules.odc:submit.",
            )
        return Target(module=place, function=function)
    why = refusal(place, owners, executable=False) if owners is not None else _missing(place)
    if why is not None:
        raise BadRequest(
            f"ODC_SUBMIT_FILTER: the file cannot be used: {why}",
            "Name a Python file that, with all folders on its path, belongs to root or to the user "
            "who runs odcd, and that no one else may write.",
        )
    return Target(file=place, function=function, owners=owners)


def _missing(path: str) -> str | None:
    if not path.startswith("/"):
        return f"{path} is not an absolute path"
    return None if Path(path).is_file() else f"{path} is not a regular file"


def load(target: Target) -> Filter:
    """Run the site's module and return its function. Raises whatever the module raises,
    PermissionError if others could change the file, and LookupError if it has no such function."""
    if target.file is not None:
        if target.owners is not None:
            why = refusal(target.file, target.owners, executable=False)
            if why is not None:
                raise PermissionError(why)
        module = types.ModuleType(MODULE_NAME)
        module.__file__ = target.file
        sys.modules[MODULE_NAME] = module
        # Not through the import system, which would write a cache beside the file.
        with Path(target.file).open("rb") as file:
            source = file.read(MAX_FILE_BYTES)
        exec(compile(source, target.file, "exec"), module.__dict__)
    else:
        assert target.module is not None
        module = importlib.import_module(target.module)
    found = getattr(module, target.function, None)
    if not callable(found):
        raise LookupError(f"{target.place} has no function {target.function}")
    return found
