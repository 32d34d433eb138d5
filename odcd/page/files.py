"""The templates and assets of the page, read once: the odc account may not be able to read the
package."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from jinja2 import DictLoader, Environment, StrictUndefined

from odcd import __version__
from odcd.page.filters import FILTERS

# Jinja2 imports this when a template fails, when we may no longer be able to read root's Python.
importlib.import_module("jinja2.debug")

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
         "svg": "image/svg+xml"}  # fmt: skip
PATH = "/page/static/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """url: its path with the digest of its content, so the content at a URL never changes."""

    url: str
    media_type: str
    plain: bytes
    packed: bytes


@functools.cache
def assets() -> Mapping[str, Asset]:
    """By file name, such as page.css."""
    found: dict[str, Asset] = {}
    for entry in files("odcd.page").joinpath("static").iterdir():
        name, _, kind = entry.name.rpartition(".")
        if kind not in TYPES:
            continue
        plain = entry.read_bytes()
        digest = hashlib.sha256(plain).hexdigest()[:12]
        found[entry.name] = Asset(
            url=f"{PATH}{name}.{digest}.{kind}",
            media_type=TYPES[kind],
            plain=plain,
            packed=gzip.compress(plain, 9, mtime=0),
        )
    return found


@functools.cache
def templates() -> Environment:
    """The environment with all templates compiled."""
    folder = files("odcd.page").joinpath("templates")
    texts = {e.name: e.read_text("utf-8") for e in folder.iterdir() if e.name.endswith(".html")}
    environment = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    names = cast("dict[str, Any]", environment.globals)
    names |= {"asset": _url, "version": __version__}
    for name in texts:
        environment.get_template(name)
    return environment


def _url(name: str) -> str:
    return assets()[name].url


def macros(name: str) -> Any:
    """A template's macros, as attributes."""
    return templates().get_template(name).module
