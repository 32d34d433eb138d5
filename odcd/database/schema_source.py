"""The sql folder: migrations, functions, views, and the oldest odc that is compatible with them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from odcd.errors import OdcError

MIGRATION_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
COMPATIBLE_SINCE = "compatible_since"

File = tuple[str, str]
"""A file's path below sql/, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return _digest(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The contents of the sql folder."""

    migrations: tuple[Migration, ...]
    functions: tuple[File, ...]
    views: tuple[File, ...]
    compatible_since: int
    """The oldest version whose daemons work on a database of this version."""

    @property
    def version(self) -> int:
        return max((m.version for m in self.migrations), default=0)

    @property
    def digest(self) -> str:
        return _digest("\0".join(f"{name}\0{text}" for name, text in self.functions + self.views))


def sql_folder() -> Path:
    """The sql/ folder of the wheel, or of the checkout."""
    package = Path(__file__).parent.parent
    packaged = package / "sql"
    return packaged if packaged.is_dir() else package.parent / "sql"


def read_source(folder: Path) -> Source:
    migrations: list[Migration] = []
    for path in sorted((folder / "migrations").glob("*.sql")):
        match = MIGRATION_NAME.match(path.name)
        if match is None:
            raise OdcError(
                f"migration {path.name} is not named like 0001_what.sql", "Rename the file."
            )
        migrations.append(
            Migration(version=int(match[1]), name=path.name, text=path.read_text("utf-8"))
        )
    if [m.version for m in migrations] != list(range(1, len(migrations) + 1)):
        raise OdcError("migrations are not numbered 1, 2, 3, …", "Renumber the newest file.")
    return Source(
        migrations=tuple(migrations),
        functions=_texts(folder / "functions"),
        views=_texts(folder / "views"),
        compatible_since=_compatible_since(folder, len(migrations)),
    )


def _compatible_since(folder: Path, version: int) -> int:
    """Without a declaration, a version is compatible with itself only."""
    path = folder / COMPATIBLE_SINCE
    if not path.exists():
        return version
    text = path.read_text("utf-8").strip()
    if not text.isdigit() or int(text) > version:
        raise OdcError(
            f"sql/{COMPATIBLE_SINCE} is {text!r}, the newest migration is {version}",
            "Write the number of a migration into it.",
        )
    return int(text)


def _texts(folder: Path) -> tuple[File, ...]:
    return tuple(
        (path.relative_to(folder.parent).as_posix(), path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.sql"))
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
