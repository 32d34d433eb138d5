"""manifest.json of an export: its contents, and the digests that prove it is complete."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec

from odcd.errors import BadRequest, OdcError
from odcd.history.targets import Target

FORMAT = 1
MANIFEST = "manifest.json"
IDENTIFIER = r"^[a-z_][a-z0-9_]*$"
Name = msgspec.Meta(pattern=IDENTIFIER)


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    columns: list[str]
    rows: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int
    odc: str
    kind: str
    """jobs, or events (without a job)."""
    name: str
    server: str
    """The id of the exported database: job ids mean nothing in another one."""
    schema_version: int
    made_at: str
    before: str | None
    low: int
    high: int
    """Ids from low to below high: event ids in an export of events, otherwise job ids."""
    rows: int
    """The number of jobs or events."""
    event_low: int
    event_high: int
    tables: dict[str, Table]


def encode(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def member(export: str, table: str) -> str:
    return f"{export}/{table}.copy.gz"


async def read_manifest(target: Target, export: str, scratch: Path) -> Manifest | None:
    """Return None if there is no manifest: the export was interrupted. Raises BadRequest if the
    file is not a manifest."""
    file = scratch / MANIFEST
    if not await target.get(f"{export}/{MANIFEST}", file):
        return None
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, json.JSONDecodeError) as error:
        raise BadRequest(
            f"{export}/{MANIFEST} is not the manifest of an export: {error}", "Name another export."
        ) from error
    if manifest.format != FORMAT:
        raise OdcError(
            f"export {export} has format {manifest.format}, but this odc reads {FORMAT}",
            "Use the odc that wrote it, or a newer one.",
        )
    return manifest


async def check_files(target: Target, manifest: Manifest, scratch: Path) -> dict[str, Path]:
    """Fetch the files and compare them with the manifest. Raises OdcError when one differs."""
    files: dict[str, Path] = {}
    for name, table in manifest.tables.items():
        file = scratch / f"{name}.copy.gz"
        if not await target.get(member(manifest.name, name), file):
            raise OdcError(
                f"export {manifest.name} lacks {name}.copy.gz", "Use another copy of the export."
            )
        if digest_of(file) != table.sha256:
            raise OdcError(
                f"{member(manifest.name, name)} was changed: its digest does not match",
                "Use another copy of the export.",
            )
        files[name] = file
    return files
